//! The SQL functions that SQLite needs for the SQL that [`super::Sql`] writes.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, Result};

use super::matcher::{compare_numbers, text_of};
use super::{Field, FieldValues, Filter, Pattern, Phrase, holds, large_integer, path};
use crate::cancel::QueryDeadline;
use crate::record::Record;
use crate::value::Value;

/// Registers `holds_words(text, phrase)`, `matches(text, pattern)`, `large_order(value, number)` and functions for paths
/// with a connection. The first two return 1 or 0. For NULL they return 0. The third returns the order of two numbers as -1, 0 or 1. One of
/// them is an [integer as text](super::large_integer); for other text it returns NULL.
///
/// If the phrase or the pattern is a parameter of a statement, it is compiled once for the statement. These functions
/// fail as soon as the deadline `until` has passed. They check it themselves, because SQLite checks it only after some
/// hundred rows, and a pattern may take long for each row.
///
/// # Errors
///
/// The connection is busy.
pub fn register(connection: &Connection, until: &QueryDeadline) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_DIRECTONLY;
    let time = until.clone();
    connection.create_scalar_function("holds_words", 2, flags, move |context: &Context<'_>| {
        check(&time)?;
        let Some(text) = text(context)? else { return Ok(false) };
        let phrase: Arc<Option<Phrase>> = context.get_or_create_aux(1, |value| value.as_str().map(Phrase::new))?;
        Ok(phrase.as_ref().as_ref().is_some_and(|phrase| phrase.is_in(text)))
    })?;
    connection.create_scalar_function("large_order", 2, flags, |context: &Context<'_>| {
        let (value, literal) = (AnyNumber::of(context.get_raw(0)), AnyNumber::of(context.get_raw(1)));
        Ok(value.zip(literal).and_then(|(value, literal)| value.order(literal)).map(|order| order as i64))
    })?;
    let time = until.clone();
    connection.create_scalar_function("path_holds", 2, flags, move |context: &Context<'_>| {
        check(&time)?;
        let Some(json) = text(context)? else { return Ok(false) };
        let filter: Arc<Option<Filter>> = context.get_or_create_aux(1, |value| {
            value.as_str().map(|text| super::parse(text, 0).ok().map(|parsed| parsed.filter))
        })?;
        Ok(filter.as_ref().as_ref().is_some_and(|filter| holds(filter, &JsonFields(Record::fields_from_json(json)))))
    })?;
    let time = until.clone();
    connection.create_scalar_function("path_matches", 3, flags, move |context: &Context<'_>| {
        check(&time)?;
        let Some(json) = text(context)? else { return Ok(false) };
        let name = Field::Extra(context.get_raw(1).as_str()?.to_owned());
        type Failure = Box<dyn std::error::Error + Send + Sync>;
        let pattern = context
            .get_or_create_aux(2, |value| -> std::result::Result<_, Failure> { Ok(Pattern::new(value.as_str()?)?) })?;
        let filter = Filter::Matches(name, (*pattern).clone());
        Ok(holds(&filter, &JsonFields(Record::fields_from_json(json))))
    })?;
    let time = until.clone();
    connection.create_scalar_function("path_text", 2, flags, move |context: &Context<'_>| {
        check(&time)?;
        let Some(json) = text(context)? else { return Ok(None) };
        let fields = JsonFields(Record::fields_from_json(json));
        let found = path::values(context.get_raw(1).as_str()?, |key| fields.extra(key));
        Ok(found.first().and_then(|value| text_of(value)).map(Cow::into_owned))
    })?;
    let time = until.clone();
    connection.create_scalar_function("matches", 2, flags, move |context: &Context<'_>| {
        check(&time)?;
        let Some(text) = text(context)? else { return Ok(false) };
        type Failure = Box<dyn std::error::Error + Send + Sync>;
        let pattern = context
            .get_or_create_aux(1, |value| -> std::result::Result<_, Failure> { Ok(Pattern::new(value.as_str()?)?) })?;
        Ok(pattern.is_match(text))
    })
}

/// The fields of a record without its other parts.
struct JsonFields<'a>(Vec<(Cow<'a, str>, Value<'a>)>);

impl<'a> FieldValues<'a> for JsonFields<'a> {
    fn text(&self, _: &Field) -> Option<&str> {
        None
    }

    fn number(&self, _: &Field) -> Option<i128> {
        None
    }

    fn extra(&self, key: &str) -> Option<&Value<'a>> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }
}

/// A number in SQLite, of any size.
#[derive(Debug, Clone, Copy)]
enum AnyNumber {
    Whole(i128),
    Double(f64),
}

impl AnyNumber {
    fn of(value: ValueRef<'_>) -> Option<Self> {
        Some(match value {
            ValueRef::Integer(number) => Self::Whole(number.into()),
            ValueRef::Real(number) => Self::Double(number),
            ValueRef::Text(text) => Self::Whole(large_integer(str::from_utf8(text).ok()?)?),
            _ => return None,
        })
    }

    fn order(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Whole(one), Self::Whole(two)) => Some(one.cmp(&two)),
            (Self::Whole(one), Self::Double(two)) => Some(compare_numbers(one, two)),
            (Self::Double(one), Self::Whole(two)) => Some(compare_numbers(two, one).reverse()),
            (Self::Double(one), Self::Double(two)) => one.partial_cmp(&two),
        }
    }
}

fn check(until: &QueryDeadline) -> Result<()> {
    if until.has_passed() {
        return Err(Error::UserFunctionError("the time limit has passed".into()));
    }
    Ok(())
}

fn text<'a>(context: &'a Context<'_>) -> Result<Option<&'a str>> {
    Ok(context.get_raw(0).as_str_or_null()?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cancel::CancelToken;

    #[test]
    fn sqlite_knows_words_and_patterns() {
        let connection = Connection::open_in_memory().unwrap();
        let until = QueryDeadline::new(Duration::from_secs(60), &CancelToken::default());
        register(&connection, &until).unwrap();
        let ask = |sql: &str, parameters: [&str; 2]| connection.query_row(sql, parameters, |row| row.get::<_, bool>(0));

        assert_eq!(Ok(true), ask("SELECT holds_words(?1, ?2)", ["Disk: FULL!", "disk full"]));
        assert_eq!(Ok(false), ask("SELECT holds_words(?1, ?2)", ["Disk is full", "disk full"]));
        assert_eq!(Ok(true), ask("SELECT matches(?1, ?2)", ["status 503", "5..$"]));
        assert_eq!(Ok(false), ask("SELECT matches(NULL, ?2) OR holds_words(NULL, ?1)", ["a", ""]));
        assert!(ask("SELECT matches(?1, ?2)", ["", "("]).unwrap_err().to_string().contains("unclosed group"));
        until.cancel.cancel();
        for sql in ["SELECT matches(?1, ?2)", "SELECT holds_words(?1, ?2)"] {
            assert!(ask(sql, ["a", "a"]).unwrap_err().to_string().contains("the time limit has passed"));
        }
    }
}
