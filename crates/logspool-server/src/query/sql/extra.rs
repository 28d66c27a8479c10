//! Writes conditions on extra keys as SQL. The values of extra keys are JSON. A literal is compared only with values of
//! its own type.

use super::{Dialect, Parameter, Sql, operator_text};
use crate::query::{Comparison, Field, Filter, Literal, path};

/// In place of the number of a key: the value that was found by a path.
const FOUND: usize = 0;

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

    /// True if a key has a value that is not null.
    pub(super) fn extra_exists(&mut self, key: &str) -> &mut Self {
        if path::is_path(key) {
            let field = Field::Extra(key.to_owned());
            return self.on_path(key, &Filter::Exists(field), |sql| sql.json_type(FOUND).push(" <> 'null'"));
        }
        let key = self.key(key);
        self.json_type(key).push(" <> 'null'")
    }

    /// Appends a condition on the values of a path. SQLite applies the filter by a function; for PostgreSQL `write`
    /// appends the condition for one value.
    fn on_path(&mut self, name: &str, filter: &Filter, write: impl Fn(&mut Self) -> &mut Self) -> &mut Self {
        match self.dialect {
            Dialect::Sqlite => self.push("path_holds(fields, ").bind(Parameter::Text(filter.to_string())).push(")"),
            Dialect::Postgres => {
                self.push("EXISTS (SELECT FROM jsonb_path_query(CASE WHEN fields ? ")
                    .bind(Parameter::Text(name.to_owned()));
                let key = self.parameters.len();
                self.push(" THEN jsonb_build_array(fields -> ")
                    .placeholder(key)
                    .push(") ELSE fields END, (CASE WHEN fields ? ");
                let path = path::json_path(name).unwrap_or_default();
                self.placeholder(key).push(" THEN 'strict $[0]' ELSE ").bind(Parameter::Text(path));
                self.push(" END)::jsonpath) AS found (value) WHERE ");
                write(self).push(")")
            }
        }
    }

    /// Appends a comparison of the values of a path with a pattern.
    pub(super) fn path_matches(&mut self, name: &str, source: String) -> &mut Self {
        let field = Field::Extra(name.to_owned());
        match self.dialect {
            Dialect::Sqlite => {
                self.push("path_matches(fields, ").bind(Parameter::Text(name.to_owned()));
                self.push(", ").bind(Parameter::Text(source)).push(")")
            }
            Dialect::Postgres => self.on_path(name, &Filter::Exists(field), move |sql| {
                sql.json_text(FOUND).push(" ~ ").bind(Parameter::Text(source.clone()))
            }),
        }
    }

    /// Appends an expression for the first value of a path as text.
    pub(super) fn path_text(&mut self, name: &str) -> &mut Self {
        match self.dialect {
            Dialect::Sqlite => self.push("path_text(fields, ").bind(Parameter::Text(name.to_owned())).push(")"),
            Dialect::Postgres => {
                self.push("CASE WHEN fields ? ").bind(Parameter::Text(name.to_owned()));
                let key = self.parameters.len();
                self.push(" THEN fields ->> ").placeholder(key).push(" ELSE jsonb_path_query_first(fields, ");
                let path = path::json_path(name).unwrap_or_default();
                self.bind(Parameter::Text(path)).push("::jsonpath) #>> '{}' END")
            }
        }
    }

    pub(super) fn compare_extra(&mut self, key: &str, comparison: Comparison, literal: &Literal) -> &mut Self {
        let is_unordered = matches!(literal, Literal::Null | Literal::Bool(_));
        if is_unordered && matches!(comparison, Comparison::Less | Comparison::Greater) {
            return self.push("FALSE");
        }
        if path::is_path(key) {
            let filter = Filter::Compare(Field::Extra(key.to_owned()), comparison, literal.clone());
            return self.on_path(key, &filter, |sql| sql.compare_json(FOUND, comparison, literal));
        }
        let key = self.key(key);
        self.compare_json(key, comparison, literal)
    }

    /// Compares the value of a key, or the value that was found by a path.
    fn compare_json(&mut self, key: usize, comparison: Comparison, literal: &Literal) -> &mut Self {
        match literal {
            Literal::Null => self.json_type(key).push(" = 'null'"),
            Literal::Bool(value) => self.is_bool(key, *value),
            Literal::Text(text) => self.compare_text(key, comparison, text),
            Literal::Int(number) => self.compare_number(key, comparison, Parameter::Int(*number)),
            Literal::Large(number) => self.compare_number(key, comparison, Parameter::Text(number.to_string())),
            Literal::Float(number) => self.compare_number(key, comparison, Parameter::Float(*number)),
        }
    }

    fn is_bool(&mut self, key: usize, value: bool) -> &mut Self {
        match self.dialect {
            Dialect::Sqlite => self.json_type(key),
            Dialect::Postgres => self.json_value(key).push("::text"),
        };
        self.push(if value { " = 'true'" } else { " = 'false'" })
    }

    fn compare_text(&mut self, key: usize, comparison: Comparison, text: &str) -> &mut Self {
        match self.dialect {
            Dialect::Sqlite => {
                self.json_type(key).push(" = 'text' AND json_extract(fields, ").placeholder(key).push(")")
            }
            Dialect::Postgres => self.json_type(key).push(" = 'string' AND ").json_text(key).collate(comparison),
        };
        self.push(operator_text(comparison)).bind(Parameter::Text(text.to_owned()))
    }

    /// Compares a number, or an integer that is kept as text because it is too large, with a number. A parameter that is
    /// text is a large integer.
    fn compare_number(&mut self, key: usize, comparison: Comparison, number: Parameter) -> &mut Self {
        let sign = operator_text(comparison);
        let is_large = matches!(number, Parameter::Text(_));
        let is_double = matches!(number, Parameter::Float(_));
        self.parameters.push(number);
        let number = self.parameters.len();
        match self.dialect {
            Dialect::Sqlite => {
                self.push("CASE ").json_type(key);
                for kind in [" WHEN 'integer' THEN ", " WHEN 'real' THEN ", " WHEN 'text' THEN "] {
                    self.push(kind);
                    if is_large || kind == " WHEN 'text' THEN " {
                        self.push("large_order(json_extract(fields, ").placeholder(key).push("), ");
                        self.placeholder(number).push(")").push(sign).push("0");
                    } else {
                        self.push("json_extract(fields, ").placeholder(key).push(")").push(sign).placeholder(number);
                    }
                }
            }
            // Casting a value that is not a number fails. Only CASE prevents PostgreSQL from trying the cast.
            Dialect::Postgres => {
                // If the literal is a double, both sides are compared as doubles. If it is an integer, they are compared
                // exactly.
                let (value_type, literal_type) = match (is_double, is_large) {
                    (true, _) => ("::numeric::float8", ""),
                    (false, true) => ("::numeric", "::numeric"),
                    (false, false) => ("::numeric", ""),
                };
                self.push("CASE WHEN ").json_type(key).push(" = 'number' THEN ").json_text(key);
                self.push(value_type).push(sign).placeholder(number).push(literal_type);
                self.push(" WHEN ").json_type(key).push(" = 'string' THEN CASE WHEN ").json_text(key);
                self.push(" ~ '^-?[1-9][0-9]{18,37}$' THEN ").json_text(key);
                self.push("::numeric NOT BETWEEN -9223372036854775808 AND 9223372036854775807 AND ");
                self.json_text(key).push(value_type).push(sign).placeholder(number).push(literal_type).push(" END");
            }
        }
        self.push(" END")
    }

    fn json_type(&mut self, key: usize) -> &mut Self {
        match self.dialect {
            Dialect::Sqlite => self.push("json_type(fields, ").placeholder(key).push(")"),
            Dialect::Postgres => self.push("jsonb_typeof(").json_value(key).push(")"),
        }
    }

    /// Appends the value of a key in PostgreSQL.
    fn json_value(&mut self, key: usize) -> &mut Self {
        match key {
            FOUND => self.push("found.value"),
            key => self.push("(fields -> ").placeholder(key).push(")"),
        }
    }

    /// Appends the value of a key as text in PostgreSQL.
    fn json_text(&mut self, key: usize) -> &mut Self {
        match key {
            FOUND => self.push("(found.value #>> '{}')"),
            key => self.push("(fields ->> ").placeholder(key).push(")"),
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
