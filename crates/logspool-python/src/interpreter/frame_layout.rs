//! Offsets in bytes of the fields of CPython's frame record that a call needs.
//!
//! From 3.14 on the interpreter publishes the offsets for debuggers: `_Py_DebugOffsets`, the first field
//! of `_PyRuntime` (`Include/internal/pycore_debug_offsets.h`). For 3.11 to 3.13 they are taken from
//! `Include/cpython/pystate.h` and `Include/internal/pycore_frame.h`. `frame.rs` compares them with public functions.

/// The offsets in a frame record.
#[derive(Clone, Copy)]
pub struct FrameLayout {
    /// The code object.
    pub code: usize,
    /// The address of the current instruction.
    pub instruction: usize,
    /// The byte that names the owner of the record.
    pub owner: usize,
}

/// This owner and higher ones have frames without a code object.
pub const OWNED_BY_INTERPRETER: u8 = 3;

pub use kind::{CODE_BITS, is_known, layout, path_to_top};

#[cfg(not(Py_3_14))]
mod kind {
    use super::FrameLayout;

    /// The bits of the word of the code object that are its address.
    pub const CODE_BITS: usize = !0;

    #[cfg(not(Py_3_12))]
    const LAYOUT: FrameLayout = FrameLayout { code: 32, instruction: 56, owner: 69 };
    #[cfg(Py_3_12)]
    const LAYOUT: FrameLayout = FrameLayout { code: 0, instruction: 56, owner: 70 };

    /// True if the layout can be tried.
    pub fn is_known() -> bool {
        true
    }

    /// The offsets in a frame record.
    #[inline(always)]
    pub fn layout() -> FrameLayout {
        LAYOUT
    }

    /// The way from a thread's state to its frame record: an offset in the state, and an offset in the object found
    /// there, unless that is the record itself.
    #[inline(always)]
    pub fn path_to_top() -> (usize, Option<usize>) {
        match (cfg!(Py_3_12), cfg!(Py_3_13)) {
            (_, true) => (72, None),
            (true, _) => (56, Some(0)),
            _ => (56, Some(8)),
        }
    }
}

#[cfg(Py_3_14)]
mod kind {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::FrameLayout;

    /// The two lowest bits are tags of `_PyStackRef`.
    pub const CODE_BITS: usize = !3;

    /// Number of words of `_Py_DebugOffsets` that are read.
    const WORDS: usize = 45;

    unsafe extern "C" {
        static _PyRuntime: [u64; WORDS];
    }

    /// Indices of words in `_Py_DebugOffsets`.
    struct Indices {
        thread_state_size: usize,
        current_frame: usize,
        frame_size: usize,
        code: usize,
        instruction: usize,
        owner: usize,
    }

    static CURRENT_FRAME: AtomicUsize = AtomicUsize::new(0);
    static CODE: AtomicUsize = AtomicUsize::new(0);
    static INSTRUCTION: AtomicUsize = AtomicUsize::new(0);
    static OWNER: AtomicUsize = AtomicUsize::new(0);

    /// Reads the offsets. True if this version of CPython publishes them in a way that is known, and they are within
    /// their structs.
    pub fn is_known() -> bool {
        // SAFETY: the interpreter's own static, which is far larger. These words never change.
        let words: [u64; WORDS] = unsafe { (&raw const _PyRuntime).read() };
        let [cookie, version, free_threaded, ..] = words;
        let frames_at = match version >> 16 {
            0x030e => 31,
            0x030f => 39,
            _ => return false,
        };
        let indices = Indices {
            thread_state_size: 22,
            current_frame: 26,
            frame_size: frames_at,
            code: frames_at + 2,
            instruction: frames_at + 3,
            owner: frames_at + 5,
        };
        let at = |index: usize| words[index] as usize;
        let in_frame = |offset: usize| offset < at(indices.frame_size);
        let is_known = cookie.to_ne_bytes() == *b"xdebugpy"
            && (free_threaded != 0) == cfg!(Py_GIL_DISABLED)
            && at(indices.current_frame) < at(indices.thread_state_size)
            && [indices.code, indices.instruction, indices.owner].map(at).into_iter().all(in_frame);
        if is_known {
            CURRENT_FRAME.store(at(indices.current_frame), Relaxed);
            CODE.store(at(indices.code), Relaxed);
            INSTRUCTION.store(at(indices.instruction), Relaxed);
            OWNER.store(at(indices.owner), Relaxed);
        }
        is_known
    }

    /// The offsets in a frame record.
    #[inline(always)]
    pub fn layout() -> FrameLayout {
        FrameLayout { code: CODE.load(Relaxed), instruction: INSTRUCTION.load(Relaxed), owner: OWNER.load(Relaxed) }
    }

    /// The way from a thread's state to its frame record: an offset in the state, and an offset in the object found
    /// there, unless that is the record itself.
    #[inline(always)]
    pub fn path_to_top() -> (usize, Option<usize>) {
        (CURRENT_FRAME.load(Relaxed), None)
    }
}
