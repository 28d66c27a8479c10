//! The parts of MessagePack that logspool uses: entries for a service, the service's answers, and Forward messages to
//! the service.
//!
//! Every value is written in its shortest form. The reader accepts every form: it never panics, allocates nothing, and
//! distinguishes incomplete bytes from invalid ones.

/// Appends nil.
pub fn push_nil(out: &mut Vec<u8>) {
    out.push(0xc0);
}

/// Appends a bool.
pub fn push_bool(out: &mut Vec<u8>, value: bool) {
    out.push(if value { 0xc3 } else { 0xc2 });
}

/// Appends an integer.
pub fn push_int(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(ItemHead::of_int(value).bytes());
}

/// Appends a double.
pub fn push_float(out: &mut Vec<u8>, value: f64) {
    push(out, 0xcb, &value.to_be_bytes());
}

/// Appends a single.
pub fn push_float32(out: &mut Vec<u8>, value: f32) {
    push(out, 0xca, &value.to_be_bytes());
}

/// Appends text.
pub fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(ItemHead::of_text(text.len()).bytes());
    out.extend_from_slice(text);
}

/// Appends bytes.
pub fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    match bytes.len() {
        len @ 0..=0xff => push(out, 0xc4, &[len as u8]),
        len @ 0x100..=0xffff => push(out, 0xc5, &(len as u16).to_be_bytes()),
        len => push(out, 0xc6, &(len as u32).to_be_bytes()),
    }
    out.extend_from_slice(bytes);
}

/// Appends the head of an array. The caller appends its items next.
pub fn push_array(out: &mut Vec<u8>, len: usize) {
    match len {
        0..=15 => out.push(0x90 | len as u8),
        16..=0xffff => push(out, 0xdc, &(len as u16).to_be_bytes()),
        _ => push(out, 0xdd, &(len as u32).to_be_bytes()),
    }
}

/// Appends the head of a map. The caller appends its keys and values next.
pub fn push_map(out: &mut Vec<u8>, len: usize) {
    match len {
        0..=15 => out.push(0x80 | len as u8),
        16..=0xffff => push(out, 0xde, &(len as u16).to_be_bytes()),
        _ => push(out, 0xdf, &(len as u32).to_be_bytes()),
    }
}

fn push(out: &mut Vec<u8>, mark: u8, payload: &[u8]) {
    out.push(mark);
    out.extend_from_slice(payload);
}

/// A whole integer, or the bytes before a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ItemHead {
    bytes: [u8; Self::MAX_BYTES],
    len: usize,
}

impl ItemHead {
    /// A mark, and a number of eight bytes.
    pub(crate) const MAX_BYTES: usize = 9;

    #[inline]
    pub(crate) fn of_int(value: i64) -> Self {
        match value {
            -0x20..=0x7f => Self::of_mark(value as u8),
            0x80..=0xff => Self::new(0xcc, value as u64, 1),
            0x100..=0xffff => Self::new(0xcd, value as u64, 2),
            0x1_0000..=0xffff_ffff => Self::new(0xce, value as u64, 4),
            0x1_0000_0000.. => Self::new(0xcf, value as u64, 8),
            -0x80..-0x20 => Self::new(0xd0, value as u64, 1),
            -0x8000..-0x80 => Self::new(0xd1, value as u64, 2),
            -0x8000_0000..-0x8000 => Self::new(0xd2, value as u64, 4),
            ..-0x8000_0000 => Self::new(0xd3, value as u64, 8),
        }
    }

    #[inline]
    pub(crate) fn of_text(bytes: usize) -> Self {
        match bytes {
            0..=31 => Self::of_mark(0xa0 | bytes as u8),
            32..=0xff => Self::new(0xd9, bytes as u64, 1),
            0x100..=0xffff => Self::new(0xda, bytes as u64, 2),
            _ => Self::new(0xdb, bytes as u64, 4),
        }
    }

    #[inline]
    fn of_mark(mark: u8) -> Self {
        Self { bytes: [mark, 0, 0, 0, 0, 0, 0, 0, 0], len: 1 }
    }

    /// A mark and the last `width` bytes of a number.
    #[inline]
    fn new(mark: u8, number: u64, width: usize) -> Self {
        let [a, b, c, d, e, f, g, h] = (number << (64 - 8 * width)).to_be_bytes();
        Self { bytes: [mark, a, b, c, d, e, f, g, h], len: 1 + width }
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// The bytes of the head and padding after them.
    #[inline]
    pub(crate) const fn padded(&self) -> &[u8; Self::MAX_BYTES] {
        &self.bytes
    }
}

/// One value, or the head of an array or map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Item<'a> {
    /// Nil.
    Nil,
    /// A bool.
    Bool(bool),
    /// An integer of either sign.
    Int(i128),
    /// A float or a double.
    Float(f64),
    /// Text, which need not be UTF-8.
    Text(&'a [u8]),
    /// Bytes.
    Bytes(&'a [u8]),
    /// Head of an array. This number of items follows.
    Array(usize),
    /// Head of a map. This number of keys follows, each with its value.
    Map(usize),
    /// An extension: its type and payload.
    Extension(i8, &'a [u8]),
}

/// Reason why no item could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadError {
    /// The item is not complete: more bytes must arrive.
    Incomplete,
    /// No item begins with this byte.
    Invalid,
}

/// Reads items from bytes.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader over `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes that have not been read.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], ReadError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(ReadError::Incomplete)?;
        self.rest = rest;
        Ok(taken)
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        Ok(self.take(N)?.try_into().expect("that many were taken"))
    }

    fn length(&mut self, bytes: u8) -> Result<usize, ReadError> {
        Ok(match bytes {
            1 => usize::from(u8::from_be_bytes(self.number()?)),
            2 => usize::from(u16::from_be_bytes(self.number()?)),
            _ => u32::from_be_bytes(self.number()?) as usize,
        })
    }

    /// Reads the next item.
    ///
    /// # Errors
    ///
    /// [`ReadError`]; do not use the reader afterwards.
    #[inline]
    pub fn item(&mut self) -> Result<Item<'a>, ReadError> {
        let [mark] = self.number()?;
        // The marks of one kind of item are consecutive, and each next mark doubles the number of bytes of the length.
        let bytes_of_length = |first: u8| 1 << (mark - first);
        Ok(match mark {
            0x00..=0x7f => Item::Int(i128::from(mark)),
            0xe0..=0xff => Item::Int(i128::from(mark as i8)),
            0x80..=0x8f => Item::Map(usize::from(mark & 0x0f)),
            0x90..=0x9f => Item::Array(usize::from(mark & 0x0f)),
            0xa0..=0xbf => Item::Text(self.take(usize::from(mark & 0x1f))?),
            0xc0 => Item::Nil,
            0xc1 => return Err(ReadError::Invalid),
            0xc2 => Item::Bool(false),
            0xc3 => Item::Bool(true),
            0xc4..=0xc6 => {
                let len = self.length(bytes_of_length(0xc4))?;
                Item::Bytes(self.take(len)?)
            }
            0xc7..=0xc9 => {
                let len = self.length(bytes_of_length(0xc7))?;
                self.extension(len)?
            }
            0xca => Item::Float(f64::from(f32::from_be_bytes(self.number()?))),
            0xcb => Item::Float(f64::from_be_bytes(self.number()?)),
            0xcc => Item::Int(i128::from(u8::from_be_bytes(self.number()?))),
            0xcd => Item::Int(i128::from(u16::from_be_bytes(self.number()?))),
            0xce => Item::Int(i128::from(u32::from_be_bytes(self.number()?))),
            0xcf => Item::Int(i128::from(u64::from_be_bytes(self.number()?))),
            0xd0 => Item::Int(i128::from(i8::from_be_bytes(self.number()?))),
            0xd1 => Item::Int(i128::from(i16::from_be_bytes(self.number()?))),
            0xd2 => Item::Int(i128::from(i32::from_be_bytes(self.number()?))),
            0xd3 => Item::Int(i128::from(i64::from_be_bytes(self.number()?))),
            0xd4..=0xd8 => self.extension(1 << (mark - 0xd4))?,
            0xd9..=0xdb => {
                let len = self.length(bytes_of_length(0xd9))?;
                Item::Text(self.take(len)?)
            }
            0xdc..=0xdd => Item::Array(self.length(2 * bytes_of_length(0xdc))?),
            0xde..=0xdf => Item::Map(self.length(2 * bytes_of_length(0xde))?),
        })
    }

    fn extension(&mut self, len: usize) -> Result<Item<'a>, ReadError> {
        let [kind] = self.number()?;
        Ok(Item::Extension(kind as i8, self.take(len)?))
    }

    /// Skips the next value with all values inside it.
    ///
    /// # Errors
    ///
    /// See [`item`](Self::item).
    pub fn skip(&mut self) -> Result<(), ReadError> {
        let mut left = 1_usize;
        while left > 0 {
            left -= 1;
            // A head may announce more items than there are bytes. Each item takes at least a byte, so the loop ends.
            match self.item()? {
                Item::Array(len) => left = left.saturating_add(len),
                Item::Map(len) => left = left.saturating_add(len).saturating_add(len),
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    #[test]
    fn integers_have_the_shortest_form_and_are_read_back() {
        for (len, value) in [
            (1, 0),
            (1, 127),
            (2, 128),
            (3, 256),
            (5, 65_536),
            (9, 1 << 32),
            (9, i64::MAX),
            (1, -1),
            (1, -32),
            (2, -33),
            (2, -128),
            (3, -129),
            (5, -32_769),
            (9, -2_147_483_649),
            (9, i64::MIN),
        ] {
            let bytes = written(|out| push_int(out, value));

            assert_eq!(len, bytes.len(), "{value}");
            assert_eq!(Ok(Item::Int(i128::from(value))), Reader::new(&bytes).item());
        }
    }

    #[test]
    fn texts_and_heads_of_every_length_are_read_back() {
        for len in [0, 15, 16, 31, 32, 255, 256, 65_535, 65_536] {
            let text = vec![b'x'; len];
            let bytes = written(|out| {
                push_text(out, &text);
                push_bytes(out, &text);
                push_array(out, len);
                push_map(out, len);
            });
            let mut reader = Reader::new(&bytes);

            assert_eq!(Ok(Item::Text(&text)), reader.item());
            assert_eq!(Ok(Item::Bytes(&text)), reader.item());
            assert_eq!(Ok(Item::Array(len)), reader.item());
            assert_eq!(Ok(Item::Map(len)), reader.item());
            assert!(reader.rest().is_empty());
        }
    }

    #[test]
    fn a_value_is_skipped_whole_or_not_at_all() {
        let bytes = written(|out| {
            push_map(out, 2);
            push_text(out, b"a");
            push_array(out, 3);
            push_float(out, 0.5);
            push_bool(out, true);
            push_nil(out);
            push_text(out, b"b");
            out.extend_from_slice(&[0xd7, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        });
        let mut whole = Reader::new(&bytes);

        assert_eq!(Ok(()), whole.skip());
        assert!(whole.rest().is_empty());
        for cut in 0..bytes.len() {
            assert_eq!(Err(ReadError::Incomplete), Reader::new(&bytes[..cut]).skip(), "{cut}");
        }
    }

    #[test]
    fn no_input_makes_the_reader_panic_or_loop_forever() {
        for mark in 0..=u8::MAX {
            for payload in [&[][..], &[0xff; 3], &[0xff; 40], &[0; 40]] {
                let mut reader = Reader::new(payload);
                while reader.skip().is_ok() {}
                let bytes: Vec<u8> = [mark].iter().chain(payload).copied().collect();
                let _ = Reader::new(&bytes).skip();
            }
        }
        assert_eq!(Err(ReadError::Invalid), Reader::new(&[0xc1]).item());
    }
}
