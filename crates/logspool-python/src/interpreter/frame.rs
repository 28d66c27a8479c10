//! Which instruction of which code object called us.
//!
//! Stop on the line: *capture*. A frame object costs 30-60 ns to make; the interpreter's own frame record
//! holds what a call site is keyed by. Its layout differs per version and is private, so it is compared with
//! the public functions once at import ([`self_check`]); where they disagree the public functions are used.

use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pyo3::ffi::{self, PyObject};

use crate::interpreter::object::Owned;

/// A code object, borrowed for as long as its frame runs, and a key of the calling instruction in it.
#[derive(Clone, Copy)]
pub struct Caller {
    /// The code object.
    pub code: *mut PyObject,
    /// Stable per instruction within the code object's life.
    pub key: isize,
}

/// Whether the private layout may be used. An atomic outside `queue`: written once at import.
static DIRECT: AtomicBool = AtomicBool::new(false);

#[cfg(any(Py_3_11, Py_3_12, Py_3_13))]
mod layout {
    //! Offsets in bytes, from `Include/cpython/pystate.h` and `Include/internal/pycore_frame.h`.
    #[cfg(not(Py_3_12))]
    pub const CFRAME: Option<(usize, usize)> = Some((56, 8));
    #[cfg(all(Py_3_12, not(Py_3_13)))]
    pub const CFRAME: Option<(usize, usize)> = Some((56, 0));
    #[cfg(Py_3_13)]
    pub const CFRAME: Option<(usize, usize)> = None;
    /// `tstate->current_frame` where there is no `cframe`.
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
    /// `FRAME_OWNED_BY_CSTACK`: an entry frame without code.
    pub const OWNED_BY_C_STACK: u8 = 3;
}

/// The Python code that called the native function now running; `None` when there is no Python frame.
///
/// # Safety
///
/// Called from a native function, attached.
#[inline(always)]
pub unsafe fn caller() -> Option<Caller> {
    #[cfg(all(Py_3_11, not(Py_3_14)))]
    if DIRECT.load(Relaxed) {
        // SAFETY: `self_check` found the layout to be this one.
        return unsafe { direct() };
    }
    // SAFETY: passed on.
    unsafe { public() }
}

#[cfg(all(Py_3_11, not(Py_3_14)))]
#[inline(always)]
unsafe fn direct() -> Option<Caller> {
    use layout::{CFRAME, CODE, CURRENT_FRAME, INSTRUCTION, OWNED_BY_C_STACK, OWNER};
    // SAFETY: offsets checked against the public functions at import; the thread state and the frame on top
    // of it are live while this native function runs on top of them.
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
            return public();
        }
        let code = frame.add(CODE).cast::<*mut PyObject>().read();
        let instruction = frame.add(INSTRUCTION).cast::<*const u8>().read();
        Some(Caller { code, key: instruction as isize - code as isize })
    }
}

/// As [`caller`], through the public functions only.
unsafe fn public() -> Option<Caller> {
    // SAFETY: the frame is borrowed from the running thread.
    unsafe {
        let frame = ffi::PyEval_GetFrame();
        if frame.is_null() { None } else { Some(of_frame(frame)) }
    }
}

/// Code and key of a frame object that somebody keeps alive.
///
/// The key is the same as [`caller`]'s only without the direct way; sites of walked-back frames use it, and a
/// code object that is reached both ways just has two sites for one instruction.
///
/// # Safety
///
/// `frame` is live; the result's code is borrowed from it.
pub unsafe fn of_frame(frame: *mut ffi::PyFrameObject) -> Caller {
    // SAFETY: live frame; it holds its code, so the reference can be given back at once.
    unsafe {
        let code = ffi::PyFrame_GetCode(frame).cast::<PyObject>();
        ffi::Py_DECREF(code);
        Caller { code, key: last_instruction(frame) }
    }
}

#[cfg(Py_3_11)]
unsafe fn last_instruction(frame: *mut ffi::PyFrameObject) -> isize {
    unsafe extern "C" {
        fn PyFrame_GetLasti(frame: *mut ffi::PyFrameObject) -> std::ffi::c_int;
    }
    // SAFETY: live frame. Negative, so that it never equals a direct key.
    unsafe { -1 - PyFrame_GetLasti(frame) as isize }
}

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

/// The frame object on top, made if need be, as a new reference.
///
/// # Safety
///
/// Attached.
pub unsafe fn top() -> Option<Owned> {
    // SAFETY: PyEval_GetFrame borrows from the thread.
    unsafe {
        let frame = ffi::PyEval_GetFrame().cast::<PyObject>();
        if frame.is_null() { None } else { Some(Owned::borrow(frame)) }
    }
}

/// The frame that called `frame`.
///
/// # Safety
///
/// `frame` is a live frame object, the thread attached.
pub unsafe fn back(frame: &Owned) -> Option<Owned> {
    // SAFETY: a live frame; PyFrame_GetBack returns a new reference or null.
    unsafe { Owned::steal(ffi::PyFrame_GetBack(frame.as_ptr().cast()).cast()) }
}

/// The line that `frame` executes.
///
/// # Safety
///
/// `frame` is a live frame object, the thread attached.
pub unsafe fn line(frame: &Owned) -> u32 {
    // SAFETY: live frame.
    let line = unsafe { ffi::PyFrame_GetLineNumber(frame.as_ptr().cast()) };
    u32::try_from(line).unwrap_or(0)
}

/// Compares the direct way with the public one. Called from Python at import, several times from several lines.
///
/// # Safety
///
/// Called from a native function that Python code called, attached.
pub unsafe fn self_check() -> bool {
    #[cfg(all(Py_3_11, not(Py_3_14)))]
    {
        // SAFETY: every read is of memory that exists in each of the versions (the structs are larger than the
        // largest offset), so a wrong layout yields wrong numbers, which the comparison finds.
        unsafe {
            let Some(public) = public() else { return false };
            let Some(direct) = direct() else { return false };
            if direct.code != public.code {
                return false;
            }
            // `key` is the address of an instruction inside the code object; the public number counts bytes
            // from its first instruction. Their difference is the offset of the bytecode, the same for all.
            let offset = direct.key - (-1 - public.key);
            return (16..=512).contains(&offset);
        }
    }
    #[allow(unreachable_code)]
    false
}

/// Says whether the direct way may be used from now on.
pub fn use_direct(allowed: bool) {
    DIRECT.store(allowed, Relaxed);
}

/// `code.co_filename` or `code.co_name`.
///
/// # Safety
///
/// `code` is a live code object, `name` an interned `str`, the thread attached.
pub unsafe fn code_text(code: *mut PyObject, name: *mut PyObject) -> Option<Owned> {
    // SAFETY: plain member descriptors of the code type.
    unsafe {
        let value = crate::interpreter::object::attribute(code, name)?;
        if ptr::eq(ffi::Py_TYPE(value.as_ptr()), &raw const ffi::PyUnicode_Type) { Some(value) } else { None }
    }
}
