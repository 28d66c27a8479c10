//! Texts that identify values.

use std::fmt::Write;

use crate::value::Value;

/// A text that is the same for equal values only. The keys of maps are sorted, because PostgreSQL changes their order.
pub fn identity(value: &Value<'_>) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

/// Appends the identity of a value. Texts have their length before them, so nothing has to be escaped.
fn write(value: &Value<'_>, to: &mut String) {
    let mut push_text = |text: &str| {
        // Writing to a string cannot fail.
        let _ = write!(to, "t{}:{text}", text.len());
    };
    match value {
        // Infinities and NaN become text when a record is written as JSON.
        Value::Float(number) if number.is_nan() => push_text("nan"),
        Value::Float(number) if number.is_infinite() => push_text(if *number > 0.0 { "inf" } else { "-inf" }),
        Value::Text(text) => push_text(text),
        Value::Null => to.push('n'),
        Value::Bool(value) => drop(write!(to, "b{value}")),
        Value::Int(number) => drop(write!(to, "i{number}")),
        Value::Float(number) => match whole(*number) {
            Some(number) => drop(write!(to, "i{number}")),
            None => drop(write!(to, "f{number:?}")),
        },
        Value::List(values) => {
            to.push('[');
            for value in values {
                write(value, to);
                to.push(',');
            }
            to.push(']');
        }
        Value::Map(pairs) => {
            let mut pairs: Vec<_> = pairs.iter().collect();
            pairs.sort_by(|(one, _), (two, _)| one.cmp(two));
            to.push('{');
            for (name, value) in pairs {
                write(&Value::Text(name.as_ref().into()), to);
                write(value, to);
            }
            to.push('}');
        }
    }
}

/// A double as an integer, if it is one.
pub fn whole(number: f64) -> Option<i64> {
    let is_whole = number.fract() == 0.0 && (-9.0e18..9.0e18).contains(&number);
    // The cast is exact for these numbers.
    is_whole.then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_of_nested_values_grows_with_their_size_only() {
        let nested = (0..200).fold(Value::text("\"\\"), |inner, _| Value::List(vec![inner, Value::Null]));

        assert!(identity(&nested).len() < 2_000);
        assert_eq!(identity(&Value::Int(2)), identity(&Value::Float(2.0)));
        assert_eq!(identity(&Value::text("nan")), identity(&Value::Float(f64::NAN)));
    }
}
