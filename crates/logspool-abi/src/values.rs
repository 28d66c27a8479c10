//! Encodes arguments of C as the values of a record.

use logspool_record::tag;

use crate::status::Failure;

/// `struct logspool_arg`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Argument {
    /// Type: a tag of a value, or of a part that is no argument.
    pub kind: u32,
    /// Bytes of a text.
    pub length: u32,
    /// The bits of the union.
    pub bits: u64,
}

/// Maximum number of arguments of a call. Chosen: a call with more is a mistake of the caller's count.
pub const MAX_ARGUMENTS: usize = 1024;

const TEXT: u32 = tag::STR as u32;
const BYTES: u32 = tag::BYTES as u32;
const RENDERED: u32 = tag::RENDERED as u32;
const BIG_INT: u32 = tag::BIG_INT as u32;
const EXCEPTION: u32 = tag::EXCEPTION as u32;
const STACK: u32 = tag::STACK as u32;
const KEY: u32 = tag::FIELD as u32;
const NONE: u32 = tag::NONE as u32;
const BOOL: u32 = tag::TRUE as u32;
const INT: u32 = tag::INT as u32;
const UINT: u32 = tag::UINT as u32;
const DOUBLE: u32 = tag::FLOAT as u32;
const SINGLE: u32 = tag::FLOAT32 as u32;
const CHAR: u32 = tag::CHAR as u32;
const POINTER: u32 = tag::POINTER as u32;

/// Arguments whose types are known and whose texts are UTF-8.
#[derive(Debug, Clone, Copy)]
pub struct CheckedArguments<'a> {
    arguments: &'a [Argument],
    bytes: usize,
    has_parts: bool,
    /// Whether the first argument is the message.
    first_is_message: bool,
}

impl Argument {
    const fn is_text(&self) -> bool {
        matches!(self.kind, TEXT | RENDERED | BIG_INT | EXCEPTION | STACK | KEY)
    }

    fn is_part(&self) -> bool {
        self.kind >= u32::from(tag::CONTEXT)
    }

    /// The bytes of a text.
    ///
    /// # Safety
    ///
    /// The pointer and the length are those of the caller's text.
    unsafe fn text(&self) -> &[u8] {
        if self.length == 0 {
            return &[];
        }
        // SAFETY: the pointer and the length of a text of the running call; `check` has refused null.
        unsafe { std::slice::from_raw_parts(self.bits as usize as *const u8, self.length as usize) }
    }
}

/// Why arguments cannot be encoded as they are.
pub enum Unfit {
    /// A text is not UTF-8.
    Text,
    /// An argument cannot be encoded at all.
    Failure(Failure),
}

impl<'a> CheckedArguments<'a> {
    /// Checks the arguments of a call. `first_is_message`: the site has no template.
    ///
    /// # Errors
    ///
    /// An unknown type, a null text, a key without a value, or text that is not UTF-8.
    ///
    /// # Safety
    ///
    /// Texts are at their pointers.
    pub unsafe fn check(arguments: &'a [Argument], first_is_message: bool) -> Result<Self, Unfit> {
        let (mut bytes, mut has_parts, mut after_key) = (0, false, false);
        for (index, argument) in arguments.iter().enumerate() {
            let invalid = |why: &str| Unfit::Failure(Failure::invalid(format!("argument {index} {why}")));
            if after_key && argument.is_part() {
                return Err(invalid("follows a key and is no value"));
            }
            after_key = argument.kind == KEY;
            has_parts |= argument.is_part();
            bytes += 1;
            match argument.kind {
                NONE | BOOL => {}
                INT | UINT | DOUBLE | POINTER => bytes += 8,
                SINGLE | CHAR => bytes += 4,
                TEXT | BYTES | RENDERED | BIG_INT | EXCEPTION | STACK | KEY => {
                    if argument.bits == 0 && argument.length > 0 {
                        return Err(invalid("is a text at NULL"));
                    }
                    bytes += 4 + argument.length as usize;
                    // SAFETY: the pointer and the length of a text of the running call; `check` has refused null.
                    if argument.kind != BYTES && std::str::from_utf8(unsafe { argument.text() }).is_err() {
                        return Err(Unfit::Text);
                    }
                }
                other => return Err(invalid(&format!("has the unknown type {other}"))),
            }
        }
        if after_key {
            return Err(Unfit::Failure(Failure::invalid("the last argument is a key without a value")));
        }
        if first_is_message && arguments.first().is_none_or(|first| first.kind != TEXT) {
            let text = "the site has no template, so the first argument must be a text";
            return Err(Unfit::Failure(Failure::invalid(text)));
        }
        Ok(Self { arguments, bytes, has_parts, first_is_message })
    }

    /// Number of bytes that [`Self::write`] stores.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether there are no arguments.
    pub fn is_empty(&self) -> bool {
        self.arguments.is_empty()
    }

    /// Stores the values: first the parts that are no arguments, since a record has them first.
    ///
    /// # Safety
    ///
    /// `to` has room for [`Self::len`] bytes, and the texts are unchanged since the check.
    pub unsafe fn write(&self, mut to: *mut u8) {
        // SAFETY: the check has counted the bytes of each argument.
        unsafe {
            if !self.has_parts {
                for (index, argument) in self.arguments.iter().enumerate() {
                    let kind = if index == 0 && self.first_is_message { tag::MESSAGE } else { argument.kind as u8 };
                    to = write(to, kind, argument);
                }
                return;
            }
            for wants_parts in [true, false] {
                let mut after_key = false;
                for (index, argument) in self.arguments.iter().enumerate() {
                    let is_message = index == 0 && self.first_is_message;
                    let is_part = argument.is_part() || after_key || is_message;
                    after_key = argument.kind == KEY;
                    if is_part == wants_parts {
                        to = write(to, if is_message { tag::MESSAGE } else { argument.kind as u8 }, argument);
                    }
                }
            }
        }
    }
}

/// Stores one value. Returns the place after it.
///
/// # Safety
///
/// There is room for the value.
#[inline]
unsafe fn write(mut to: *mut u8, kind: u8, argument: &Argument) -> *mut u8 {
    // SAFETY: `CheckedArguments::check` counted the bytes of this value, and the lane has room for all of them.
    unsafe {
        to.write(kind);
        to = to.add(1);
        match argument.kind {
            NONE => {}
            BOOL => {
                if argument.bits & 0xff == 0 {
                    to.sub(1).write(tag::FALSE);
                }
            }
            INT | UINT | DOUBLE | POINTER => {
                to.cast::<u64>().write_unaligned(argument.bits);
                to = to.add(8);
            }
            SINGLE | CHAR => {
                to.cast::<u32>().write_unaligned(argument.bits as u32);
                to = to.add(4);
            }
            _ => {
                to.cast::<u32>().write_unaligned(argument.length);
                to = to.add(4);
                std::ptr::copy_nonoverlapping(argument.bits as usize as *const u8, to, argument.length as usize);
                to = to.add(argument.length as usize);
            }
        }
        to
    }
}

/// Largest size of the values of a record. Specified: 64 MiB for a large record, less its head and its site.
pub const MAX_RECORD_BYTES: usize = 63 << 20;

/// The text, cut at a character so that it has `share` bytes. It says how many bytes are left out.
pub fn cut(text: &mut String, share: usize) {
    if text.len() > share {
        let end = (0..=share).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let mark = format!(" [{} bytes are cut]", text.len() - end);
        text.truncate(end);
        text.push_str(&mark);
    }
}

/// Copies of the texts of arguments, with U+FFFD in place of ill-formed bytes, and cut where all together are larger
/// than a record can be.
///
/// # Safety
///
/// As [`CheckedArguments::check`].
#[cold]
pub unsafe fn mended(arguments: &[Argument]) -> (Vec<Argument>, Vec<String>) {
    let mut texts = Vec::new();
    let all: usize = arguments.iter().filter(|argument| argument.is_text()).map(|text| text.length as usize).sum();
    let share = if all > MAX_RECORD_BYTES / 8 * 7 { MAX_RECORD_BYTES / 8 * 7 / arguments.len() } else { usize::MAX };
    let mended = arguments.iter().map(|argument| match argument.kind {
        _ if argument.is_text() => {
            // SAFETY: the pointer and the length of a text of the running call; `check` has refused null.
            let mut text = String::from_utf8_lossy(unsafe { argument.text() }).into_owned();
            cut(&mut text, share);
            let copy = Argument { kind: argument.kind, length: text.len() as u32, bits: text.as_ptr() as u64 };
            texts.push(text);
            copy
        }
        _ => *argument,
    });
    let mended = mended.collect();
    (mended, texts)
}
