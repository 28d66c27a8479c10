//! Writes conditions on extra keys as SQL. The values of extra keys are JSON. A literal is compared only with values of
//! its own type.

use super::{Dialect, Parameter, Sql, operator_text};
use crate::query::{Comparison, Literal};

impl Sql {
    /// Adds a parameter that finds an extra key, without a placeholder in the text. Returns its number.
    pub(super) fn key(&mut self, key: &str) -> usize {
        let parameter = match self.dialect {
            // A JSON path with a single step. The key is quoted as in JSON, so any key is a single step.
            Dialect::Sqlite => format!("$.{}", serde_json::Value::from(key)),
            Dialect::Postgres => key.to_owned(),
        };
        self.parameters.push(Parameter::Text(parameter));
        self.parameters.len()
    }

    pub(super) fn compare_extra(&mut self, key: &str, comparison: Comparison, literal: &Literal) -> &mut Self {
        let is_unordered = matches!(literal, Literal::Null | Literal::Bool(_));
        if is_unordered && matches!(comparison, Comparison::Less | Comparison::Greater) {
            return self.push("FALSE");
        }
        let key = self.key(key);
        match literal {
            Literal::Null => self.json_type(key).push(" = 'null'"),
            Literal::Bool(value) => self.is_bool(key, *value),
            Literal::Text(text) => self.compare_text(key, comparison, text),
            Literal::Int(number) => self.compare_number(key, comparison, Parameter::Int(*number)),
            Literal::Float(number) => self.compare_number(key, comparison, Parameter::Float(*number)),
        }
    }

    fn is_bool(&mut self, key: usize, value: bool) -> &mut Self {
        match self.dialect {
            Dialect::Sqlite => self.json_type(key),
            Dialect::Postgres => self.push("(fields -> ").placeholder(key).push(")::text"),
        };
        self.push(if value { " = 'true'" } else { " = 'false'" })
    }

    fn compare_text(&mut self, key: usize, comparison: Comparison, text: &str) -> &mut Self {
        match self.dialect {
            Dialect::Sqlite => {
                self.json_type(key).push(" = 'text' AND json_extract(fields, ").placeholder(key).push(")")
            }
            Dialect::Postgres => {
                self.json_type(key).push(" = 'string' AND (fields ->> ").placeholder(key).push(")").collate(comparison)
            }
        };
        self.push(operator_text(comparison)).bind(Parameter::Text(text.to_owned()))
    }

    fn compare_number(&mut self, key: usize, comparison: Comparison, number: Parameter) -> &mut Self {
        match self.dialect {
            Dialect::Sqlite => {
                self.json_type(key)
                    .push(" IN ('integer', 'real') AND json_extract(fields, ")
                    .placeholder(key)
                    .push(")");
                self.push(operator_text(comparison)).bind(number)
            }
            // Casting a value that is not a number fails. Only CASE prevents PostgreSQL from trying the cast.
            Dialect::Postgres => {
                self.push("CASE WHEN ").json_type(key).push(" = 'number' THEN (fields ->> ").placeholder(key);
                self.push(match number {
                    // If the literal is a double, both sides are compared as doubles. If it is an integer, they are
                    // compared exactly.
                    Parameter::Float(_) => ")::numeric::float8",
                    _ => ")::numeric",
                });
                self.push(operator_text(comparison)).bind(number).push(" END")
            }
        }
    }

    fn json_type(&mut self, key: usize) -> &mut Self {
        match self.dialect {
            Dialect::Sqlite => self.push("json_type(fields, ").placeholder(key).push(")"),
            Dialect::Postgres => self.push("jsonb_typeof(fields -> ").placeholder(key).push(")"),
        }
    }

    /// Appends an expression for an extra value as text. Text is used unchanged, other values are written as JSON, and
    /// null becomes NULL.
    pub(super) fn extra_text(&mut self, key: usize) -> &mut Self {
        match self.dialect {
            Dialect::Sqlite => {
                self.push("CASE ").json_type(key).push(" WHEN 'null' THEN NULL WHEN 'text' THEN json_extract(fields, ");
                self.placeholder(key).push(") ELSE fields -> ").placeholder(key).push(" END")
            }
            Dialect::Postgres => self.push("(fields ->> ").placeholder(key).push(")"),
        }
    }
}
