//! The calling thread, as the operating system shows it.

/// Gives the calling thread a name for `top` and debuggers; the kernel keeps 15 bytes.
pub fn name_thread(name: &str) {
    if let Ok(name) = std::ffi::CString::new(name) {
        // SAFETY: a C string; the kernel truncates longer ones.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    }
}
