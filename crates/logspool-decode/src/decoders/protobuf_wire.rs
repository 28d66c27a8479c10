//! Reads the fields of protobuf messages, without structs of their own: such structs would take 100 bytes and more for two bytes
//! of a message.

/// The bytes are no protobuf message. The text has the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtobufError(pub &'static str);

/// The messages in the field with this number.
pub(super) fn messages(bytes: &[u8], number: u64) -> impl Iterator<Item = Result<&[u8], ProtobufError>> {
    FieldIter(bytes).filter_map(move |part| match part {
        Ok((found, FieldValue::Bytes(bytes))) => (found == number).then_some(Ok(bytes)),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    })
}

/// The messages in the field with this number. The error has the bytes that cannot be read: the rest of the message.
pub(super) fn messages_and_rest(
    bytes: &[u8],
    number: u64,
) -> impl Iterator<Item = Result<&[u8], (&[u8], ProtobufError)>> {
    let mut fields = FieldIter(bytes);
    std::iter::from_fn(move || {
        loop {
            let rest = fields.0;
            match fields.next()? {
                Ok((found, FieldValue::Bytes(bytes))) if found == number => return Some(Ok(bytes)),
                Ok(_) => {}
                Err(error) => return Some(Err((rest, error))),
            }
        }
    })
}

/// The value of a field.
#[derive(Debug)]
pub(super) enum FieldValue<'a> {
    Number(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32,
}

/// Iterates over the fields of a message with their numbers. Ends after an error.
#[derive(Debug)]
pub(super) struct FieldIter<'a>(pub &'a [u8]);

impl<'a> FieldIter<'a> {
    fn part(&mut self) -> Result<(u64, FieldValue<'a>), &'static str> {
        let key = self.number()?;
        let part = match key & 7 {
            0 => FieldValue::Number(self.number()?),
            1 => FieldValue::Fixed64(u64::from_le_bytes(*self.take(8)?.first_chunk().ok_or(CUT_OFF)?)),
            2 => {
                let length = usize::try_from(self.number()?).map_err(|_| CUT_OFF)?;
                FieldValue::Bytes(self.take(length)?)
            }
            5 => {
                self.take(4)?;
                FieldValue::Fixed32
            }
            _ => return Err("a field has an unknown type"),
        };
        Ok((key >> 3, part))
    }

    /// A varint: seven bits per byte, lowest first.
    fn number(&mut self) -> Result<u64, &'static str> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = *self.take(1)?.first_chunk().ok_or(CUT_OFF)?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err("a number is longer than 64 bits")
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(CUT_OFF)?;
        self.0 = rest;
        Ok(taken)
    }
}

const CUT_OFF: &str = "it is truncated";

impl<'a> Iterator for FieldIter<'a> {
    type Item = Result<(u64, FieldValue<'a>), ProtobufError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let part = self.part();
        if part.is_err() {
            self.0 = &[];
        }
        Some(part.map_err(ProtobufError))
    }
}
