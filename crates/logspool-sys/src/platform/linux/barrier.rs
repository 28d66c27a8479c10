//! A memory barrier in all threads of the process, made by one of them.

/// Registers the process for [`expedited_barrier`].
pub fn register_expedited_barrier() -> bool {
    membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0
}

/// Makes the barrier. Returns false if the process is not registered. Async-signal-safe.
pub fn expedited_barrier() -> bool {
    membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0
}

/// Returns whether the kernel has the barrier.
///
/// # Errors
///
/// The error number with which the kernel refuses the question.
pub fn has_expedited_barrier() -> Result<bool, i32> {
    let commands = membarrier(libc::MEMBARRIER_CMD_QUERY);
    if commands < 0 {
        return Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::ENOSYS).max(1));
    }
    Ok(commands & libc::c_long::from(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0)
}

fn membarrier(command: libc::c_int) -> libc::c_long {
    // SAFETY: a plain system call without pointers.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
}
