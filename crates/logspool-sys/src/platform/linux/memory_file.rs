//! Files in memory without a name in any folder.

use std::ffi::CStr;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Makes a file in memory. The descriptor is closed by exec; `flags` are more flags of `memfd_create`.
///
/// # Errors
///
/// The kernel does not know a flag (`EINVAL`), or refuses the call.
pub fn memory_file(name: &CStr, flags: libc::c_uint) -> io::Result<OwnedFd> {
    let flags = flags | libc::MFD_CLOEXEC;
    // SAFETY: the name is a valid C string.
    let descriptor = unsafe { libc::syscall(libc::SYS_memfd_create, name.as_ptr(), flags) as libc::c_int };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
