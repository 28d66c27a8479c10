//! Random bytes of the kernel, for ids and pauses.

use std::io;

/// Returns random bytes.
///
/// # Errors
///
/// The kernel has no random bytes yet, or a filter refuses the call.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    const { assert!(N <= 256, "the kernel fills only requests of up to 256 bytes completely") };
    let mut bytes = [0; N];
    // SAFETY: pointer and length belong to one array.
    let count = unsafe { libc::syscall(libc::SYS_getrandom, bytes.as_mut_ptr(), N, 0) };
    if count == N as libc::c_long { Ok(bytes) } else { Err(io::Error::last_os_error()) }
}
