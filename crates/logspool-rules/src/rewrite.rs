//! Writes the values of a record anew, with secrets replaced and control characters escaped.

use logspool_record::{Context, Encoder, Entry, Value, Values, tag};

use crate::defaults::REPLACEMENT;
use crate::redaction::Redaction;
use logspool_record::format::control::{self, LineEndRule};

/// What to change in a record.
pub struct RewriteRules<'a> {
    pub redaction: Option<&'a Redaction>,
    pub escape_control: bool,
}

impl RewriteRules<'_> {
    /// Writes the changed values to `out`, and returns whether anything changed. If nothing changed, `out` holds nothing
    /// of use. `message` is the text of the record's message, and `text` is memory for one text.
    pub fn rewrite(&self, values: &[u8], message: &[u8], text: &mut Vec<u8>, out: &mut Vec<u8>) -> bool {
        if self.redaction.is_none() && !self.escape_control {
            return false;
        }
        if !self.concerns(values, message, text) {
            return false;
        }
        out.clear();
        let mut encoder = Encoder { bytes: std::mem::take(out) };
        let mut rest = Values::new(values);
        let mut has_message = false;
        while rest.rest().first().is_some_and(|tag| *tag >= tag::CONTEXT) {
            let before = rest.rest();
            let Some(Entry::Context(entry)) = rest.next_entry() else { break };
            let raw = &before[..before.len() - rest.rest().len()];
            match entry {
                Context::Message(shown) => {
                    has_message = true;
                    encoder.context_str(tag::MESSAGE, &self.changed(shown, LineEndRule::Escape, text));
                }
                Context::Exception(shown) => {
                    encoder.context_str(tag::EXCEPTION, &self.changed(shown, LineEndRule::Keep, text));
                }
                Context::Stack(shown) => {
                    encoder.context_str(tag::STACK, &self.changed(shown, LineEndRule::Keep, text));
                }
                Context::Field(name, value) => {
                    encoder.field(name);
                    self.push_named(&mut encoder, name, value, text);
                }
                Context::Item(name, value) => {
                    encoder.item(name);
                    self.push_named(&mut encoder, name, value, text);
                }
                _ => encoder.bytes.extend_from_slice(raw),
            }
        }
        // The arguments may hold the secret, so the changed message replaces them.
        if !has_message {
            let shown = String::from_utf8_lossy(message);
            let changed = self.changed(&shown, LineEndRule::Escape, text);
            if changed == shown {
                encoder.bytes.extend_from_slice(rest.rest());
            } else {
                encoder.context_str(tag::MESSAGE, &changed);
            }
        }
        *out = encoder.bytes;
        true
    }

    /// Whether the record has anything to change.
    fn concerns(&self, values: &[u8], message: &[u8], text: &mut Vec<u8>) -> bool {
        if self.redaction.is_some_and(|redaction| redaction.finds(message))
            || self.is_escaped(&String::from_utf8_lossy(message), LineEndRule::Escape, text)
        {
            return true;
        }
        let mut rest = Values::new(values);
        while rest.rest().first().is_some_and(|tag| *tag >= tag::CONTEXT) {
            let Some(Entry::Context(entry)) = rest.next_entry() else { return false };
            let is_concerned = match entry {
                Context::Exception(shown) | Context::Stack(shown) => {
                    self.redaction.is_some_and(|redaction| redaction.finds(shown.as_bytes()))
                        || self.is_escaped(shown, LineEndRule::Keep, text)
                }
                Context::Field(name, value) | Context::Item(name, value) => {
                    self.redaction.is_some_and(|redaction| redaction.has_key(name)) || self.concerns_value(value, text)
                }
                _ => false,
            };
            if is_concerned {
                return true;
            }
        }
        false
    }

    fn concerns_value(&self, value: Value<'_>, text: &mut Vec<u8>) -> bool {
        match value {
            Value::Str(shown) | Value::Rendered(shown) => {
                self.redaction.is_some_and(|redaction| redaction.finds(shown.as_bytes()))
                    || self.is_escaped(shown, LineEndRule::Escape, text)
            }
            Value::Bytes(shown) => self.redaction.is_some_and(|redaction| redaction.finds(shown)),
            Value::Tuple(mut items) => items.any(|item| self.concerns_value(item, text)),
            _ => false,
        }
    }

    fn is_escaped(&self, shown: &str, line_ends: LineEndRule, text: &mut Vec<u8>) -> bool {
        text.clear();
        self.escape_control && control::escape(shown, line_ends, text)
    }

    /// The text with its secrets replaced and its control characters escaped.
    pub fn changed(&self, shown: &str, line_ends: LineEndRule, text: &mut Vec<u8>) -> String {
        let mut changed = shown.to_owned();
        if let Some(redaction) = self.redaction
            && redaction.replace(shown.as_bytes(), text)
        {
            changed = String::from_utf8_lossy(text).into_owned();
        }
        if self.is_escaped(&changed, line_ends, text) {
            changed = String::from_utf8_lossy(text).into_owned();
        }
        changed
    }

    fn push_named(&self, encoder: &mut Encoder, name: &str, value: Value<'_>, text: &mut Vec<u8>) {
        if self.redaction.is_some_and(|redaction| redaction.has_key(name)) && value != Value::None {
            encoder.str(REPLACEMENT);
        } else {
            self.push_value(encoder, value, text);
        }
    }

    fn push_value(&self, encoder: &mut Encoder, value: Value<'_>, text: &mut Vec<u8>) {
        match value {
            Value::None => encoder.none(),
            Value::Bool(value) => encoder.bool(value),
            Value::Int(value) => encoder.int(value),
            Value::Uint(value) => encoder.uint(value),
            Value::BigInt(digits) => encoder.context_str(tag::BIG_INT, digits),
            Value::Float(value) => encoder.float(value),
            Value::Float32(value) => encoder.float32(value),
            Value::Pointer(value) => encoder.pointer(value),
            Value::Char(value) => encoder.char(value),
            Value::Str(shown) => encoder.str(&self.changed(shown, LineEndRule::Escape, text)),
            Value::Rendered(shown) => encoder.rendered(&self.changed(shown, LineEndRule::Escape, text)),
            Value::Bytes(shown) => match self.redaction {
                Some(redaction) if redaction.replace(shown, text) => encoder.raw_bytes(text),
                _ => encoder.raw_bytes(shown),
            },
            Value::Tuple(items) => {
                encoder.tuple(items.count() as u32);
                for item in items {
                    self.push_value(encoder, item, text);
                }
                encoder
            }
        };
    }
}

/// The bytes of a finished line; `None` for other values.
pub fn line_of(values: &[u8]) -> Option<&[u8]> {
    match Values::new(values).next_value() {
        Some(Value::Bytes(line)) => Some(line),
        _ => None,
    }
}

/// Writes the values of a finished line.
pub fn push_line(line: &[u8], out: &mut Vec<u8>) {
    let mut encoder = Encoder { bytes: std::mem::take(out) };
    encoder.bytes.clear();
    encoder.raw_bytes(line);
    *out = encoder.bytes;
}
