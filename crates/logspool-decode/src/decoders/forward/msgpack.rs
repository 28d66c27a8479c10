//! Reads the values of Forward from MessagePack, token by token. Text is borrowed.

use std::borrow::Cow;

use chrono::DateTime;
use logspool_record::msgpack::{Item, ReadError, Reader as ItemReader};

use super::problem::ForwardProblem;
use crate::decoders::convert::lossy;
use crate::value::Value;

/// Maximum nesting depth. Deeper values are shown as [`TOO_DEEP`].
const MAX_DEPTH: usize = 32;

/// Replaces values that are nested too deeply.
const TOO_DEEP: &str = "...";

/// A token. The values of a list or map follow it as separate tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Token<'a> {
    Nil,
    Bool(bool),
    Int(i64),
    /// An integer above the range of `i64`.
    Large(u64),
    Float(f64),
    /// `str` and `bin`: older senders do not distinguish them.
    Text(&'a [u8]),
    List(u32),
    Map(u32),
    Extension(i8, &'a [u8]),
}

impl Token<'_> {
    /// Number of values after this token that belong to it.
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
pub struct TokenReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> TokenReader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Continues to read the same bytes from another position.
    pub fn from(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// Position of the next token.
    pub fn at(&self) -> usize {
        self.at
    }

    pub fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// The bytes that have not been read.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// Skips bytes.
    pub fn advance(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// The bytes read since a position.
    pub fn since(&self, begin: usize) -> &'a [u8] {
        &self.bytes[begin..self.at]
    }

    /// Reads a token. On an error the position does not change.
    #[inline]
    pub fn token(&mut self) -> Result<Token<'a>, ForwardProblem> {
        let mut items = ItemReader::new(self.bytes.get(self.at..).ok_or(ForwardProblem::Truncated)?);
        let token = match items.item() {
            Ok(Item::Nil) => Token::Nil,
            Ok(Item::Bool(value)) => Token::Bool(value),
            // The format has no integers above `u64`.
            Ok(Item::Int(number)) => i64::try_from(number).map_or(Token::Large(number as u64), Token::Int),
            Ok(Item::Float(number)) => Token::Float(number),
            Ok(Item::Text(text) | Item::Bytes(text)) => Token::Text(text),
            // The format has no counts above `u32`.
            Ok(Item::Array(count)) => Token::List(count as u32),
            Ok(Item::Map(count)) => Token::Map(count as u32),
            Ok(Item::Extension(kind, bytes)) => Token::Extension(kind, bytes),
            Err(ReadError::Incomplete) => return Err(ForwardProblem::Truncated),
            Err(ReadError::Invalid) => return Err(ForwardProblem::Malformed),
        };
        self.at = self.bytes.len() - items.rest().len();
        Ok(token)
    }

    /// The length of the text or extension at this position, read from its header. 0 if the header has no length of
    /// four bytes.
    pub fn announced(&self) -> usize {
        match self.bytes.get(self.at..).and_then(<[u8]>::first_chunk::<5>) {
            Some(&[0xC6 | 0xC9 | 0xDB, a, b, c, d]) => u32::from_be_bytes([a, b, c, d]) as usize,
            _ => 0,
        }
    }

    /// Skips this number of values with all values nested in them.
    pub fn skip(&mut self, values: u64) -> Result<(), ForwardProblem> {
        let mut left = values;
        while left > 0 {
            left = left - 1 + self.token()?.values();
        }
        Ok(())
    }

    /// Reads a value. `items` is the number of values that may still be created.
    pub fn value(&mut self, items: &mut usize) -> Result<Value<'a>, ForwardProblem> {
        let token = self.token()?;
        self.value_of(token, items)
    }

    /// Reads a value whose first token has already been read.
    pub fn value_of(&mut self, token: Token<'a>, items: &mut usize) -> Result<Value<'a>, ForwardProblem> {
        self.nested(token, items, MAX_DEPTH)
    }

    /// Reads the key of a map.
    pub fn key(&mut self, items: &mut usize) -> Result<Cow<'a, str>, ForwardProblem> {
        match self.token()? {
            Token::Text(text) => Ok(lossy(text)),
            other => Ok(Cow::Owned(self.value_of(other, items)?.printed())),
        }
    }

    fn nested(&mut self, token: Token<'a>, items: &mut usize, depth: usize) -> Result<Value<'a>, ForwardProblem> {
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
                Value::text(TOO_DEEP)
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

/// Subtracts the values of a list or map from `items`, before memory is allocated for them.
pub fn take_items(items: &mut usize, token: Token<'_>) -> Result<(), ForwardProblem> {
    let values = usize::try_from(token.values()).ok();
    *items = values.and_then(|values| items.checked_sub(values)).ok_or(ForwardProblem::TooMany)?;
    Ok(())
}

/// Decodes the times of Forward (extension type 0) and of MessagePack (extension type -1) to seconds and nanoseconds.
pub fn time(kind: i8, bytes: &[u8]) -> Option<(i64, u32)> {
    match (kind, bytes) {
        (0, bytes) => {
            let (seconds, nanoseconds) = halves(bytes.try_into().ok()?);
            Some((seconds.into(), nanoseconds))
        }
        (-1, bytes) if bytes.len() == 4 => Some((u32::from_be_bytes(bytes.try_into().ok()?).into(), 0)),
        (-1, bytes) if bytes.len() == 8 => {
            let both = u64::from_be_bytes(bytes.try_into().ok()?);
            // 30 bits of nanoseconds and 34 of seconds: both casts are exact.
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
