//! A filter as SQL. What a user wrote is in the parameters alone; the text is made of the names of columns and of what
//! stands in this file.
//!
//! The columns are those of [`crate::batch::Row`], in both stores. Times and ids are 64-bit integers; an id beyond them
//! is stored as the negative number with the same bits, and comes after all others here as everywhere. `fields` is text
//! with a JSON object in SQLite and `jsonb` in PostgreSQL.
//!
//! A comparison with NULL is unknown in SQL, and so would be its negation. So negations are moved down to what can be
//! unknown, and end there in `IS NOT TRUE`: the others stay plain comparisons that an index can serve.
//!
//! What PostgreSQL does in its own way: regular expressions are its own, "advanced" ones; letters and their case are
//! those of the database's locale; extra values that are no text match as `jsonb` prints them, lists with a space after
//! each comma.

mod extra;

use super::field::Kind;
use super::{Comparison, Field, Filter, Literal, Phrase};

/// Whose SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite with the functions of [`super::functions`].
    Sqlite,
    /// PostgreSQL.
    Postgres,
}

/// A value that goes beside the text.
#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    /// A whole number: `int8` in PostgreSQL.
    Int(i64),
    /// Another number: `float8` in PostgreSQL.
    Float(f64),
    /// Text, without NUL characters.
    Text(String),
}

/// SQL that is being written.
#[derive(Debug, Clone)]
pub struct Sql {
    dialect: Dialect,
    text: String,
    parameters: Vec<Parameter>,
}

/// Whether a condition is to be true or not to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sense {
    Holds,
    Fails,
}

impl Sense {
    fn other(self) -> Self {
        match self {
            Self::Holds => Self::Fails,
            Self::Fails => Self::Holds,
        }
    }
}

impl Sql {
    /// Nothing yet.
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, text: String::new(), parameters: Vec::new() }
    }

    /// The text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The parameters so far: the first one is `?1` in SQLite and `$1` in PostgreSQL.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Adds text that is written in the program.
    pub fn push(&mut self, text: &'static str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    /// Adds a parameter, and its mark to the text.
    pub fn bind(&mut self, parameter: Parameter) -> &mut Self {
        self.parameters.push(parameter);
        self.mark(self.parameters.len())
    }

    /// The mark of a parameter, by its number from 1.
    fn mark(&mut self, number: usize) -> &mut Self {
        let sign = match self.dialect {
            Dialect::Sqlite => '?',
            Dialect::Postgres => '$',
        };
        self.text.push(sign);
        self.text.push_str(&number.to_string());
        // PostgreSQL would guess a narrower type from the column beside it.
        if self.dialect == Dialect::Postgres {
            self.text.push_str(match self.parameters[number - 1] {
                Parameter::Int(_) => "::int8",
                Parameter::Float(_) => "::float8",
                Parameter::Text(_) => "::text",
            });
        }
        self
    }

    /// Adds a condition that stands by itself: true for the records of the filter, false or unknown for the others. So it may
    /// be joined with others by `AND`, but not be negated.
    pub fn condition(&mut self, filter: &Filter) -> &mut Self {
        self.filter(filter, Sense::Holds)
    }

    /// Adds an expression for the value of a field as text, for counting; NULL where there is none.
    pub fn value(&mut self, field: &Field) -> &mut Self {
        match (field, self.dialect) {
            (Field::Extra(key), _) => {
                let key = self.key(key);
                self.extra_text(key)
            }
            (Field::Process | Field::Thread, Dialect::Sqlite) => {
                let column = column(field);
                self.push("CASE WHEN ").push(column).push(" IS NOT NULL THEN printf('%u', ").push(column).push(") END")
            }
            (Field::Process | Field::Thread, Dialect::Postgres) => {
                let column = column(field);
                self.push("CASE WHEN ").push(column).push(" < 0 THEN (").push(column);
                self.push("::numeric + 18446744073709551616)::text ELSE ").push(column).push("::text END")
            }
            (field, _) if field.kind() == Kind::Number => self.push("CAST(").push(column(field)).push(" AS TEXT)"),
            (field, _) => self.push(column(field)),
        }
    }

    /// Adds an expression for the number of the interval that a record falls into: 0 is the one that begins in 1970,
    /// each is `interval_ns` long. It begins at the number times `interval_ns`, which may be out of range for a record
    /// at the end of time: multiply with `saturating_mul`.
    pub fn interval(&mut self, interval_ns: i64) -> &mut Self {
        // Division goes towards zero in both; intervals before 1970 begin further from it.
        self.push("CASE WHEN time_ns >= 0 THEN time_ns / ").bind(Parameter::Int(interval_ns));
        let number = self.parameters.len();
        self.push(" ELSE (time_ns + 1) / ").mark(number).push(" - 1 END")
    }

    fn filter(&mut self, filter: &Filter, sense: Sense) -> &mut Self {
        match (filter, sense) {
            (Filter::All, Sense::Holds) => self.push("TRUE"),
            (Filter::All, Sense::Fails) => self.push("FALSE"),
            (Filter::And(filters), Sense::Holds) | (Filter::Or(filters), Sense::Fails) => {
                self.join(filters, " AND ", "TRUE", sense)
            }
            (Filter::Or(filters), Sense::Holds) | (Filter::And(filters), Sense::Fails) => {
                self.join(filters, " OR ", "FALSE", sense)
            }
            (Filter::Not(filter), sense) => self.filter(filter, sense.other()),
            (Filter::Compare(field, Comparison::NotEqual, literal), sense) => {
                self.leaf(sense.other(), |sql| sql.compare(field, Comparison::Equal, literal))
            }
            (Filter::Compare(field, comparison, literal), sense) => {
                self.leaf(sense, |sql| sql.compare(field, *comparison, literal))
            }
            (Filter::Phrase(phrase), sense) => self.leaf(sense, |sql| sql.phrase(phrase)),
            (Filter::Matches(field, pattern), sense) => {
                self.leaf(sense, |sql| sql.matches(field, pattern.source().to_owned()))
            }
        }
    }

    /// Joined as a balanced tree: a thousand of them in a row would be as deep as SQLite allows.
    fn join(&mut self, filters: &[Filter], word: &'static str, none: &'static str, sense: Sense) -> &mut Self {
        match filters {
            [] => self.push(none),
            [filter] => self.filter(filter, sense),
            several => {
                let (left, right) = several.split_at(several.len() / 2);
                self.push("(").join(left, word, none, sense).push(word).join(right, word, none, sense).push(")")
            }
        }
    }

    fn leaf(&mut self, sense: Sense, write: impl FnOnce(&mut Self) -> &mut Self) -> &mut Self {
        let (begin, end) = match sense {
            Sense::Holds => ("(", ")"),
            Sense::Fails => ("((", ") IS NOT TRUE)"),
        };
        write(self.push(begin));
        self.push(end)
    }

    /// Any comparison but `NotEqual`, which is the negation of `Equal`.
    fn compare(&mut self, field: &Field, comparison: Comparison, literal: &Literal) -> &mut Self {
        match (field, literal) {
            (Field::Extra(key), literal) => self.compare_extra(key, comparison, literal),
            (Field::Process | Field::Thread, Literal::Int(number)) => {
                self.compare_id(column(field), comparison, *number)
            }
            (field, Literal::Int(number)) if field.kind() == Kind::Number => {
                self.push(column(field)).push(sign(comparison)).bind(Parameter::Int(*number))
            }
            (field, Literal::Text(text)) if field.kind() == Kind::Text => {
                self.push(column(field)).collate(comparison);
                self.push(sign(comparison)).bind(Parameter::Text(text.clone()))
            }
            _ => self.push("FALSE"),
        }
    }

    /// An id is stored with the bits that it has: those of the upper half are negative.
    fn compare_id(&mut self, column: &'static str, comparison: Comparison, number: i64) -> &mut Self {
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        let sign = sign(comparison);
        match comparison {
            Greater | GreaterOrEqual if number < 0 => self.push(column).push(" IS NOT NULL"),
            _ if number < 0 => self.push("FALSE"),
            Equal | NotEqual => self.push(column).push(sign).bind(Parameter::Int(number)),
            Less | LessOrEqual => {
                self.push(column).push(" >= 0 AND ").push(column).push(sign).bind(Parameter::Int(number))
            }
            Greater | GreaterOrEqual => {
                self.push(column).push(" < 0 OR ").push(column).push(sign).bind(Parameter::Int(number))
            }
        }
    }

    /// Code points in their order, as SQLite compares anyway.
    fn collate(&mut self, comparison: Comparison) -> &mut Self {
        match (self.dialect, comparison) {
            (Dialect::Sqlite, _) | (_, Comparison::Equal | Comparison::NotEqual) => self,
            (Dialect::Postgres, _) => self.push(" COLLATE \"C\""),
        }
    }

    fn matches(&mut self, field: &Field, source: String) -> &mut Self {
        if field.kind() == Kind::Number {
            return self.push("FALSE");
        }
        match self.dialect {
            Dialect::Sqlite => self.push("matches(").value(field).push(", ").bind(Parameter::Text(source)).push(")"),
            Dialect::Postgres => self.value(field).push(" ~ ").bind(Parameter::Text(source)),
        }
    }

    fn phrase(&mut self, phrase: &Phrase) -> &mut Self {
        match self.dialect {
            Dialect::Sqlite => {
                self.push("holds_words(message, ").bind(Parameter::Text(phrase.words.join(" "))).push(")")
            }
            Dialect::Postgres => {
                // Letters and digits stand for themselves in a regular expression.
                let words = phrase.words.join("[^[:alnum:]]+");
                let pattern = format!("(^|[^[:alnum:]]){words}([^[:alnum:]]|$)");
                self.push("message ~* ").bind(Parameter::Text(pattern))
            }
        }
    }
}

/// The column of a field that is no extra key.
fn column(field: &Field) -> &'static str {
    field.column().unwrap_or("NULL")
}

fn sign(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => " = ",
        Comparison::NotEqual => " <> ",
        Comparison::Less => " < ",
        Comparison::LessOrEqual => " <= ",
        Comparison::Greater => " > ",
        Comparison::GreaterOrEqual => " >= ",
    }
}
