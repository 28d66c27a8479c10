//! The calling thread as the system shows it.

/// Gives the calling thread a name that `top` and debuggers show; the kernel keeps 15 bytes.
pub fn name_thread(name: &str) {
    if let Ok(name) = std::ffi::CString::new(name) {
        // SAFETY: a C string; longer ones are cut.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    }
}
