//! Finds the code object and the instruction that called the running native function.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). Making a frame object takes 30-60 ns, and the interpreter's own
//! frame record already holds the key of a call site. The layout of that record is private and differs between
//! versions. So this module compares it with the public functions once, at import ([`self_check`]). If the two
//! disagree, the public functions are used.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

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

#[cfg(any(Py_3_11, Py_3_12, Py_3_13))]
mod layout {
    //! Offsets in bytes, taken from `Include/cpython/pystate.h` and `Include/internal/pycore_frame.h`.
    #[cfg(not(Py_3_12))]
    pub const CFRAME: Option<(usize, usize)> = Some((56, 8));
    #[cfg(all(Py_3_12, not(Py_3_13)))]
    pub const CFRAME: Option<(usize, usize)> = Some((56, 0));
    #[cfg(Py_3_13)]
    pub const CFRAME: Option<(usize, usize)> = None;
    /// Offset of `tstate->current_frame` on versions without `cframe`.
    pub const CURRENT_FRAME: usize = 72;
    #[cfg(not(Py_3_12))]
    pub const CODE: usize = 32;
    #[cfg(Py_3_12)]
    pub const CODE: usize = 0;
    pub const INSTRUCTION: usize = 56;
    #[cfg(not(Py_3_12))]
    pub const OWNER: usize = 69;
    #[cfg(Py_3_12)]
    pub const OWNER: usize = 70;
    /// The value of `FRAME_OWNED_BY_CSTACK`: an entry frame without a code object.
    pub const OWNED_BY_C_STACK: u8 = 3;
}

/// The Python code that called the running native function; `None` if there is no Python frame. That Python code keeps
/// running until the native function returns, and the token does not outlive the native function.
#[inline(always)]
pub fn caller(py: Python<'_>) -> Option<Caller<'_>> {
    #[cfg(all(Py_3_11, not(Py_3_14)))]
    if USE_PRIVATE_LAYOUT.load(Relaxed) {
        // SAFETY: `self_check` has confirmed the layout.
        return unsafe { direct(py) };
    }
    public(py)
}

/// # Safety
///
/// The frames of this interpreter have the layout of [`layout`], as [`self_check`] confirms. When `self_check` itself
/// calls this function, the result may be wrong, and is only compared with the result of [`public`].
#[cfg(all(Py_3_11, not(Py_3_14)))]
#[inline(always)]
unsafe fn direct(py: Python<'_>) -> Option<Caller<'_>> {
    use layout::{CFRAME, CODE, CURRENT_FRAME, INSTRUCTION, OWNED_BY_C_STACK, OWNER};
    // SAFETY: the offsets were compared with the public functions at import. The thread state and its top frame are
    // live, because this native function runs on top of them.
    unsafe {
        let state = ffi::PyThreadState_Get().cast::<u8>();
        let frame: *const u8 = match CFRAME {
            Some((cframe, current)) => {
                let cframe: *const u8 = state.add(cframe).cast::<*const u8>().read();
                cframe.add(current).cast::<*const u8>().read()
            }
            None => state.add(CURRENT_FRAME).cast::<*const u8>().read(),
        };
        if frame.is_null() {
            return None;
        }
        if frame.add(OWNER).read() == OWNED_BY_C_STACK {
            return public(py);
        }
        let code = frame.add(CODE).cast::<*mut PyObject>().read();
        let instruction = frame.add(INSTRUCTION).cast::<*const u8>().read();
        Some(Caller { code, key: instruction as isize - code as isize, _frame: PhantomData })
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

/// Compares the private layout with the public functions. Python code calls this at import, several times and from
/// different lines.
pub fn self_check(py: Python<'_>) -> bool {
    #[cfg(all(Py_3_11, not(Py_3_14)))]
    {
        let Some(public) = public(py) else { return false };
        // SAFETY: every read is of memory that exists in each version, because the structs are larger than the largest
        // offset. A wrong layout yields wrong numbers, which the comparison detects.
        let Some(direct) = (unsafe { direct(py) }) else { return false };
        if direct.code != public.code {
            return false;
        }
        // `key` is the address of an instruction inside the code object; the public number counts bytes from the first
        // instruction. Their difference is the offset of the bytecode, which is the same for all code objects.
        let offset = direct.key - (-1 - public.key);
        (16..=512).contains(&offset)
    }
    #[cfg(not(all(Py_3_11, not(Py_3_14))))]
    {
        let _ = py;
        false
    }
}

/// Sets whether the private layout may be used.
pub fn use_direct(allowed: bool) {
    USE_PRIVATE_LAYOUT.store(allowed, Relaxed);
}
