//! Random numbers of the kernel, for ids and pauses.

use std::io;

/// Random bytes from the kernel.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    // SAFETY: pointer and length belong to one array. The kernel fills requests of up to 256 bytes completely.
    let count = unsafe { libc::syscall(libc::SYS_getrandom, bytes.as_mut_ptr(), N, 0) };
    if count == N as libc::c_long { Ok(bytes) } else { Err(io::Error::last_os_error()) }
}
