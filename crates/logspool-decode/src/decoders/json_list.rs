//! Reads a JSON list value by value. Some collectors send many records as one list over HTTP.

use std::fmt;

use serde::Deserializer as _;
use serde::de::{SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Calls `each` with the text of each value, in order. Keeps no value.
///
/// # Errors
///
/// The bytes are not a JSON list. `each` was called with all values before the error.
pub fn read(list: &[u8], each: impl FnMut(&[u8])) -> Result<(), serde_json::Error> {
    let mut json = serde_json::Deserializer::from_slice(list);
    json.deserialize_seq(ListVisitor(each))?;
    json.end()
}

struct ListVisitor<F>(F);

impl<'de, F: FnMut(&[u8])> Visitor<'de> for ListVisitor<F> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a list")
    }

    fn visit_seq<List: SeqAccess<'de>>(mut self, mut list: List) -> Result<(), List::Error> {
        while let Some(value) = list.next_element::<&RawValue>()? {
            (self.0)(value.get().as_bytes());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(list: &str) -> Result<Vec<String>, serde_json::Error> {
        let mut values = Vec::new();
        read(list.as_bytes(), |value| values.push(String::from_utf8_lossy(value).into_owned()))?;
        Ok(values)
    }

    #[test]
    fn values_come_one_after_the_other() {
        assert_eq!(Vec::<String>::new(), values(" [ ] ").unwrap());
        assert_eq!(vec![r#"{"a":[1]}"#, "2", "\"ü\""], values("[{\"a\":[1]} ,\n 2,\"ü\"]\n").unwrap());
    }

    #[test]
    fn anything_but_a_list_is_an_error() {
        for bad in ["", "{}", "[1", "[1,]", "[1] 2", "[{]", "[\"\u{1}\"]"] {
            assert!(values(bad).is_err(), "{bad}");
        }
        assert!(read(b"[\"\xFF\"]", |_| {}).is_err());
        assert!(values(&"[".repeat(100_000)).is_err());
    }
}
