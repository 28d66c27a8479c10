//! Parses the comparisons in a query. How a value is parsed depends on the field.

use std::borrow::Cow;

use super::field::FieldKind as Values;
use super::lexer::{self, Operator, QueryToken, TokenKind};
use super::misread;
use super::parser::{self, MAX_DEPTH, MAX_PATTERNS, Parser};
use super::tree::ColumnKind;
use super::{Comparison, Field, Filter, Literal, Pattern, QueryError, time};
use crate::decoders::convert;
use crate::value::Value;

impl<'a> Parser<'_, 'a> {
    /// Parses the value after an operator, and returns the comparison.
    pub fn comparison(&mut self, key: QueryToken<'a>, operator: Operator, depth: usize) -> Result<Filter, QueryError> {
        let Some(field) = parser::field(key) else {
            let message =
                format!("expected a field before the operator: for a key with this name, write \"{}\"", key.text);
            return Err(QueryError::new(self.text, key.position, message));
        };
        if let Some(message) = misread::reason_of_name(key) {
            return Err(QueryError::new(self.text, key.position, message));
        }
        self.check_column(&field, key.position)?;
        let value = match self.tokens.first().copied() {
            Some(token @ QueryToken { kind: TokenKind::Quoted(_), .. }) => token,
            Some(token @ QueryToken { kind: TokenKind::Word, .. }) if !parser::is_keyword(token.text) => token,
            Some(QueryToken { kind: TokenKind::Operator(Operator::Matches), .. }) => {
                return Err(self.error("expected a value: for a regular expression write `~` alone"));
            }
            Some(_) => return Err(self.error("expected a value: to search for this text, quote it")),
            None => return Err(self.error("expected a value")),
        };
        if value.kind == TokenKind::Word && value.text == "*" {
            let is_equal = match operator {
                Operator::Compare(Comparison::Equal) => true,
                Operator::Compare(Comparison::NotEqual) if depth < MAX_DEPTH => false,
                _ => return Err(self.error("`*` stands for any value: write FIELD=* or FIELD!=*")),
            };
            let exists = self.exists(key)?;
            self.next();
            return Ok(if is_equal { exists } else { Filter::Not(Box::new(exists)) });
        }
        let filter = match operator {
            Operator::Compare(comparison) => self.compare(field, comparison, value)?,
            Operator::Matches => self.matches(field, value)?,
            Operator::MatchesNot if depth >= MAX_DEPTH => {
                return Err(self.error(format!("more than {MAX_DEPTH} nested parentheses and `not`")));
            }
            Operator::MatchesNot => Filter::Not(Box::new(self.matches(field, value)?)),
        };
        self.next();
        Ok(filter)
    }

    fn matches(&mut self, field: Field, value: QueryToken<'a>) -> Result<Filter, QueryError> {
        let field = if field == Field::Thread { Field::ThreadName } else { field };
        if field.kind() == Values::Number {
            return Err(self.error(format!("{} is a number: compare it with =, <, >, <= or >=", field.name())));
        }
        self.patterns += 1;
        if self.patterns > MAX_PATTERNS {
            return Err(self.error(format!("more than {MAX_PATTERNS} regular expressions: join some with `|` in one")));
        }
        // Keep backslashes: they belong to the regular expression, which also reads `\"` as a quote.
        let source = match value.kind {
            TokenKind::Quoted(inner) => inner,
            _ => value.text,
        };
        match Pattern::new(source) {
            Ok(pattern) => Ok(Filter::Matches(field, pattern)),
            Err(error) => Err(self.error(format!("invalid regular expression: {error}"))),
        }
    }

    pub fn compare(&self, field: Field, comparison: Comparison, value: QueryToken<'a>) -> Result<Filter, QueryError> {
        let (text, is_quoted) = match value.kind {
            TokenKind::Quoted(inner) => (lexer::unquoted(inner), true),
            _ => (Cow::Borrowed(value.text), false),
        };
        if !is_quoted && text.contains('*') {
            return Err(self.error("`*` is not a wildcard: write ~\"regex\", or quote the text to search for it"));
        }
        if !is_quoted && misread::is_in_single_quotes(&text) {
            let inner = text.trim_matches('\'');
            return Err(self.error(format!("text has double quotes: write \"{inner}\"")));
        }
        // A column of a group, for example the first time.
        let kind = match &field {
            Field::Extra(_) => self.kind_of(&field),
            _ => ColumnKind::Other,
        };
        let as_kind = match kind {
            ColumnKind::Time => Some(Field::Time),
            ColumnKind::Level => Some(Field::Level),
            ColumnKind::Other => None,
        };
        if let Some(known) = as_kind {
            return match text.parse() {
                Ok(number) => Ok(Filter::Compare(field, comparison, Literal::Int(number))),
                Err(_) => Ok(match self.compare(known, comparison, value)? {
                    Filter::Compare(_, comparison, literal) => Filter::Compare(field, comparison, literal),
                    other => other,
                }),
            };
        }
        let (field, literal) = match field {
            Field::ArrivalDelay => match time::parse_delay(&text) {
                Some(length) => (field, Literal::Int(length)),
                None => {
                    return Err(
                        self.error("not a length of time: write 5m, or -5m for a clock ahead (ns, ms, s, m, h, d)")
                    );
                }
            },
            Field::Time | Field::Arrived => match time::parse_time(&text, self.now_ns) {
                Ok(moment) => (field, Literal::Int(moment)),
                Err(_) => return Err(self.error(format!("not a time: write {}", time::FORMS))),
            },
            Field::Level => match text.parse().ok().or_else(|| convert::level(&text).map(i64::from)) {
                Some(level) => (field, Literal::Int(level)),
                None => {
                    return Err(self.error(
                        "unknown level: write debug, info, warning, error, critical or a \
                        number",
                    ));
                }
            },
            Field::Thread if is_quoted || !text.bytes().all(|byte| byte.is_ascii_digit()) => {
                (Field::ThreadName, Literal::Text(text.into_owned()))
            }
            Field::Process | Field::Thread if text.parse::<u64>().is_ok_and(|id| id > i64::MAX.cast_unsigned()) => {
                (field, text.parse().map_or(Literal::Null, Literal::Large))
            }
            Field::Line | Field::Process | Field::Thread | Field::Hour | Field::Weekday => match text.parse() {
                Ok(number) => (field, Literal::Int(number)),
                Err(_) => {
                    let largest = match field {
                        Field::Hour => 23,
                        Field::Weekday => 7,
                        Field::Line => u32::MAX.into(),
                        _ => u64::MAX,
                    };
                    return Err(self.error(format!("{} is a whole number up to {largest}", field.name())));
                }
            },
            Field::Extra(_) if !is_quoted => (field, parse_json(&text)),
            _ => (field, Literal::Text(text.into_owned())),
        };
        let is_ordered = !matches!(literal, Literal::Bool(_) | Literal::Null);
        if !is_ordered && !matches!(comparison, Comparison::Equal | Comparison::NotEqual) {
            return Err(self.error("true, false and null have no order: compare with = or !="));
        }
        Ok(Filter::Compare(field, comparison, literal))
    }
}

/// Parses a number, `true`, `false` or `null`, written as in JSON and in records. Anything else is text.
pub(super) fn parse_json(text: &str) -> Literal {
    if let Some(number) = large_integer(text) {
        return Literal::Large(number);
    }
    let is_digit = |first: char| first == '-' || first.is_ascii_digit();
    let may_be = matches!(text, "true" | "false" | "null") || text.starts_with(is_digit);
    match may_be.then(|| serde_json::from_str(text)) {
        Some(Ok(Value::Null)) => Literal::Null,
        Some(Ok(Value::Bool(value))) => Literal::Bool(value),
        Some(Ok(Value::Int(value))) => Literal::Int(value),
        Some(Ok(Value::Float(value))) => Literal::Float(value),
        _ => Literal::Text(text.to_owned()),
    }
}

/// The number that a text is, written as in JSON. `None`: it is no number, or infinite.
pub fn number_in(text: &str) -> Option<Value<'static>> {
    match parse_json(text) {
        Literal::Int(number) => Some(Value::Int(number)),
        Literal::Float(number) if number.is_finite() => Some(Value::Float(number)),
        Literal::Large(number) => Some(Value::Float(number as f64)),
        _ => None,
    }
}

/// Number of digits of the largest integers that are compared as numbers. All of them fit the type.
const MAX_DIGITS: usize = 38;

/// An integer that does not fit in 64 bits with a sign, written as decoders write it: they keep it as text. `None`: the
/// text is something else, or has more than 38 digits.
pub fn large_integer(text: &str) -> Option<i128> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_large = (19..=MAX_DIGITS).contains(&digits.len()) && !digits.starts_with('0');
    let number = (is_large && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok()).flatten();
    number.filter(|number| i64::try_from(*number).is_err())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_beyond_64_bits_are_recognised() {
        for (expected, text) in [
            (Some(1 << 63), "9223372036854775808"),
            (Some(-(1 << 63) - 1), "-9223372036854775809"),
            (Some(99_999_999_999_999_999_999_999_999_999_999_999_999), "99999999999999999999999999999999999999"),
            (None, "9223372036854775807"),
            (None, "-9223372036854775808"),
            (None, "09223372036854775808"),
            (None, "+9223372036854775808"),
            (None, "9223372036854775808.0"),
            (None, "999999999999999999999999999999999999999"),
            (None, ""),
            (None, "-"),
        ] {
            assert_eq!(expected, large_integer(text), "{text}");
        }
    }
}
