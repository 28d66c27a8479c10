//! Texts that identify values.

use crate::value::Value;

/// A text that is the same for equal values only. The keys of maps are sorted, because PostgreSQL changes their order.
pub fn identity(value: &Value<'_>) -> String {
    match value {
        Value::Null => "n".to_owned(),
        Value::Bool(value) => format!("b{value}"),
        Value::Int(number) => format!("i{number}"),
        // Infinities and NaN become text when a record is written as JSON.
        Value::Float(number) if number.is_nan() => "tnan".to_owned(),
        Value::Float(number) if number.is_infinite() => if *number > 0.0 { "tinf" } else { "t-inf" }.to_owned(),
        Value::Float(number) => match whole(*number) {
            Some(number) => format!("i{number}"),
            None => format!("f{number:?}"),
        },
        Value::Text(text) => format!("t{text}"),
        Value::List(values) => {
            let values: Vec<_> = values.iter().map(identity).collect();
            format!("l{values:?}")
        }
        Value::Map(pairs) => {
            let mut pairs: Vec<_> = pairs.iter().map(|(name, value)| (name, identity(value))).collect();
            pairs.sort();
            format!("m{pairs:?}")
        }
    }
}

/// A double as an integer, if it is one.
pub fn whole(number: f64) -> Option<i64> {
    let is_whole = number.fract() == 0.0 && (-9.0e18..9.0e18).contains(&number);
    // The cast is exact for these numbers.
    is_whole.then_some(number as i64)
}
