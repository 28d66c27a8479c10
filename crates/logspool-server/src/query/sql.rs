//! Writes a filter as SQL. User input goes only into the parameters. The SQL text consists of column names and
//! constants from this file.
//!
//! Both stores have the columns of [`crate::batch::Row`]. Times and ids are 64-bit signed integers. An id that is too
//! large for them is stored as the negative number with the same bits. Comparisons treat it as larger than all other
//! ids, as [`super::Matcher`] does. `fields` is text with a JSON object in SQLite and `jsonb` in PostgreSQL.
//!
//! In SQL a comparison with NULL is unknown, and its negation is unknown too. So a negation is moved inwards to the
//! single conditions. If a condition can be unknown, its negation is written as `IS NOT TRUE`. All other conditions
//! stay plain comparisons, for which an index can be used.
//!
//! PostgreSQL differs in four points:
//! - Regular expressions have PostgreSQL's own syntax, "advanced regular expressions".
//! - The locale of the database decides which characters are letters, and their case.
//! - Extra values that are not text are matched with patterns as `jsonb` prints them. It prints a space after each
//!   comma of a list.
//! - `jsonb` keeps the last value of a key that an object has twice. SQLite and live tails see the first one.

mod extra;

use super::field::FieldKind;
use super::words::is_part;
use super::{Comparison, Field, Filter, Literal, Phrase, path};

/// The dialect of the SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite with the functions of [`super::functions`].
    Sqlite,
    /// PostgreSQL.
    Postgres,
}

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    /// An integer: `int8` in PostgreSQL.
    Int(i64),
    /// A double: `float8` in PostgreSQL.
    Float(f64),
    /// Text, without NUL characters.
    Text(String),
}

/// Builds the text and the parameters of an SQL statement.
#[derive(Debug, Clone)]
pub struct Sql {
    dialect: Dialect,
    text: String,
    parameters: Vec<Parameter>,
}

/// Whether a condition is negated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Polarity {
    Positive,
    Negated,
}

impl Polarity {
    fn negated(self) -> Self {
        match self {
            Self::Positive => Self::Negated,
            Self::Negated => Self::Positive,
        }
    }
}

impl Sql {
    /// Starts with empty text.
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, text: String::new(), parameters: Vec::new() }
    }

    /// The text written until now.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The parameters added until now. The first one is `?1` in SQLite and `$1` in PostgreSQL.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Appends constant text.
    pub fn push(&mut self, text: &'static str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    /// Adds a parameter, and appends its placeholder to the text.
    pub fn bind(&mut self, parameter: Parameter) -> &mut Self {
        self.parameters.push(parameter);
        self.placeholder(self.parameters.len())
    }

    /// Appends the placeholder of the parameter with this number. The first parameter has number 1.
    fn placeholder(&mut self, number: usize) -> &mut Self {
        let sign = match self.dialect {
            Dialect::Sqlite => '?',
            Dialect::Postgres => '$',
        };
        self.text.push(sign);
        self.text.push_str(&number.to_string());
        // Without a cast PostgreSQL would derive a narrower type from the column.
        if self.dialect == Dialect::Postgres {
            self.text.push_str(match self.parameters[number - 1] {
                Parameter::Int(_) => "::int8",
                Parameter::Float(_) => "::float8",
                Parameter::Text(_) => "::text",
            });
        }
        self
    }

    /// Appends the filter as a condition. The condition is true for matching records, and false or unknown for all
    /// others. It may be combined with other conditions by `AND`, but must not be negated.
    pub fn condition(&mut self, filter: &Filter) -> &mut Self {
        self.filter(filter, Polarity::Positive)
    }

    /// Appends an expression for the value of a field as text, for counting. It is NULL for records without a value.
    pub fn value(&mut self, field: &Field) -> &mut Self {
        match (field, self.dialect) {
            (Field::Extra(key), _) if path::is_path(key) => self.path_text(key),
            (Field::Extra(key), _) => {
                let key = self.key(key);
                self.extra_text(key)
            }
            (Field::Process | Field::Thread, Dialect::Sqlite) => {
                let column = self.column(field);
                self.push("CASE WHEN ").push(column).push(" IS NOT NULL THEN printf('%u', ").push(column).push(") END")
            }
            (Field::Process | Field::Thread, Dialect::Postgres) => {
                let column = self.column(field);
                self.push("CASE WHEN ").push(column).push(" < 0 THEN (").push(column);
                self.push("::numeric + 18446744073709551616)::text ELSE ").push(column).push("::text END")
            }
            (field, _) if field.kind() == FieldKind::Number => {
                let column = self.column(field);
                self.push("CAST(").push(column).push(" AS TEXT)")
            }
            (field, _) => {
                let column = self.column(field);
                self.push(column)
            }
        }
    }

    /// Appends an expression for the number of the record's interval. Intervals are `interval_ns` long, and interval 0
    /// begins in 1970. An interval begins at its number times `interval_ns`. The product can overflow for extreme
    /// times: use `saturating_mul`.
    pub fn interval(&mut self, interval_ns: i64) -> &mut Self {
        // Both databases round a quotient towards zero, but intervals before 1970 need rounding down.
        self.push("CASE WHEN time_ns >= 0 THEN time_ns / ").bind(Parameter::Int(interval_ns));
        let number = self.parameters.len();
        self.push(" ELSE (time_ns + 1) / ").placeholder(number).push(" - 1 END")
    }

    fn filter(&mut self, filter: &Filter, sense: Polarity) -> &mut Self {
        match (filter, sense) {
            (Filter::All, Polarity::Positive) => self.push("TRUE"),
            (Filter::All, Polarity::Negated) => self.push("FALSE"),
            (Filter::And(filters), Polarity::Positive) | (Filter::Or(filters), Polarity::Negated) => {
                self.join(filters, " AND ", "TRUE", sense)
            }
            (Filter::Or(filters), Polarity::Positive) | (Filter::And(filters), Polarity::Negated) => {
                self.join(filters, " OR ", "FALSE", sense)
            }
            (Filter::Not(filter), sense) => self.filter(filter, sense.negated()),
            (Filter::Compare(field, Comparison::NotEqual, literal), sense) => {
                self.leaf(sense.negated(), |sql| sql.compare(field, Comparison::Equal, literal))
            }
            (Filter::Compare(field, comparison, literal), sense) => {
                self.leaf(sense, |sql| sql.compare(field, *comparison, literal))
            }
            (Filter::Phrase(phrase), sense) => self.leaf(sense, |sql| sql.phrase(phrase)),
            (Filter::Exists(field), sense) => self.leaf(sense, |sql| sql.exists(field)),
            // Queries inside a filter were replaced by their values.
            (Filter::In(..), sense) => self.leaf(sense, |sql| sql.push("FALSE")),
            (Filter::Matches(field, pattern), sense) => {
                self.leaf(sense, |sql| sql.matches(field, pattern.source().to_owned()))
            }
        }
    }

    /// Joins the filters as a balanced tree. A chain of a thousand filters would reach SQLite's limit on the depth of
    /// expressions.
    fn join(&mut self, filters: &[Filter], word: &'static str, none: &'static str, sense: Polarity) -> &mut Self {
        match filters {
            [] => self.push(none),
            [filter] => self.filter(filter, sense),
            several => {
                let (left, right) = several.split_at(several.len() / 2);
                self.push("(").join(left, word, none, sense).push(word).join(right, word, none, sense).push(")")
            }
        }
    }

    fn leaf(&mut self, sense: Polarity, write: impl FnOnce(&mut Self) -> &mut Self) -> &mut Self {
        let (begin, end) = match sense {
            Polarity::Positive => ("(", ")"),
            Polarity::Negated => ("((", ") IS NOT TRUE)"),
        };
        write(self.push(begin));
        self.push(end)
    }

    /// Writes any comparison except `NotEqual`, which is written as the negation of `Equal`.
    fn compare(&mut self, field: &Field, comparison: Comparison, literal: &Literal) -> &mut Self {
        match (field, literal) {
            (Field::Extra(key), literal) => self.compare_extra(key, comparison, literal),
            (Field::Process | Field::Thread, Literal::Int(number)) => {
                let column = self.column(field);
                self.compare_id(column, comparison, (*number).into())
            }
            (Field::Process | Field::Thread, Literal::Large(number)) => {
                let column = self.column(field);
                self.compare_id(column, comparison, *number)
            }
            // Each number of such a column is nearer to zero.
            (field, Literal::Large(number)) if field.kind() == FieldKind::Number => {
                let column = self.column(field);
                match comparison.accepts(0.cmp(number)) {
                    true => self.push(column).push(" IS NOT NULL"),
                    false => self.push("FALSE"),
                }
            }
            (field, Literal::Int(number)) if field.kind() == FieldKind::Number => {
                let column = self.column(field);
                self.push(column).push(operator_text(comparison)).bind(Parameter::Int(*number))
            }
            (field, Literal::Text(text)) if field.kind() == FieldKind::Text => {
                let column = self.column(field);
                self.push(column).collate(comparison);
                self.push(operator_text(comparison)).bind(Parameter::Text(text.clone()))
            }
            _ => self.push("FALSE"),
        }
    }

    /// Compares an id. Ids are stored as signed integers with the same bits, so large ids are negative.
    fn compare_id(&mut self, column: &'static str, comparison: Comparison, number: i128) -> &mut Self {
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        let Ok(id) = u64::try_from(number) else {
            return match comparison.accepts(0.cmp(&number)) {
                true => self.push(column).push(" IS NOT NULL"),
                false => self.push("FALSE"),
            };
        };
        let id = id.cast_signed();
        match (comparison, id < 0) {
            (Equal | NotEqual, _) => self.push(column),
            (Less | LessOrEqual, false) => self.push(column).push(" >= 0 AND ").push(column),
            (Greater | GreaterOrEqual, false) => self.push(column).push(" < 0 OR ").push(column),
            (Less | LessOrEqual, true) => self.push(column).push(" >= 0 OR ").push(column),
            (Greater | GreaterOrEqual, true) => self.push(column).push(" < 0 AND ").push(column),
        };
        self.push(operator_text(comparison)).bind(Parameter::Int(id))
    }

    /// The column of a field that is not an extra key, or the expression for its value. The difference of two times may
    /// be too large for an integer. SQLite then continues with a double; PostgreSQL would report an error.
    fn column(&self, field: &Field) -> &'static str {
        match (field, self.dialect) {
            (Field::ArrivalDelay, Dialect::Sqlite) => "(arrived_ns - time_ns)",
            (Field::ArrivalDelay, Dialect::Postgres) => "(arrived_ns::numeric - time_ns)",
            (Field::Hour, _) => "((time_ns % 86400000000000 + 86400000000000) % 86400000000000 / 3600000000000)",
            // 1970-01-01 was a Thursday.
            (Field::Weekday, _) => {
                "((time_ns % 604800000000000 + 864000000000000) % 604800000000000 / 86400000000000 + 1)"
            }
            (field, _) => field.column().unwrap_or("NULL"),
        }
    }

    /// Appends the clause that compares text by code points. SQLite does so without a clause.
    fn collate(&mut self, comparison: Comparison) -> &mut Self {
        match (self.dialect, comparison) {
            (Dialect::Sqlite, _) | (_, Comparison::Equal | Comparison::NotEqual) => self,
            (Dialect::Postgres, _) => self.push(" COLLATE \"C\""),
        }
    }

    fn exists(&mut self, field: &Field) -> &mut Self {
        match field {
            Field::Extra(key) => self.extra_exists(key),
            field => {
                let column = self.column(field);
                self.push(column).push(" IS NOT NULL")
            }
        }
    }

    fn matches(&mut self, field: &Field, source: String) -> &mut Self {
        if let Field::Extra(key) = field
            && path::is_path(key)
        {
            return self.path_matches(key, source);
        }
        if field.kind() == FieldKind::Number {
            return self.push("FALSE");
        }
        match self.dialect {
            Dialect::Sqlite => self.push("matches(").value(field).push(", ").bind(Parameter::Text(source)).push(")"),
            Dialect::Postgres => self.value(field).push(" ~ ").bind(Parameter::Text(source)),
        }
    }

    fn phrase(&mut self, phrase: &Phrase) -> &mut Self {
        match self.dialect {
            Dialect::Sqlite => self
                .push("holds_words(message, ")
                .bind(Parameter::Text(phrase.words.join(" ") + if phrase.is_prefix { "*" } else { "" }))
                .push(")"),
            Dialect::Postgres => {
                // Letters and digits have no special meaning in a regular expression.
                // Words of some scripts are also found inside longer ones.
                let word = |word: &String| match is_part(word) {
                    true => format!("[[:alnum:]]*{word}[[:alnum:]]*"),
                    false => word.clone(),
                };
                let words: Vec<_> = phrase.words.iter().map(word).collect();
                let words = words.join("[^[:alnum:]]+");
                let end = if phrase.is_prefix { "" } else { "([^[:alnum:]]|$)" };
                let pattern = format!("(^|[^[:alnum:]]){words}{end}");
                self.push("message ~* ").bind(Parameter::Text(pattern))
            }
        }
    }
}

fn operator_text(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => " = ",
        Comparison::NotEqual => " <> ",
        Comparison::Less => " < ",
        Comparison::LessOrEqual => " <= ",
        Comparison::Greater => " > ",
        Comparison::GreaterOrEqual => " >= ",
    }
}
