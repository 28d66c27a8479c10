//! The form of a record in a lane: a fixed head, then tagged values.
//!
//! Pipeline stages: capture and queue (see ARCHITECTURE.md). This file does not depend on lanes, batches or formats.
//!
//! ```text
//! offset  0  len    u32   whole record in bytes, head included, padding excluded
//!         4  site   u32   id in the segment's site table, or 0
//!         8  route  u32   id in the route table (logger and its targets); for TEXT records a sink id
//!        12  level  u16   stdlib level number, saturated
//!        14  flags  u16   see `flags`
//!        16  ticks  u64   the segment's clock at the call
//!        24  values ...   tagged, unaligned
//! ```
//!
//! Records start on 8-byte boundaries: the next one begins `advance(len)` bytes later.
//! A value is one tag byte and its payload, integers in native byte order (a segment never leaves its host).
//! Context values (thread, task, exception, extra fields) come first, the %-arguments after them in call order.
//! All input here is hostile: the recoverer reads bytes of a dead process through `Values`, which never panics and ends
//! at the first value that does not fit.

/// Size of the fixed head before the values, in bytes.
pub const HEAD_BYTES: usize = 24;

/// Each record starts at a multiple of this number of bytes.
pub const RECORD_ALIGN: usize = 8;

/// Bit meanings of [`Head::flags`].
pub mod flags {
    /// The values are one final line, including its terminator. `route` is the id of the only sink that gets it.
    pub const TEXT: u16 = 1;
    /// Filler up to the end of the ring; not a record.
    pub const PAD: u16 = 2;
    /// The values are in a file of their own next to the segment. The record has one `BLOB` value.
    pub const BLOB: u16 = 4;
    /// The record was written through the side lane, by a call that interrupted another call of its thread.
    pub const SIDE: u16 = 8;
}

/// Tag bytes of values. Numbers are part of layout version 1 and are never reused.
pub mod tag {
    /// `None`. No payload.
    pub const NONE: u8 = 1;
    /// `True`. No payload.
    pub const TRUE: u8 = 2;
    /// `False`. No payload.
    pub const FALSE: u8 = 3;
    /// An integer that fits `i64`.
    pub const INT: u8 = 4;
    /// An IEEE double.
    pub const FLOAT: u8 = 5;
    /// Text: `u32` length, UTF-8 bytes.
    pub const STR: u8 = 6;
    /// Bytes: `u32` length, bytes.
    pub const BYTES: u8 = 7;
    /// A tuple: `u32` number of items, then that many values.
    pub const TUPLE: u8 = 8;
    /// One %-directive already rendered by the caller, width and precision included: `u32` length, UTF-8.
    pub const RENDERED: u8 = 9;
    /// An integer outside `i64`, as decimal text: `u32` length, ASCII.
    pub const BIG_INT: u8 = 10;
    /// An integer above `i64::MAX` that fits `u64` (callers other than Python).
    pub const UINT: u8 = 11;
    /// One Unicode scalar value, `u32` (callers other than Python).
    pub const CHAR: u8 = 12;
    /// An IEEE single (callers other than Python).
    pub const FLOAT32: u8 = 13;
    /// An address, `u64` (callers other than Python).
    pub const POINTER: u8 = 14;

    /// First tag of context values. Neither this tag nor any higher one is a %-argument.
    pub const CONTEXT: u8 = 0x40;
    /// The finished message: `u32` length, UTF-8. The record then has no arguments.
    pub const MESSAGE: u8 = 0x40;
    /// `threading.get_ident()` of the caller, `i64`.
    pub const THREAD: u8 = 0x41;
    /// Thread name: `u32` length, UTF-8.
    pub const THREAD_NAME: u8 = 0x42;
    /// Process name: `u32` length, UTF-8.
    pub const PROCESS_NAME: u8 = 0x43;
    /// Name of the asyncio task: `u32` length, UTF-8. Absent when no task runs.
    pub const TASK_NAME: u8 = 0x44;
    /// Formatted traceback: `u32` length, UTF-8.
    pub const EXCEPTION: u8 = 0x45;
    /// Formatted stack: `u32` length, UTF-8.
    pub const STACK: u8 = 0x46;
    /// An extra field: key as `u32` length and UTF-8, then one value (a tag below `CONTEXT`).
    pub const FIELD: u8 = 0x47;
    /// An inline site definition, used if the site table had no free id: a `TUPLE` in the form of the table's
    /// definitions.
    pub const SITE: u8 = 0x48;
    /// Wall time that is shown instead of the converted ticks: `i64` nanoseconds since the epoch.
    pub const TIME: u8 = 0x49;
    /// Number of the file that holds the values of a large record, `u64`.
    pub const BLOB: u8 = 0x4a;
    /// The text of the time, if the caller has made it: `u32` length, UTF-8.
    pub const ASCTIME: u8 = 0x4b;
    /// An item of a message that is a dict: key as `u32` length and UTF-8, then one value (a tag below `CONTEXT`).
    pub const ITEM: u8 = 0x4c;
}

/// The fixed head of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Head {
    /// Whole record in bytes, this head included, padding excluded.
    pub len: u32,
    /// Id in the site table; 0 without a site.
    pub site: u32,
    /// Id in the route table, or the sink id of a `TEXT` record.
    pub route: u32,
    /// Stdlib level number, saturated at `u16::MAX`.
    pub level: u16,
    /// Bits of [`flags`].
    pub flags: u16,
    /// The segment's clock at the call.
    pub ticks: u64,
}

/// Bytes from the start of a record of `len` bytes to the start of the next.
#[inline]
pub const fn advance(len: usize) -> usize {
    (len + RECORD_ALIGN - 1) & !(RECORD_ALIGN - 1)
}

/// One decoded value, borrowed from the record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// `None`.
    None,
    /// A bool.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer above `i64::MAX`.
    Uint(u64),
    /// An integer of any size, as decimal text.
    BigInt(&'a str),
    /// A double.
    Float(f64),
    /// A single.
    Float32(f32),
    /// An address.
    Pointer(u64),
    /// One character.
    Char(char),
    /// Text.
    Str(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A tuple of values.
    Tuple(Values<'a>),
    /// A %-directive already rendered by the caller.
    Rendered(&'a str),
}

/// One decoded context entry, borrowed from the record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Context<'a> {
    /// The finished message.
    Message(&'a str),
    /// Thread identifier.
    Thread(i64),
    /// Thread name.
    ThreadName(&'a str),
    /// Process name.
    ProcessName(&'a str),
    /// Asyncio task name.
    TaskName(&'a str),
    /// Formatted traceback.
    Exception(&'a str),
    /// Formatted stack.
    Stack(&'a str),
    /// An extra field.
    Field(&'a str, Value<'a>),
    /// An inline site definition.
    Site(Values<'a>),
    /// Wall time in nanoseconds since the epoch.
    Time(i64),
    /// Number of the blob file with the values.
    Blob(u64),
    /// `asctime`, as a method of the program has made it.
    AscTime(&'a str),
    /// An item of a message that is a dict.
    Item(&'a str, Value<'a>),
}

/// An entry that [`Values::next_entry`] yields.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Entry<'a> {
    /// A context entry.
    Context(Context<'a>),
    /// A %-argument.
    Argument(Value<'a>),
}

/// Deepest nesting of tuples that a reader follows.
///
/// Chosen: in practice no template argument nests deeper. The bound keeps hostile input from exhausting the stack.
pub const MAX_TUPLE_DEPTH: usize = 16;

/// Reads tagged values from bytes. Never panics; ends at the first value that does not fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Values<'a> {
    bytes: &'a [u8],
}

impl<'a> Values<'a> {
    /// A reader over `bytes`.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The bytes not yet read.
    #[inline]
    pub const fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    #[inline]
    fn take_array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = rest;
        Some(*taken)
    }

    #[inline]
    fn take_bytes(&mut self) -> Option<&'a [u8]> {
        let len = u32::from_ne_bytes(self.take_array()?) as usize;
        self.take(len)
    }

    #[inline]
    fn take_str(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.take_bytes()?).ok()
    }

    /// Reads the next entry, context or argument.
    #[inline]
    pub fn next_entry(&mut self) -> Option<Entry<'a>> {
        let tag = *self.bytes.first()?;
        if tag < tag::CONTEXT {
            return self.next_value().map(Entry::Argument);
        }
        self.bytes = &self.bytes[1..];
        self.context(tag).map(Entry::Context)
    }

    fn context(&mut self, tag: u8) -> Option<Context<'a>> {
        Some(match tag {
            tag::MESSAGE => Context::Message(self.take_str()?),
            tag::THREAD => Context::Thread(i64::from_ne_bytes(self.take_array()?)),
            tag::THREAD_NAME => Context::ThreadName(self.take_str()?),
            tag::PROCESS_NAME => Context::ProcessName(self.take_str()?),
            tag::TASK_NAME => Context::TaskName(self.take_str()?),
            tag::EXCEPTION => Context::Exception(self.take_str()?),
            tag::STACK => Context::Stack(self.take_str()?),
            tag::FIELD => Context::Field(self.take_str()?, self.next_value()?),
            tag::ITEM => Context::Item(self.take_str()?, self.next_value()?),
            tag::SITE => match self.next_value()? {
                Value::Tuple(items) => Context::Site(items),
                _ => return None,
            },
            tag::TIME => Context::Time(i64::from_ne_bytes(self.take_array()?)),
            tag::ASCTIME => Context::AscTime(self.take_str()?),
            tag::BLOB => Context::Blob(u64::from_ne_bytes(self.take_array()?)),
            _ => return None,
        })
    }

    /// Reads the next value; `None` at the end, at a context entry, or at bytes that are no value.
    #[inline]
    pub fn next_value(&mut self) -> Option<Value<'a>> {
        self.value_at_depth(0)
    }

    #[inline]
    fn value_at_depth(&mut self, depth: usize) -> Option<Value<'a>> {
        let [tag] = self.take_array()?;
        Some(match tag {
            tag::NONE => Value::None,
            tag::TRUE => Value::Bool(true),
            tag::FALSE => Value::Bool(false),
            tag::INT => Value::Int(i64::from_ne_bytes(self.take_array()?)),
            tag::UINT => Value::Uint(u64::from_ne_bytes(self.take_array()?)),
            tag::FLOAT => Value::Float(f64::from_ne_bytes(self.take_array()?)),
            tag::FLOAT32 => Value::Float32(f32::from_ne_bytes(self.take_array()?)),
            tag::POINTER => Value::Pointer(u64::from_ne_bytes(self.take_array()?)),
            tag::STR => Value::Str(self.take_str()?),
            tag::BYTES => Value::Bytes(self.take_bytes()?),
            tag::RENDERED => Value::Rendered(self.take_str()?),
            tag::BIG_INT => Value::BigInt(self.take_str()?),
            tag::CHAR => Value::Char(char::from_u32(u32::from_ne_bytes(self.take_array()?))?),
            tag::TUPLE => {
                if depth >= MAX_TUPLE_DEPTH {
                    return None;
                }
                let count = u32::from_ne_bytes(self.take_array()?);
                let start = self.bytes;
                for _ in 0..count {
                    self.value_at_depth(depth + 1)?;
                }
                Value::Tuple(Values::new(&start[..start.len() - self.bytes.len()]))
            }
            _ => return None,
        })
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = Value<'a>;

    #[inline]
    fn next(&mut self) -> Option<Value<'a>> {
        self.next_value()
    }
}

/// Writes tagged values into a vector, for definitions, tests, and callers that are not on a hot path.
///
/// The hot path writes the same bytes through raw pointers into a lane.
#[derive(Debug, Default, Clone)]
pub struct Encoder {
    /// All bytes written.
    pub bytes: Vec<u8>,
}

impl Encoder {
    /// An empty encoder.
    #[inline]
    pub fn new() -> Self {
        Self::default()
    }

    fn tagged_bytes(&mut self, tag: u8, payload: &[u8]) -> &mut Self {
        let len = u32::try_from(payload.len()).expect("a value is shorter than 4 GiB");
        self.bytes.push(tag);
        self.bytes.extend_from_slice(&len.to_ne_bytes());
        self.bytes.extend_from_slice(payload);
        self
    }

    /// Appends `None`.
    pub fn none(&mut self) -> &mut Self {
        self.bytes.push(tag::NONE);
        self
    }

    /// Appends a bool.
    pub fn bool(&mut self, value: bool) -> &mut Self {
        self.bytes.push(if value { tag::TRUE } else { tag::FALSE });
        self
    }

    /// Appends an integer.
    pub fn int(&mut self, value: i64) -> &mut Self {
        self.bytes.push(tag::INT);
        self.bytes.extend_from_slice(&value.to_ne_bytes());
        self
    }

    /// Appends a double.
    pub fn float(&mut self, value: f64) -> &mut Self {
        self.bytes.push(tag::FLOAT);
        self.bytes.extend_from_slice(&value.to_ne_bytes());
        self
    }

    /// Appends an integer that is not negative.
    pub fn uint(&mut self, value: u64) -> &mut Self {
        if let Ok(value) = i64::try_from(value) {
            return self.int(value);
        }
        self.bytes.push(tag::UINT);
        self.bytes.extend_from_slice(&value.to_ne_bytes());
        self
    }

    /// Appends an integer of up to 128 bits.
    pub fn int128(&mut self, value: i128) -> &mut Self {
        match i64::try_from(value) {
            Ok(value) => self.int(value),
            Err(_) => self.tagged_bytes(tag::BIG_INT, value.to_string().as_bytes()),
        }
    }

    /// Appends an integer of up to 128 bits that is not negative.
    pub fn uint128(&mut self, value: u128) -> &mut Self {
        match u64::try_from(value) {
            Ok(value) => self.uint(value),
            Err(_) => self.tagged_bytes(tag::BIG_INT, value.to_string().as_bytes()),
        }
    }

    /// Appends a single.
    pub fn float32(&mut self, value: f32) -> &mut Self {
        self.bytes.push(tag::FLOAT32);
        self.bytes.extend_from_slice(&value.to_ne_bytes());
        self
    }

    /// Appends an address.
    pub fn pointer(&mut self, value: u64) -> &mut Self {
        self.bytes.push(tag::POINTER);
        self.bytes.extend_from_slice(&value.to_ne_bytes());
        self
    }

    /// Appends one character.
    pub fn char(&mut self, value: char) -> &mut Self {
        self.bytes.push(tag::CHAR);
        self.bytes.extend_from_slice(&u32::from(value).to_ne_bytes());
        self
    }

    /// Appends text.
    pub fn str(&mut self, value: &str) -> &mut Self {
        self.tagged_bytes(tag::STR, value.as_bytes())
    }

    /// Appends bytes.
    pub fn raw_bytes(&mut self, value: &[u8]) -> &mut Self {
        self.tagged_bytes(tag::BYTES, value)
    }

    /// Appends a directive that the caller rendered.
    pub fn rendered(&mut self, value: &str) -> &mut Self {
        self.tagged_bytes(tag::RENDERED, value.as_bytes())
    }

    /// Appends the head of a tuple; the caller appends its `count` items next.
    pub fn tuple(&mut self, count: u32) -> &mut Self {
        self.bytes.push(tag::TUPLE);
        self.bytes.extend_from_slice(&count.to_ne_bytes());
        self
    }

    /// Appends a context entry whose payload is text: `MESSAGE`, `THREAD_NAME`, `EXCEPTION`, ...
    pub fn context_str(&mut self, tag: u8, value: &str) -> &mut Self {
        self.tagged_bytes(tag, value.as_bytes())
    }

    /// Appends a context entry whose payload is an integer: `THREAD`, `TIME`, `BLOB`.
    pub fn context_int(&mut self, tag: u8, value: i64) -> &mut Self {
        self.bytes.push(tag);
        self.bytes.extend_from_slice(&value.to_ne_bytes());
        self
    }

    /// Appends the key of an extra field; the caller appends its value next.
    pub fn field(&mut self, key: &str) -> &mut Self {
        self.tagged_bytes(tag::FIELD, key.as_bytes())
    }

    /// Appends the key of an item of a message that is a dict; the caller appends its value next.
    pub fn item(&mut self, key: &str) -> &mut Self {
        self.tagged_bytes(tag::ITEM, key.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_back_unchanged() {
        let mut encoder = Encoder::new();
        encoder.context_str(tag::THREAD_NAME, "MainThread").field("user").str("ann");
        encoder.str("x").int(-7).float(0.5).bool(true).none().tuple(2).int(1).str("b");
        let mut values = Values::new(&encoder.bytes);

        assert_eq!(Some(Entry::Context(Context::ThreadName("MainThread"))), values.next_entry());
        assert_eq!(Some(Entry::Context(Context::Field("user", Value::Str("ann")))), values.next_entry());
        let rest: Vec<_> = values.collect();
        assert_eq!(&[Value::Str("x"), Value::Int(-7), Value::Float(0.5), Value::Bool(true), Value::None], &rest[..5]);
        let Value::Tuple(items) = rest[5] else { panic!("a tuple was written") };
        assert_eq!(vec![Value::Int(1), Value::Str("b")], items.collect::<Vec<_>>());
    }

    #[test]
    fn values_of_other_languages_are_read_back_unchanged() {
        let mut encoder = Encoder::new();
        encoder.float32(0.1).pointer(u64::MAX).char('\u{10ffff}').uint(7).uint(u64::MAX);
        encoder.int128(-1).int128(i128::MIN).uint128(u128::from(u64::MAX)).uint128(u128::MAX);
        let values: Vec<_> = Values::new(&encoder.bytes).collect();

        assert_eq!([Value::Float32(0.1), Value::Pointer(u64::MAX), Value::Char('\u{10ffff}')], values[..3]);
        assert_eq!([Value::Int(7), Value::Uint(u64::MAX), Value::Int(-1)], values[3..6]);
        assert_eq!(
            [
                Value::BigInt("-170141183460469231731687303715884105728"),
                Value::Uint(u64::MAX),
                Value::BigInt("340282366920938463463374607431768211455"),
            ],
            values[6..]
        );
        for cut in 0..encoder.bytes.len() {
            assert!(Values::new(&encoder.bytes[..cut]).count() < values.len());
        }
    }

    #[test]
    fn a_surrogate_is_not_a_character() {
        for code in [0xd800_u32, 0x11_0000, u32::MAX] {
            let mut bytes = vec![tag::CHAR];
            bytes.extend_from_slice(&code.to_ne_bytes());

            assert_eq!(None, Values::new(&bytes).next());
        }
    }

    #[test]
    fn cut_bytes_end_the_reader_instead_of_panicking() {
        let mut encoder = Encoder::new();
        encoder.str("hello").tuple(3).int(1).int(2).int(3).context_str(tag::STACK, "s");
        for cut in 0..encoder.bytes.len() {
            let mut values = Values::new(&encoder.bytes[..cut]);
            while values.next_entry().is_some() {}
        }
    }
}
