//! A message template, and the kinds of argument that each of its directives accepts by value.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). The core parses templates (`logspool_record::format`). This module
//! turns the result into tables that the hot path indexes. The text of each directive becomes a `str`, which renders
//! the values that only Python can render.

use logspool_record::format::{ArgumentKind, MessageTemplate, RenderedBy};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::interpreter::object::{self, Object, Owned};

/// A parsed template. `deferrable` says whether its arguments may be sent by value.
pub struct Template {
    /// The directives of the template, in order.
    pub directives: Box<[Directive]>,
    deferrable: bool,
}

/// One %-directive.
pub struct Directive {
    accepts: [RenderedBy; KINDS],
    text: Owned,
}

/// Number of variants of [`Kind`].
const KINDS: usize = 8;

/// The exact type of an argument. The number is an index into `Directive::accepts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Kind {
    /// A `str` of ASCII characters
    AsciiStr = 0,
    /// A `str` with other characters
    Str = 1,
    /// An `int` that fits `i64`
    Int = 2,
    /// `float`
    Float = 3,
    /// `bool`
    Bool = 4,
    /// `None`
    None = 5,
    /// `bytes`
    Bytes = 6,
    /// An object of any other type
    Other = 7,
}

impl Template {
    /// Parses `text`. Returns `None` only if there is not enough memory for the text of a directive.
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

    /// True if the arguments may be sent by value.
    #[inline(always)]
    pub fn deferrable(&self) -> bool {
        self.deferrable
    }
}

impl Directive {
    /// Returns how an argument of this kind is rendered.
    #[inline(always)]
    pub fn accepts(&self, kind: Kind) -> RenderedBy {
        self.accepts[kind as usize]
    }

    /// Computes `directive % (argument,)`, as Python renders it; `None` with an exception set if that raises. Runs user
    /// Python code.
    pub fn render(&self, argument: Object<'_, '_>) -> Option<Owned> {
        // SAFETY: live objects, and the thread is attached; the new tuple takes over the reference.
        unsafe {
            let tuple = Owned::steal(ffi::PyTuple_New(1))?;
            ffi::PyTuple_SetItem(tuple.as_ptr(), 0, Owned::of(&argument).into_ptr());
            Owned::steal(ffi::PyUnicode_Format(self.text.as_ptr(), tuple.as_ptr()))
        }
    }
}
