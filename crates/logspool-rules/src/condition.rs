//! A condition on one field of a record: `status>=400`.

use std::borrow::Cow;

use logspool_record::Value;

/// A comparison of a field with a constant.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// Name of the field.
    pub field: String,
    operator: Operator,
    constant: String,
    number: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// In this order, so that `>=` is found before `>`.
const OPERATORS: [(&str, Operator); 6] = [
    (">=", Operator::AtLeast),
    ("<=", Operator::AtMost),
    ("!=", Operator::NotEqual),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("=", Operator::Equal),
];

impl Condition {
    /// Reads a condition. `None` if the text is none.
    pub fn parse(text: &str) -> Option<Self> {
        let at = text.find(['<', '>', '=', '!'])?;
        let (field, rest) = text.split_at(at);
        let (sign, operator) = OPERATORS.iter().find(|(sign, _)| rest.starts_with(sign))?;
        let constant = &rest[sign.len()..];
        if field.is_empty() || constant.is_empty() {
            return None;
        }
        let number = constant.parse().ok();
        let orders = !matches!(operator, Operator::Equal | Operator::NotEqual);
        if orders && number.is_none() {
            return None;
        }
        Some(Self { field: field.to_owned(), operator: *operator, constant: constant.to_owned(), number })
    }

    /// Whether a value fulfils the condition. Texts that are numbers are compared as numbers.
    pub fn holds(&self, value: Value<'_>) -> bool {
        let text = text_of(value);
        match (self.number, text.parse::<f64>().ok()) {
            (Some(constant), Some(number)) => match self.operator {
                Operator::Equal => number == constant,
                Operator::NotEqual => number != constant,
                Operator::Less => number < constant,
                Operator::AtMost => number <= constant,
                Operator::Greater => number > constant,
                Operator::AtLeast => number >= constant,
            },
            _ => match self.operator {
                Operator::Equal => text == self.constant,
                Operator::NotEqual => text != self.constant,
                _ => false,
            },
        }
    }
}

/// A value as text, as Python's `str` shows it for texts, numbers, True, False and None. A tuple is empty text.
pub fn text_of(value: Value<'_>) -> Cow<'_, str> {
    match value {
        Value::Str(text) | Value::Rendered(text) | Value::BigInt(text) => text.into(),
        Value::None => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Int(number) => number.to_string().into(),
        Value::Uint(number) | Value::Pointer(number) => number.to_string().into(),
        Value::Float(number) => number.to_string().into(),
        Value::Float32(number) => number.to_string().into(),
        Value::Char(character) => character.to_string().into(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes),
        Value::Tuple(_) => "".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_compare_numbers_and_texts() {
        for (text, value, holds) in [
            ("status>=400", Value::Int(500), true),
            ("status>=400", Value::Int(200), false),
            ("status>=400", Value::Str("404"), true),
            ("status>=400", Value::Str("ok"), false),
            ("ms>1.5", Value::Float(1.6), true),
            ("ms<=1.5", Value::Float(1.5), true),
            ("outcome=error", Value::Str("error"), true),
            ("outcome!=ok", Value::Str("error"), true),
            ("outcome!=ok", Value::Str("ok"), false),
            ("flag=True", Value::Bool(true), true),
        ] {
            assert_eq!(holds, Condition::parse(text).unwrap().holds(value), "{text} {value:?}");
        }
        for text in ["", "status", ">=4", "status>=", "status>=many", "!x"] {
            assert_eq!(None, Condition::parse(text), "{text}");
        }
    }
}
