//! Native threads.

/// Starts a native thread with all signals blocked, because signals are for the program's own threads. Returns whether
/// it was started.
pub fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> bool {
    // SAFETY: plain operations on local signal sets.
    unsafe {
        let mut all = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let spawned = std::thread::Builder::new().name(name.to_owned()).stack_size(512 * 1024).spawn(run);
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        spawned.is_ok()
    }
}
