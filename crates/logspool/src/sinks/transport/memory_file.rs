//! Passes a long datagram as a sealed memory file, as the native protocol of journald specifies.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, RawFd};

use logspool_sys::platform;

/// Sends a datagram without bytes that passes a file with `bytes`.
///
/// # Errors
///
/// The system's error; `WouldBlock` if there is no room now.
pub fn send(socket: RawFd, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::from(platform::memory_file(c"logspool", libc::MFD_ALLOW_SEALING)?);
    file.write_all(bytes)?;
    let seals = libc::F_SEAL_SEAL | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE;
    // SAFETY: the descriptor is that of a memory file that allows sealing, and the argument is a number.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } != 0 {
        return Err(io::Error::last_os_error());
    }
    pass(socket, file.as_raw_fd())
}

fn pass(socket: RawFd, descriptor: RawFd) -> io::Result<()> {
    const BYTES: u32 = size_of::<RawFd>() as u32;
    // The type of the items gives the buffer the alignment of its header.
    let mut control = [0_u64; 8];
    // SAFETY: an all-zero msghdr is a valid value of that plain struct.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_control = control.as_mut_ptr().cast();
    // SAFETY: CMSG_SPACE and CMSG_LEN only compute sizes. The buffer is larger than the space, so the first header
    // exists, and its data has room for one descriptor.
    let sent = unsafe {
        message.msg_controllen = libc::CMSG_SPACE(BYTES) as _;
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(BYTES) as _;
        libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(descriptor);
        libc::sendmsg(socket, &message, libc::MSG_NOSIGNAL)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
