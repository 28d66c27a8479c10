//! Results of calls, and the text of the last error of a thread.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Result of a call, with the numbers of `logspool.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// The level is disabled.
    Disabled = 1,
    /// The record is refused and counted.
    Refused = -1,
    /// An argument is null, out of range or ill-formed.
    Invalid = -2,
    /// There is no such id.
    Unknown = -3,
    /// The system failed, or a limit is reached.
    Failed = -4,
    /// The time is up.
    Timeout = -5,
    /// A bug of the library.
    Panic = -6,
    /// Another copy of the library has the queue, with another major version.
    Version = -7,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The kind of failure.
    pub status: Status,
    /// The message: the action, its object and the reason.
    pub text: Cow<'static, str>,
}

impl Failure {
    /// A failure of a kind.
    pub fn new(status: Status, text: impl Into<Cow<'static, str>>) -> Self {
        Self { status, text: text.into() }
    }

    /// An argument is null, out of range or ill-formed.
    pub fn invalid(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Status::Invalid, text)
    }

    /// There is no `kind` with this id.
    pub fn unknown(kind: &str, id: u32) -> Self {
        Self::new(Status::Unknown, format!("there is no {kind} with the id {id}"))
    }
}

/// Bytes that a text of the program is cut to. Chosen: each is shorter.
const STATIC_BYTES: usize = 192;

thread_local! {
    static LAST: Cell<i32> = const { Cell::new(0) };
    /// The last text that was made for an error.
    static MADE: RefCell<CString> = RefCell::new(CString::default());
    /// The last text that is part of the program, with a NUL. It needs no memory, so a signal handler may store it.
    static STATIC: Cell<[u8; STATIC_BYTES]> = const { Cell::new([0; STATIC_BYTES]) };
    static IS_MADE: Cell<bool> = const { Cell::new(false) };
}

/// Notes the status of this thread's last call.
#[inline]
pub fn note(status: Status) {
    LAST.set(status as i32);
}

/// Status of this thread's last call.
pub fn last() -> c_int {
    LAST.get()
}

/// Text of this thread's last error. Valid until the thread's next error.
pub fn last_text() -> *const c_char {
    if IS_MADE.get() {
        // At the end of the thread there is no text any more.
        MADE.try_with(|text| text.try_borrow().map_or(c"".as_ptr(), |text| text.as_ptr())).unwrap_or(c"".as_ptr())
    } else {
        STATIC.with(|text| text.as_ptr().cast_const().cast())
    }
}

/// Notes a failure as this thread's last error. A text that is part of the program takes no memory.
#[cold]
pub fn fail(failure: Failure) -> Status {
    note(failure.status);
    match failure.text {
        Cow::Borrowed(text) => {
            let mut bytes = [0; STATIC_BYTES];
            let shown = text.len().min(STATIC_BYTES - 1);
            bytes[..shown].copy_from_slice(&text.as_bytes()[..shown]);
            STATIC.set(bytes);
            IS_MADE.set(false);
        }
        Cow::Owned(text) => {
            let bytes: Vec<u8> = text.into_bytes().into_iter().filter(|byte| *byte != 0).collect();
            // A signal handler may interrupt this function; its error is then not kept.
            let _ = MADE.try_with(|text| {
                if let Ok(mut text) = text.try_borrow_mut() {
                    *text = CString::new(bytes).unwrap_or_default();
                    IS_MADE.set(true);
                }
            });
        }
    }
    failure.status
}

/// Keeps `errno` as it is until it is dropped: a call that logs, also in a signal handler, changes it for nobody.
pub struct ErrnoGuard(c_int);

impl ErrnoGuard {
    /// Notes `errno`.
    pub fn begin() -> Self {
        // SAFETY: the address belongs to this thread.
        Self(unsafe { *libc::__errno_location() })
    }
}

impl Drop for ErrnoGuard {
    fn drop(&mut self) {
        // SAFETY: as in `begin`.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

/// Runs a call. A failure becomes the thread's last error and `otherwise`; so does a panic.
#[inline]
pub fn fenced<T>(otherwise: T, call: impl FnOnce() -> Result<T, Failure>) -> T {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => value,
        Ok(Err(failure)) => {
            fail(failure);
            otherwise
        }
        Err(_) => {
            fail(Failure::new(Status::Panic, "logspool has a bug: a call panicked"));
            otherwise
        }
    }
}

/// As [`fenced`], for calls that return their status.
#[inline]
pub fn fenced_status(call: impl FnOnce() -> Result<Status, Failure>) -> c_int {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(status)) => {
            note(status);
            status as c_int
        }
        Ok(Err(failure)) => fail(failure) as c_int,
        Err(_) => fail(Failure::new(Status::Panic, "logspool has a bug: a call panicked")) as c_int,
    }
}

/// The text at `text`; ill-formed bytes become U+FFFD. `None`: the pointer is null.
///
/// # Safety
///
/// `text` is null or a C string.
pub unsafe fn text(text: *const c_char) -> Option<String> {
    // SAFETY: the pointer is not null, so it is a C string.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}
