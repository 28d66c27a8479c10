//! A message template, and the kinds of argument that each of its directives takes by value.
//!
//! Stop on the line: *capture*. The core parses templates (`logspool_record::format`). Here its answers become tables
//! that the hot path indexes, and the text of each directive becomes a `str` for values that Python must render.

use logspool_record::format::{ArgumentKind, MessageTemplate, RenderedBy};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::interpreter::object::{self, Object, Owned};

/// A parsed template; its arguments may be sent by value.
pub struct Template {
    /// Its directives, in order.
    pub directives: Box<[Directive]>,
    deferrable: bool,
}

/// One %-directive.
pub struct Directive {
    accepts: [RenderedBy; KINDS],
    text: Owned,
}

/// Number of [`Kind`]s.
const KINDS: usize = 8;

/// Exact type of an argument; the number is an index into `Directive::accepts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Kind {
    /// `str` of ASCII characters
    AsciiStr = 0,
    /// another `str`
    Str = 1,
    /// `int` within `i64`
    Int = 2,
    /// `float`
    Float = 3,
    /// `bool`
    Bool = 4,
    /// `None`
    None = 5,
    /// `bytes`
    Bytes = 6,
    /// anything else
    Other = 7,
}

impl Template {
    /// Parses `text`; `None` only if memory for the text of a directive runs out.
    pub fn parse(py: Python<'_>, text: &str) -> Option<Self> {
        let parsed = MessageTemplate::parse(text);
        if !parsed.deferrable() {
            return Some(Self { directives: Box::new([]), deferrable: false });
        }
        let mut directives = Vec::new();
        for directive in parsed.directives() {
            let accepts = [
                ArgumentKind::AsciiStr,
                ArgumentKind::Str,
                ArgumentKind::Int,
                ArgumentKind::Float,
                ArgumentKind::Bool,
                ArgumentKind::None,
                ArgumentKind::Bytes,
                ArgumentKind::Other,
            ]
            .map(|kind| directive.accepts(kind));
            let text = directive.text();
            // SAFETY: `text` has the length given; the result is a new reference or null with an error set.
            let text =
                unsafe { Owned::steal(ffi::PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as isize)) };
            if text.is_none() {
                object::clear_error(py);
            }
            let text = text?;
            directives.push(Directive { accepts, text });
        }
        Some(Self { directives: directives.into_boxed_slice(), deferrable: true })
    }

    /// True if arguments may be sent by value.
    #[inline(always)]
    pub fn deferrable(&self) -> bool {
        self.deferrable
    }
}

impl Directive {
    /// Tells how an argument of that kind is handled.
    #[inline(always)]
    pub fn accepts(&self, kind: Kind) -> RenderedBy {
        self.accepts[kind as usize]
    }

    /// `directive % (argument,)`, as Python renders it; `None` with an error set if that raises. Runs foreign code.
    pub fn render(&self, argument: Object<'_, '_>) -> Option<Owned> {
        // SAFETY: live objects, and the thread is attached; the new tuple takes over the reference.
        unsafe {
            let tuple = Owned::steal(ffi::PyTuple_New(1))?;
            ffi::PyTuple_SetItem(tuple.as_ptr(), 0, Owned::of(&argument).into_ptr());
            Owned::steal(ffi::PyUnicode_Format(self.text.as_ptr(), tuple.as_ptr()))
        }
    }
}
