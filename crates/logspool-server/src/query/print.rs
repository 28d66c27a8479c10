//! Writes a tree as the text of a query. [`super::parse`] reads the text as the same tree.

use std::borrow::Cow;
use std::fmt::{self, Display, Write};

use chrono::SecondsFormat;

use super::{
    Comparison, Expression, Field, Filter, Literal, Stage, lexer, literal, misread, parser, stage_parser, time,
};
use crate::clock::rfc3339;
use crate::decoders::convert;

impl Display for Expression {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.filter.fmt(to)?;
        if let Some(stage) = &self.stage {
            write!(to, " | {stage}")?;
        }
        self.pipeline.fmt(to)
    }
}

impl Display for Filter {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => to.write_char('*'),
            Self::Phrase(phrase) => match (&phrase.words[..], if phrase.is_prefix { "*" } else { "" }) {
                ([word], star) if !parser::is_keyword(word) && word != "exists" => write!(to, "{word}{star}"),
                (words, star) => write!(to, "\"{}{star}\"", words.join(" ")),
            },
            Self::Compare(field, comparison, literal) => compare(field, *comparison, literal, to),
            Self::Matches(field, pattern) => {
                write!(to, "{field}~\"")?;
                // A quote without a backslash can only be in a pattern that was not parsed from a query. Add the
                // backslash.
                let mut is_escaped = false;
                for character in pattern.source().chars() {
                    if character == '"' && !is_escaped {
                        to.write_char('\\')?;
                    }
                    is_escaped = character == '\\' && !is_escaped;
                    to.write_char(character)?;
                }
                to.write_char('"')
            }
            Self::Exists(field) => write!(to, "{field}=*"),
            Self::In(field, inner) => write!(to, "{field} in ({inner})"),
            Self::And(filters) => join(filters, " and ", to),
            Self::Or(filters) => join(filters, " or ", to),
            Self::Not(filter) => {
                to.write_str("not ")?;
                inner(filter, to)
            }
        }
    }
}

fn join(filters: &[Filter], word: &str, to: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (place, filter) in filters.iter().enumerate() {
        if place > 0 {
            to.write_str(word)?;
        }
        inner(filter, to)?;
    }
    Ok(())
}

/// Adds parentheses if the filter has several parts, so that the tree keeps its shape.
fn inner(filter: &Filter, to: &mut fmt::Formatter<'_>) -> fmt::Result {
    match filter {
        Filter::And(_) | Filter::Or(_) => write!(to, "({filter})"),
        _ => filter.fmt(to),
    }
}

fn compare(field: &Field, comparison: Comparison, literal: &Literal, to: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(to, "{field}{comparison}")?;
    match (field, literal) {
        (Field::ArrivalDelay, Literal::Int(length)) => to.write_str(&time::delay_text(*length)),
        (Field::Time | Field::Arrived, Literal::Int(time)) => to.write_str(&rfc3339(*time, SecondsFormat::AutoSi)),
        (Field::Level, Literal::Int(number)) => match u16::try_from(*number).ok().and_then(convert::level_name) {
            Some(name) => to.write_str(name),
            None => number.fmt(to),
        },
        (_, literal) => literal.fmt(to),
    }
}

impl Display for Literal {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => number.fmt(to),
            Self::Large(number) => number.fmt(to),
            // `{:?}` always writes a point or an exponent, so the parser reads the value as a double again.
            Self::Float(number) => write!(to, "{number:?}"),
            Self::Text(text) => quote(text, to),
            Self::Bool(value) => value.fmt(to),
            Self::Null => to.write_str("null"),
        }
    }
}

impl Display for Comparison {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        })
    }
}

impl Display for Field {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Extra(key)
                if !lexer::is_word(key)
                    || parser::is_keyword(key)
                    || !stage_parser::is_plain_column(key)
                    || misread::needs_quotes(key)
                    || Self::named(key) != *self =>
            {
                quote(key, to)
            }
            field => to.write_str(field.name()),
        }
    }
}

impl Display for Stage {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CountBy(field) => write!(to, "count by {field}"),
            Self::LastBy(field) => write!(to, "last by {field}"),
            Self::Histogram { interval_ns } => {
                write!(to, "histogram {}", time::delay_text(*interval_ns))
            }
        }
    }
}

fn quote(text: &str, to: &mut fmt::Formatter<'_>) -> fmt::Result {
    to.write_str(&quoted(text))
}

pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Text as the value of an extra key. It is quoted unless the parser reads the bare text as the same value.
pub fn quoted_value(text: &str) -> Cow<'_, str> {
    let is_bare = lexer::is_word(text) && !parser::is_keyword(text) && !text.contains('*');
    match literal::parse_json(text) {
        Literal::Text(_) | Literal::Large(_) if is_bare => Cow::Borrowed(text),
        _ => Cow::Owned(quoted(text)),
    }
}
