//! Finds the code object and the instruction that called the running native function.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). Making a frame object takes 30-60 ns, and the interpreter's own
//! frame record already holds the key of a call site. The layout of that record differs between versions
//! ([`frame_layout`]). So this module compares it with the public functions once, at import ([`self_check`]). If the
//! two disagree, the public functions are used.
//!
//! [`frame_layout`]: crate::interpreter::frame_layout

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

#[cfg(Py_3_11)]
use crate::interpreter::frame_layout;
use crate::interpreter::object::{self, Owned};

/// A code object, and the key of the calling instruction in it. Both are borrowed from a frame that runs or is held for
/// `'a`.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    code: *mut PyObject,
    key: isize,
    _frame: PhantomData<&'a PyObject>,
}

impl Caller<'_> {
    /// The code object, live for as long as the caller is borrowed.
    #[inline(always)]
    pub fn code(&self) -> *mut PyObject {
        self.code
    }

    /// The key is unique per instruction, and stable for the life of the code object.
    #[inline(always)]
    pub fn key(&self) -> isize {
        self.key
    }

    /// `code.co_filename` or `code.co_name`.
    pub fn text(&self, py: Python<'_>, name: &Owned) -> Option<String> {
        // SAFETY: the frame holds its code; `py` shows that the thread is attached.
        let code = unsafe { Borrowed::from_ptr(py, self.code) };
        object::attribute(code, name).and_then(|value| object::text(value.bind(py)).map(str::to_owned))
    }
}

/// An owned reference to a frame object.
pub struct Frame(Owned);

impl Frame {
    /// The frame at the top of the stack. CPython creates the frame object if necessary.
    pub fn top(_attached: Python<'_>) -> Option<Self> {
        // SAFETY: the token shows that the thread is attached. The frame is borrowed from the thread and becomes an
        // owned reference.
        unsafe {
            let frame = ffi::PyEval_GetFrame().cast::<PyObject>();
            ffi::Py_XINCREF(frame);
            Owned::steal(frame).map(Self)
        }
    }

    /// The frame of the caller.
    pub fn back(&self, _attached: Python<'_>) -> Option<Self> {
        // SAFETY: `self` holds a frame object; `PyFrame_GetBack` returns a new reference or null.
        unsafe { Owned::steal(ffi::PyFrame_GetBack(self.raw()).cast()).map(Self) }
    }

    /// The line that the frame is executing.
    pub fn line(&self, _attached: Python<'_>) -> u32 {
        // SAFETY: `self` holds a frame object, and the token shows that the thread is attached.
        u32::try_from(unsafe { ffi::PyFrame_GetLineNumber(self.raw()) }).unwrap_or(0)
    }

    /// The frame's code object and the key of its current instruction.
    ///
    /// The key equals the key of [`caller`] only if the private layout is not used. Sites of outer frames use the key
    /// of this function. If a code object logs as nearest and as outer frame, it has two sites for one instruction.
    pub fn caller(&self, _attached: Python<'_>) -> Caller<'_> {
        // SAFETY: `self` holds a frame object, which holds its code object.
        unsafe { of_frame(self.raw()) }
    }

    /// The frame object.
    pub fn object(&self) -> &Owned {
        &self.0
    }

    fn raw(&self) -> *mut ffi::PyFrameObject {
        self.0.as_ptr().cast()
    }
}

/// True if the private layout may be used. This atomic is outside the crate's `queue` module: it is written once, at
/// import.
static USE_PRIVATE_LAYOUT: AtomicBool = AtomicBool::new(false);

/// The Python code that called the running native function; `None` if there is no Python frame. That Python code keeps
/// running until the native function returns, and the token does not outlive the native function.
#[inline(always)]
pub fn caller(py: Python<'_>) -> Option<Caller<'_>> {
    #[cfg(Py_3_11)]
    if USE_PRIVATE_LAYOUT.load(Relaxed) {
        // SAFETY: `self_check` has confirmed the layout.
        return unsafe { direct(py) };
    }
    public(py)
}

/// # Safety
///
/// The frames of this interpreter have the layout of [`frame_layout`], as [`self_check`] confirms. When `self_check`
/// itself calls this function, the result may be wrong, and is only compared with the result of [`public`].
///
/// [`frame_layout`]: crate::interpreter::frame_layout
#[cfg(Py_3_11)]
#[inline(always)]
unsafe fn direct(py: Python<'_>) -> Option<Caller<'_>> {
    use frame_layout::{CODE_BITS, OWNED_BY_INTERPRETER, layout, path_to_top};
    let (layout, (first, second)) = (layout(), path_to_top());
    // SAFETY: the offsets were compared with the public functions at import. The thread state and its top frame are
    // live, because this native function runs on top of them.
    unsafe {
        let mut frame = ffi::PyThreadState_Get().cast::<u8>().add(first).cast::<*const u8>().read();
        if let Some(offset) = second {
            frame = frame.add(offset).cast::<*const u8>().read();
        }
        if frame.is_null() {
            return None;
        }
        if frame.add(layout.owner).read() >= OWNED_BY_INTERPRETER {
            return public(py);
        }
        let code = frame.add(layout.code).cast::<usize>().read() & CODE_BITS;
        let instruction = frame.add(layout.instruction).cast::<usize>().read();
        Some(Caller { code: code as *mut PyObject, key: instruction as isize - code as isize, _frame: PhantomData })
    }
}

/// Like [`caller`], but uses only the public functions.
fn public(_attached: Python<'_>) -> Option<Caller<'_>> {
    // SAFETY: the token shows that the thread is attached; the frame is borrowed from the thread and is running.
    unsafe {
        let frame = ffi::PyEval_GetFrame();
        if frame.is_null() { None } else { Some(of_frame(frame)) }
    }
}

/// The code object and the key of a frame object.
///
/// # Safety
///
/// `frame` is a live frame object of an attached thread, and lives for `'a`.
unsafe fn of_frame<'a>(frame: *mut ffi::PyFrameObject) -> Caller<'a> {
    // SAFETY: the caller ensures a live frame. It holds its code object, so the reference can be released at once.
    unsafe {
        let code = ffi::PyFrame_GetCode(frame).cast::<PyObject>();
        ffi::Py_DECREF(code);
        Caller { code, key: last_instruction(frame), _frame: PhantomData }
    }
}

/// # Safety
///
/// `frame` is a live frame object.
#[cfg(Py_3_11)]
unsafe fn last_instruction(frame: *mut ffi::PyFrameObject) -> isize {
    unsafe extern "C" {
        fn PyFrame_GetLasti(frame: *mut ffi::PyFrameObject) -> std::ffi::c_int;
    }
    // SAFETY: a live frame. The result is negative, so it never equals a key from the private layout.
    unsafe { -1 - PyFrame_GetLasti(frame) as isize }
}

/// # Safety
///
/// `frame` is a live frame object.
#[cfg(not(Py_3_11))]
unsafe fn last_instruction(frame: *mut ffi::PyFrameObject) -> isize {
    // SAFETY: 3.10's frame object is a public struct; `f_lasti` follows `f_gen`.
    unsafe { (*frame.cast::<Frame310>()).f_lasti as isize }
}

#[cfg(not(Py_3_11))]
#[repr(C)]
struct Frame310 {
    head: ffi::PyVarObject,
    pointers: [*mut PyObject; 7],
    f_stackdepth: std::ffi::c_int,
    f_trace_lines: std::ffi::c_char,
    f_trace_opcodes: std::ffi::c_char,
    f_gen: *mut PyObject,
    f_lasti: std::ffi::c_int,
}

/// Compares the private layout with the public functions. Returns why it may not be used, or an empty text. Python code
/// calls this at import, several times and from different lines.
///
/// CPython 3.10 needs no private layout.
pub fn self_check(py: Python<'_>) -> &'static str {
    #[cfg(Py_3_11)]
    {
        const DIFFERS: &str = "the frames of this build are not where those of its release are";
        if !frame_layout::is_known() {
            return "this release does not publish where its frames are, or in an unknown way";
        }
        let Some(public) = public(py) else { return DIFFERS };
        // SAFETY: every read is of memory that exists in each version, because the structs are larger than the largest
        // offset. A wrong layout yields wrong numbers, which the comparison detects.
        let Some(direct) = (unsafe { direct(py) }) else { return DIFFERS };
        if direct.code != public.code {
            return DIFFERS;
        }
        // `key` is the address of an instruction inside the code object; the public number counts bytes from the first
        // instruction. Their difference is the offset of the bytecode, which is the same for all code objects.
        let offset = direct.key - (-1 - public.key);
        if (16..=512).contains(&offset) { "" } else { DIFFERS }
    }
    #[cfg(not(Py_3_11))]
    {
        let _ = py;
        ""
    }
}

/// Sets whether the private layout may be used.
pub fn use_direct(allowed: bool) {
    USE_PRIVATE_LAYOUT.store(allowed, Relaxed);
}
