//! The calling thread: its number in Python, and the name that the operating system shows.

use std::ffi::c_ulong;

/// The number of the calling thread, as `threading.get_ident()` shows it.
#[inline]
pub fn ident() -> c_ulong {
    unsafe extern "C" {
        // Declared here because older PyO3 versions do not declare it.
        fn PyThread_get_thread_ident() -> c_ulong;
    }
    // SAFETY: the function has no preconditions.
    unsafe { PyThread_get_thread_ident() }
}

/// Gives the calling thread a name for `top` and debuggers. The kernel keeps at most 15 bytes.
pub fn name_thread(name: &str) {
    if let Ok(name) = std::ffi::CString::new(name) {
        // SAFETY: a C string; the kernel truncates longer ones.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    }
}
