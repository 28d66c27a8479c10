//! Values of Forward from MessagePack, one token after the other; text is borrowed.

use std::borrow::Cow;

use chrono::DateTime;
use logspool_record::msgpack::{Item, Missing, Reader as Items};

use super::problem::Problem;
use crate::decoders::words::lossy;
use crate::value::Value;

/// How deep values stand in values; deeper ones are shown as [`BEYOND`].
const DEPTH: usize = 32;

/// Stands for what is too deep.
const BEYOND: &str = "...";

/// What stands at one place. The values of a list and of a map follow it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Token<'a> {
    Nil,
    Bool(bool),
    Int(i64),
    /// A whole number beyond `i64`.
    Large(u64),
    Float(f64),
    /// `str` and `bin`: older senders know no difference.
    Text(&'a [u8]),
    List(u32),
    Map(u32),
    Extension(i8, &'a [u8]),
}

impl Token<'_> {
    /// Values that follow and belong to it.
    pub fn values(self) -> u64 {
        match self {
            Self::List(count) => count.into(),
            Self::Map(count) => 2 * u64::from(count),
            _ => 0,
        }
    }
}

/// Reads tokens.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// A reader of the same bytes from another place on.
    pub fn from(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// Where the next token begins.
    pub fn at(&self) -> usize {
        self.at
    }

    pub fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// What was read since a place.
    pub fn since(&self, begin: usize) -> &'a [u8] {
        &self.bytes[begin..self.at]
    }

    /// Reads a token. After an error the place is the same as before.
    #[inline]
    pub fn token(&mut self) -> Result<Token<'a>, Problem> {
        let mut items = Items::new(self.bytes.get(self.at..).ok_or(Problem::Truncated)?);
        let token = match items.item() {
            Ok(Item::Nil) => Token::Nil,
            Ok(Item::Bool(value)) => Token::Bool(value),
            // The format has no number beyond `u64`.
            Ok(Item::Int(number)) => i64::try_from(number).map_or(Token::Large(number as u64), Token::Int),
            Ok(Item::Float(number)) => Token::Float(number),
            Ok(Item::Text(text) | Item::Bytes(text)) => Token::Text(text),
            // The format has no count beyond `u32`.
            Ok(Item::Array(count)) => Token::List(count as u32),
            Ok(Item::Map(count)) => Token::Map(count as u32),
            Ok(Item::Extension(kind, bytes)) => Token::Extension(kind, bytes),
            Err(Missing::Incomplete) => return Err(Problem::Truncated),
            Err(Missing::Invalid) => return Err(Problem::Malformed),
        };
        self.at = self.bytes.len() - items.rest().len();
        Ok(token)
    }

    /// How long the text or extension that begins here says it is; 0 where it does not say so in four bytes.
    pub fn announced(&self) -> usize {
        match self.bytes.get(self.at..).and_then(<[u8]>::first_chunk::<5>) {
            Some(&[0xC6 | 0xC9 | 0xDB, a, b, c, d]) => u32::from_be_bytes([a, b, c, d]) as usize,
            _ => 0,
        }
    }

    /// Passes over so many values, however deep they are.
    pub fn skip(&mut self, values: u64) -> Result<(), Problem> {
        let mut left = values;
        while left > 0 {
            left = left - 1 + self.token()?.values();
        }
        Ok(())
    }

    /// Reads a value. `items` is how many more may be made.
    pub fn value(&mut self, items: &mut usize) -> Result<Value<'a>, Problem> {
        let token = self.token()?;
        self.value_of(token, items)
    }

    /// The same, of which the first token is read.
    pub fn value_of(&mut self, token: Token<'a>, items: &mut usize) -> Result<Value<'a>, Problem> {
        self.nested(token, items, DEPTH)
    }

    /// Reads the key of a map.
    pub fn key(&mut self, items: &mut usize) -> Result<Cow<'a, str>, Problem> {
        match self.token()? {
            Token::Text(text) => Ok(lossy(text)),
            other => Ok(Cow::Owned(self.value_of(other, items)?.printed())),
        }
    }

    fn nested(&mut self, token: Token<'a>, items: &mut usize, depth: usize) -> Result<Value<'a>, Problem> {
        Ok(match token {
            Token::Nil => Value::Null,
            Token::Bool(value) => Value::Bool(value),
            Token::Int(value) => Value::Int(value),
            Token::Large(value) => Value::text(value.to_string()),
            Token::Float(value) => Value::Float(value),
            Token::Text(text) => Value::Text(lossy(text)),
            Token::Extension(kind, bytes) => extension(kind, bytes),
            Token::List(_) | Token::Map(_) if depth == 0 => {
                self.skip(token.values())?;
                Value::text(BEYOND)
            }
            Token::List(count) => {
                take_items(items, token)?;
                let mut values = Vec::with_capacity(count as usize);
                for _ in 0..count {
                    let token = self.token()?;
                    values.push(self.nested(token, items, depth - 1)?);
                }
                Value::List(values)
            }
            Token::Map(count) => {
                take_items(items, token)?;
                let mut pairs = Vec::with_capacity(count as usize);
                for _ in 0..count {
                    let name = match self.token()? {
                        Token::Text(text) => lossy(text),
                        other => Cow::Owned(self.nested(other, items, depth - 1)?.printed()),
                    };
                    let token = self.token()?;
                    pairs.push((name, self.nested(token, items, depth - 1)?));
                }
                Value::Map(pairs)
            }
        })
    }
}

/// Counts the values of a list or map before memory is taken for them.
pub fn take_items(items: &mut usize, token: Token<'_>) -> Result<(), Problem> {
    let values = usize::try_from(token.values()).ok();
    *items = values.and_then(|values| items.checked_sub(values)).ok_or(Problem::TooMany)?;
    Ok(())
}

/// The times of Forward (type 0) and of MessagePack itself (type -1), as seconds and nanoseconds.
pub fn time(kind: i8, bytes: &[u8]) -> Option<(i64, u32)> {
    match (kind, bytes) {
        (0, bytes) => {
            let (seconds, nanoseconds) = halves(bytes.try_into().ok()?);
            Some((seconds.into(), nanoseconds))
        }
        (-1, bytes) if bytes.len() == 4 => Some((u32::from_be_bytes(bytes.try_into().ok()?).into(), 0)),
        (-1, bytes) if bytes.len() == 8 => {
            let both = u64::from_be_bytes(bytes.try_into().ok()?);
            // 30 bits of nanoseconds, 34 of seconds: each fits.
            Some(((both & 0x3_FFFF_FFFF) as i64, (both >> 34) as u32))
        }
        (-1, bytes) if bytes.len() == 12 => {
            let nanoseconds = u32::from_be_bytes(*bytes.first_chunk()?);
            Some((i64::from_be_bytes(*bytes.last_chunk()?), nanoseconds))
        }
        _ => None,
    }
}

fn halves(bytes: [u8; 8]) -> (u32, u32) {
    let both = u64::from_be_bytes(bytes);
    ((both >> 32) as u32, both as u32)
}

fn extension<'a>(kind: i8, bytes: &[u8]) -> Value<'a> {
    let time = time(kind, bytes).and_then(|(seconds, nanoseconds)| DateTime::from_timestamp(seconds, nanoseconds));
    match time {
        Some(time) => Value::text(time.to_rfc3339()),
        None => Value::text(format!("<extension {kind}>")),
    }
}
