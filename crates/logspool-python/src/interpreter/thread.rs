//! Sets the name of the calling thread that the operating system shows.

/// Gives the calling thread a name for `top` and debuggers. The kernel keeps at most 15 bytes.
pub fn name_thread(name: &str) {
    if let Ok(name) = std::ffi::CString::new(name) {
        // SAFETY: a C string; the kernel truncates longer ones.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    }
}
