//! The values that a logging call copies into the queue.

use std::borrow::Cow;
use std::fmt::Write;
use std::rc::Rc;
use std::sync::Arc;

use logspool_record::tag;

use super::registry::key_suffix;

/// Writes tagged values to reserved bytes of the queue. Only [`CallSite`](super::CallSite) makes one, with room for
/// exactly the bytes that the values have announced.
#[derive(Debug)]
pub struct ValueWriter {
    next: *mut u8,
    left: usize,
}

impl ValueWriter {
    /// A writer over `bytes` bytes at `next`.
    ///
    /// # Safety
    ///
    /// Nothing else uses these bytes while the writer exists, and they may be written.
    pub(super) unsafe fn new(next: *mut u8, bytes: usize) -> Self {
        Self { next, left: bytes }
    }

    /// Overwrites the bytes that were announced and not written, which hold those of an older record.
    #[inline(always)]
    pub(super) fn finish(&mut self) {
        while self.left > 0 {
            self.put(&[0]);
        }
    }

    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) {
        // A comparison, not the smaller one of two lengths: the copy of a value of fixed size is then a store.
        if bytes.len() > self.left {
            return self.put_cut(bytes);
        }
        // SAFETY: the target has `left` bytes that only this writer uses, and `bytes` has at most that many.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.next, bytes.len());
            self.next = self.next.add(bytes.len());
        }
        self.left -= bytes.len();
    }

    /// Writes as much as there is room for. An `Argument` of the program may announce too few bytes. Its values are then
    /// cut, and nothing outside the reserved bytes is written.
    #[cold]
    fn put_cut(&mut self, bytes: &[u8]) {
        self.put(&bytes[..self.left]);
    }

    #[inline(always)]
    pub(super) fn tagged<const N: usize>(&mut self, tag: u8, payload: [u8; N]) {
        self.put(&[tag]);
        self.put(&payload);
    }

    #[inline(always)]
    pub(super) fn tagged_bytes(&mut self, tag: u8, payload: &[u8]) {
        self.tagged(tag, (payload.len() as u32).to_ne_bytes());
        self.put(payload);
    }
}

/// A value that the macros accept as an argument, or as the value of a key.
///
/// Any other value is wrapped by [`display`] or [`debug`], which make its text in the call.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be copied into the queue as it is",
    label = "wrap it: `logspool::front::display(&value)` or `logspool::front::debug(&value)`"
)]
pub trait Argument {
    /// Number of bytes that [`Self::write`] writes.
    fn bytes(&self) -> usize;

    /// Writes the value.
    fn write(&self, to: &mut ValueWriter);

    /// Whether only the caller can make the text of a placeholder with a type, such as `{:x}` or `{:#?}`. The queue keeps
    /// neither the size of a negative integer nor more than the text of a wrapped value.
    #[inline(always)]
    fn needs_caller(&self) -> bool {
        false
    }
}

/// All arguments of a call: pairs of one argument and the following ones, `()` at the end.
pub trait Arguments {
    /// Number of bytes of all values.
    fn bytes(&self) -> usize;

    /// Writes the values in their order.
    fn write(&self, to: &mut ValueWriter);

    /// Whether one of them needs the caller, see [`Argument::needs_caller`].
    fn need_caller(&self) -> bool;
}

impl Arguments for () {
    #[inline(always)]
    fn bytes(&self) -> usize {
        0
    }

    #[inline(always)]
    fn write(&self, _: &mut ValueWriter) {}

    #[inline(always)]
    fn need_caller(&self) -> bool {
        false
    }
}

impl<A: Argument, B: Arguments> Arguments for (A, B) {
    #[inline(always)]
    fn bytes(&self) -> usize {
        self.0.bytes() + self.1.bytes()
    }

    #[inline(always)]
    fn write(&self, to: &mut ValueWriter) {
        self.0.write(to);
        self.1.write(to);
    }

    #[inline(always)]
    fn need_caller(&self) -> bool {
        self.0.needs_caller() || self.1.need_caller()
    }
}

impl<A: Arguments> Arguments for &A {
    #[inline(always)]
    fn bytes(&self) -> usize {
        (**self).bytes()
    }

    #[inline(always)]
    fn write(&self, to: &mut ValueWriter) {
        (**self).write(to);
    }

    #[inline(always)]
    fn need_caller(&self) -> bool {
        (**self).need_caller()
    }
}

/// A key with its value, as one of the [`Arguments`] of a call.
#[derive(Debug)]
pub struct Keyed<'a, A>(pub &'a str, pub A);

impl<A: Argument> Argument for Keyed<'_, A> {
    #[inline(always)]
    fn bytes(&self) -> usize {
        5 + self.0.len() + key_suffix(self.0).len() + self.1.bytes()
    }

    #[inline(always)]
    fn write(&self, to: &mut ValueWriter) {
        let suffix = key_suffix(self.0);
        to.tagged(tag::FIELD, ((self.0.len() + suffix.len()) as u32).to_ne_bytes());
        to.put(self.0.as_bytes());
        to.put(suffix.as_bytes());
        self.1.write(to);
    }
}

/// Values that are encoded already.
#[derive(Debug, Clone, Default)]
pub(super) struct Encoded(pub(super) Vec<u8>);

impl Encoded {
    /// Appends a value.
    #[cfg(any(test, feature = "log", feature = "tracing"))]
    pub(super) fn push(&mut self, value: &(impl Argument + ?Sized)) {
        let (start, bytes) = (self.0.len(), value.bytes());
        self.0.resize(start + bytes, 0);
        // SAFETY: the vector has that many bytes from `start` on, and nothing else uses it.
        value.write(&mut unsafe { ValueWriter::new(self.0[start..].as_mut_ptr(), bytes) });
    }
}

impl Argument for Encoded {
    fn bytes(&self) -> usize {
        self.0.len()
    }

    fn write(&self, to: &mut ValueWriter) {
        to.put(&self.0);
    }
}

/// Values of a fixed size: their tag, and their bytes.
macro_rules! fixed {
    ($($type:ty as $wide:ty, $tag:ident $(, |$value:ident| $needs:expr)?;)+) => {
        $(impl Argument for $type {
            #[inline(always)]
            fn bytes(&self) -> usize {
                1 + size_of::<$wide>()
            }

            #[inline(always)]
            fn write(&self, to: &mut ValueWriter) {
                to.tagged(tag::$tag, <$wide>::from(*self).to_ne_bytes());
            }

            $(#[inline(always)]
            fn needs_caller(&self) -> bool {
                let $value = *self;
                $needs
            })?
        })+
    };
}

fixed! {
    i8 as i64, INT, |value| value < 0;
    i16 as i64, INT, |value| value < 0;
    i32 as i64, INT, |value| value < 0;
    i64 as i64, INT, |value| value < 0;
    u8 as i64, INT;
    u16 as i64, INT;
    u32 as i64, INT;
    char as u32, CHAR;
    f32 as f32, FLOAT32;
    f64 as f64, FLOAT;
}

impl Argument for u64 {
    #[inline(always)]
    fn bytes(&self) -> usize {
        9
    }

    #[inline(always)]
    fn write(&self, to: &mut ValueWriter) {
        let tag = if i64::try_from(*self).is_ok() { tag::INT } else { tag::UINT };
        to.tagged(tag, self.to_ne_bytes());
    }
}

impl Argument for usize {
    #[inline(always)]
    fn bytes(&self) -> usize {
        9
    }

    #[inline(always)]
    fn write(&self, to: &mut ValueWriter) {
        (*self as u64).write(to);
    }
}

impl Argument for isize {
    #[inline(always)]
    fn bytes(&self) -> usize {
        9
    }

    #[inline(always)]
    fn write(&self, to: &mut ValueWriter) {
        (*self as i64).write(to);
    }

    #[inline(always)]
    fn needs_caller(&self) -> bool {
        *self < 0
    }
}

impl Argument for bool {
    #[inline(always)]
    fn bytes(&self) -> usize {
        1
    }

    #[inline(always)]
    fn write(&self, to: &mut ValueWriter) {
        to.put(&[if *self { tag::TRUE } else { tag::FALSE }]);
    }
}

/// The decimal text of an integer of 128 bits, without memory of the heap.
struct Decimal {
    text: [u8; 40],
    start: usize,
}

impl Decimal {
    fn of(mut magnitude: u128, is_negative: bool) -> Self {
        let mut decimal = Self { text: [0; 40], start: 40 };
        loop {
            decimal.start -= 1;
            decimal.text[decimal.start] = b'0' + (magnitude % 10) as u8;
            magnitude /= 10;
            if magnitude == 0 {
                break;
            }
        }
        if is_negative {
            decimal.start -= 1;
            decimal.text[decimal.start] = b'-';
        }
        decimal
    }

    fn bytes(&self) -> &[u8] {
        &self.text[self.start..]
    }
}

macro_rules! wide {
    ($type:ty, |$value:ident| $decimal:expr, $needs:expr) => {
        impl Argument for $type {
            fn bytes(&self) -> usize {
                let $value = *self;
                if i64::try_from($value).is_ok() { 9 } else { 5 + $decimal.bytes().len() }
            }

            fn write(&self, to: &mut ValueWriter) {
                let $value = *self;
                match i64::try_from($value) {
                    Ok(small) => small.write(to),
                    Err(_) => to.tagged_bytes(tag::BIG_INT, $decimal.bytes()),
                }
            }

            fn needs_caller(&self) -> bool {
                let $value = *self;
                $needs
            }
        }
    };
}

wide!(i128, |value| Decimal::of(value.unsigned_abs(), value < 0), value < 0);
wide!(u128, |value| Decimal::of(value, false), i128::try_from(value).is_err());

impl Argument for str {
    #[inline(always)]
    fn bytes(&self) -> usize {
        5 + self.len()
    }

    #[inline(always)]
    fn write(&self, to: &mut ValueWriter) {
        to.tagged_bytes(tag::STR, self.as_bytes());
    }
}

impl<T: ?Sized> Argument for *const T {
    #[inline(always)]
    fn bytes(&self) -> usize {
        9
    }

    #[inline(always)]
    fn write(&self, to: &mut ValueWriter) {
        to.tagged(tag::POINTER, (self.cast::<u8>() as u64).to_ne_bytes());
    }
}

/// Types that stand for another value.
macro_rules! as_inner {
    ($([$($generics:tt)*] $type:ty;)+) => {
        $(impl<$($generics)*> Argument for $type {
            #[inline(always)]
            fn bytes(&self) -> usize {
                Argument::bytes(&**self)
            }

            #[inline(always)]
            fn write(&self, to: &mut ValueWriter) {
                Argument::write(&**self, to);
            }

            #[inline(always)]
            fn needs_caller(&self) -> bool {
                Argument::needs_caller(&**self)
            }
        })+
    };
}

as_inner! {
    [T: Argument + ?Sized] &T;
    [T: Argument + ?Sized] &mut T;
    [T: Argument + ?Sized] Box<T>;
    [T: Argument + ?Sized] Rc<T>;
    [T: Argument + ?Sized] Arc<T>;
    [] String;
    ['a] Cow<'a, str>;
}

/// A value whose text the caller makes with `{}`. See [`display`].
#[derive(Clone)]
pub struct Display {
    text: String,
}

/// A value whose text the caller makes with `{:?}`. See [`debug`].
#[derive(Clone)]
pub struct Debug<T> {
    value: T,
    text: String,
}

/// Makes the text of a value in the call, as `{}` does, for a type that cannot be copied into the queue.
pub fn display(value: impl std::fmt::Display) -> Display {
    Display { text: text(format_args!("{value}")) }
}

/// Makes the text of a value in the call, as `{:?}` does, for a type that cannot be copied into the queue. A placeholder
/// with a type of its own, such as `{:#?}`, shows the same as for the value.
pub fn debug<T: std::fmt::Debug>(value: T) -> Debug<T> {
    Debug { text: text(format_args!("{value:?}")), value }
}

/// The text of a value. An implementation that reports an error shows its text up to the error.
fn text(value: std::fmt::Arguments<'_>) -> String {
    let mut text = String::new();
    let _ = text.write_fmt(value);
    text
}

macro_rules! made_text {
    ($([$($generics:tt)*] $type:ty, $text:ident;)+) => {
        $(impl<$($generics)*> Argument for $type {
            fn bytes(&self) -> usize {
                5 + self.$text.len()
            }

            fn write(&self, to: &mut ValueWriter) {
                to.tagged_bytes(tag::STR, self.$text.as_bytes());
            }

            #[inline(always)]
            fn needs_caller(&self) -> bool {
                true
            }
        }

        // The macros let the compiler check the text and its arguments with `format_args!`.
        impl<$($generics)*> std::fmt::Display for $type {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(&self.$text)
            }
        })+
    };
}

made_text! {
    [] Display, text;
    [T: std::fmt::Debug] Debug<T>, text;
}

impl std::fmt::Debug for Display {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(&self.text)
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Debug<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.value.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use logspool_record::{Value, Values};

    use super::*;

    fn written(value: &(impl Argument + ?Sized)) -> Vec<u8> {
        let mut encoded = Encoded::default();
        encoded.push(value);
        encoded.0
    }

    fn read(bytes: &[u8]) -> Value<'_> {
        let mut values = Values::new(bytes);
        let value = values.next().unwrap();
        assert!(values.rest().is_empty());
        value
    }

    #[test]
    fn each_type_is_read_as_it_was_written() {
        assert_eq!(Value::Int(-3), read(&written(&-3_i8)));
        assert_eq!(Value::Int(7), read(&written(&7_u64)));
        assert_eq!(Value::Uint(u64::MAX), read(&written(&u64::MAX)));
        assert_eq!(Value::Int(5), read(&written(&5_u128)));
        assert_eq!(Value::BigInt(&i128::MIN.to_string()), read(&written(&i128::MIN)));
        assert_eq!(Value::BigInt(&u128::MAX.to_string()), read(&written(&u128::MAX)));
        assert_eq!(Value::Float(0.5), read(&written(&0.5_f64)));
        assert_eq!(Value::Float32(0.5), read(&written(&0.5_f32)));
        assert_eq!(Value::Char('ä'), read(&written(&'ä')));
        assert_eq!(Value::Bool(true), read(&written(&true)));
        assert_eq!(Value::Str("text"), read(&written(&Box::new(Cow::from("text")))));
        assert_eq!(Value::Pointer(16), read(&written(&(16 as *const u32))));
        assert_eq!(Value::Str("[1]"), read(&written(&debug([1]))));
    }

    #[test]
    fn a_value_that_writes_more_than_it_announced_stays_in_its_bytes() {
        let mut bytes = [0xff_u8; 12];
        // SAFETY: fewer bytes than the array has.
        let mut writer = unsafe { ValueWriter::new(bytes.as_mut_ptr(), 6) };
        "longer".write(&mut writer);

        assert_eq!([0xff; 6], bytes[6..]);
    }
}
