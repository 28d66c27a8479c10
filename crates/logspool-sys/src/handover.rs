//! Sends the files of a queue to its keeper process, through a socket (SOCK_SEQPACKET). There is one message for each
//! file that is made or removed.
//!
//! A message is one byte, `+` or `-`, and the file's name. A `+` message also carries the file's descriptor. The keeper
//! reads until all copies of the program's end of the socket are closed. Then the program has ended, or has executed
//! another program.
//!
//! What a full socket does not take would be lost with a killed program. So while the keeper starts, or gets no processor
//! time, the sender of a file waits for room, at most for `MAX_WAIT`. After that no sender waits until the keeper reads
//! again: messages wait in memory, and are sent before the next message.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::descriptor::duplicate;
use super::kept::{KeptDescriptor, close_copy, move_up};
use super::sleep::sleep_interruptibly;

/// Maximum number of files that wait in memory for a keeper that does not read.
///
/// Chosen: the descriptors of these files count against the program's limit, which is often 1,024. The socket itself
/// holds some 270 messages. A keeper that starts has room for the files in memory and in the socket.
const MAX_WAITING: usize = 128;

/// Longest wait for room in the socket.
///
/// Chosen: the keeper reads within milliseconds; it takes some hundred to start on a machine that is fully loaded.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Pause between two tries to send to a full socket.
///
/// Chosen: it is short beside the start of the keeper, which is what fills the socket.
const PAUSE: Duration = Duration::from_millis(1);

/// Maximum length of a name in bytes, the same as in a file system.
const NAME_BYTES: usize = 255;

/// A message from the program to the keeper.
#[derive(Debug)]
pub enum Message {
    /// A file of this name was made.
    Added(String, KeptDescriptor<File>),
    /// The file of this name was removed.
    Removed(String),
    /// A message of an unknown kind, from another version of the library.
    Unknown,
}

/// The program's end of the connection.
#[derive(Debug)]
pub struct Handover {
    socket: KeptDescriptor<OwnedFd>,
    waiting: Mutex<VecDeque<Message>>,
    /// Files that could not be sent to the keeper.
    missed: AtomicU64,
}

/// Process id and descriptor of the newest handover, for its forked children; 0: there is no handover.
static NEWEST: AtomicU64 = AtomicU64::new(0);
/// Inode of that socket.
static NEWEST_INODE: AtomicU64 = AtomicU64::new(0);

impl Handover {
    /// A pair of sockets: the program's end, and the keeper's.
    ///
    /// # Errors
    ///
    /// Errors of the system calls.
    pub fn pair() -> io::Result<(Self, OwnedFd)> {
        let mut ends = [-1; 2];
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        // SAFETY: `ends` is a valid place for two descriptors.
        if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: both descriptors are new, and nothing else owns them.
        let [socket, other] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
        Ok((Self { socket: KeptDescriptor::new(socket), waiting: Mutex::default(), missed: AtomicU64::new(0) }, other))
    }

    /// Registers this end of the connection, so that forked children can close their copy, see [`close_inherited`].
    pub fn note_for_children(&self) {
        let inode = self.socket.identity().map_or(0, |identity| identity.inode);
        NEWEST_INODE.store(inode, Ordering::Relaxed);
        NEWEST.store(u64::from(std::process::id()) << 32 | self.socket.number() as u64, Ordering::Relaxed);
    }

    /// Sends a file to the keeper.
    pub fn add(&self, name: &str, file: &File) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.send_waiting(&mut waiting);
        let send = |waiting: &VecDeque<Message>| {
            if waiting.is_empty() { self.send(b'+', name.as_bytes(), Some(file)) } else { full() }
        };
        let mut sent = send(&waiting);
        let has_stalled = waiting.iter().any(is_file);
        let begun = Instant::now();
        while sent.as_ref().is_err_and(is_full) && !has_stalled && begun.elapsed() < MAX_WAIT {
            sleep_interruptibly(PAUSE);
            self.send_waiting(&mut waiting);
            sent = send(&waiting);
        }
        let Err(error) = sent else { return };
        if is_full(&error)
            && waiting.len() < MAX_WAITING
            && let Ok(file) = duplicate(file.as_raw_fd())
        {
            waiting.push_back(Message::Added(name.to_owned(), KeptDescriptor::new(file)));
            return;
        }
        self.missed.fetch_add(1, Ordering::Relaxed);
    }

    /// Notifies the keeper that a file was removed.
    pub fn remove(&self, name: &str) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let before = waiting.len();
        waiting.retain(|message| !matches!(message, Message::Added(added, _) if added == name));
        if waiting.len() < before {
            return;
        }
        self.send_waiting(&mut waiting);
        let sent = if waiting.is_empty() { self.send(b'-', name.as_bytes(), None) } else { full() };
        if sent.is_err_and(|error| is_full(&error)) {
            waiting.push_back(Message::Removed(name.to_owned()));
        }
    }

    /// As [`Handover::remove`], with async-signal-safe calls only. Messages that wait in memory are left there.
    pub fn remove_async_signal_safe(&self, name: &CStr) {
        let _ = self.send(b'-', name.to_bytes(), None);
    }

    fn send_waiting(&self, waiting: &mut VecDeque<Message>) {
        while let Some(message) = waiting.front() {
            let sent = match message {
                Message::Added(name, file) => file.get().and_then(|file| self.send(b'+', name.as_bytes(), Some(file))),
                Message::Removed(name) => self.send(b'-', name.as_bytes(), None),
                Message::Unknown => Ok(()),
            };
            match sent {
                Err(error) if is_full(&error) => return,
                Err(_) if is_file(message) => _ = self.missed.fetch_add(1, Ordering::Relaxed),
                _ => {}
            }
            waiting.pop_front();
        }
    }

    /// Uses only system calls and the stack, because it may run in a signal handler.
    fn send(&self, kind: u8, name: &[u8], file: Option<&File>) -> io::Result<()> {
        let socket = self.socket.get()?.as_raw_fd();
        let parts = [(&raw const kind).cast::<libc::c_void>(), name.as_ptr().cast()];
        let mut parts = [
            libc::iovec { iov_base: parts[0].cast_mut(), iov_len: 1 },
            libc::iovec { iov_base: parts[1].cast_mut(), iov_len: name.len().min(NAME_BYTES) },
        ];
        let mut control = Control::default();
        // SAFETY: an all-zero msghdr is a valid value of that plain struct.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        (message.msg_iov, message.msg_iovlen) = (parts.as_mut_ptr(), parts.len() as _);
        if let Some(file) = file {
            control.attach(&mut message, file.as_raw_fd());
        }
        // SAFETY: all that the message points to lives until the call returns.
        let sent = unsafe { libc::sendmsg(socket, &message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Whether the keeper runs, and receives every file even if this process is killed now.
    pub fn is_kept(&self) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.send_waiting(&mut waiting);
        let Ok(socket) = self.socket.get() else { return false };
        let mut poll = libc::pollfd { fd: socket.as_raw_fd(), events: 0, revents: 0 };
        // SAFETY: one valid pollfd; a timeout of 0 does not wait.
        let hung_up = unsafe { libc::poll(&mut poll, 1, 0) } != 0;
        !hung_up && !waiting.iter().any(is_file) && self.missed.load(Ordering::Relaxed) == 0
    }

    /// Notifies the keeper that no message will follow.
    pub fn end(&self) {
        if let Ok(socket) = self.socket.get() {
            // SAFETY: a plain system call on a descriptor that is ours.
            unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_RDWR) };
        }
    }
}

fn is_file(message: &Message) -> bool {
    matches!(message, Message::Added(..))
}

fn full() -> io::Result<()> {
    Err(ErrorKind::WouldBlock.into())
}

/// Whether a message that failed can be sent later. ETOOMANYREFS: this user has too many descriptors in flight.
fn is_full(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        None | Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::ETOOMANYREFS | libc::EINTR)
    )
}

/// In a forked child: closes its copy of the parent's socket, so that the keeper sees the end of the parent.
pub fn close_inherited() {
    let word = NEWEST.load(Ordering::Relaxed);
    if word != 0 && word >> 32 == u64::from(std::os::unix::process::parent_id()) {
        NEWEST.store(0, Ordering::Relaxed);
        close_copy(word as u32 as RawFd, NEWEST_INODE.load(Ordering::Relaxed));
    }
}

/// Buffer for one descriptor that is sent with a message.
#[repr(C, align(8))]
struct Control([u8; 64]);

impl Default for Control {
    fn default() -> Self {
        Self([0; 64])
    }
}

impl Control {
    fn attach(&mut self, message: &mut libc::msghdr, descriptor: RawFd) {
        // SAFETY: CMSG_SPACE of one descriptor is 24 bytes; the first header is at the beginning, aligned.
        unsafe {
            message.msg_control = self.0.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as _;
            let header = libc::CMSG_FIRSTHDR(message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
            libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(descriptor);
        }
    }
}

/// Reads one message of the program, without blocking. `None`: no message will follow.
///
/// # Errors
///
/// `WouldBlock` when no message has arrived; errors of the system calls.
pub fn receive(socket: BorrowedFd<'_>) -> io::Result<Option<Message>> {
    let mut text = [0_u8; 1 + NAME_BYTES];
    let mut control = Control::default();
    let mut part = libc::iovec { iov_base: text.as_mut_ptr().cast(), iov_len: text.len() };
    // SAFETY: an all-zero msghdr is a valid value of that plain struct.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&mut part, 1);
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
    // SAFETY: all that the message points to lives until the call returns.
    let read = unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, flags) };
    if read < 0 {
        return Err(io::Error::last_os_error());
    }
    let file = take_file(&message);
    let Some((kind, name)) = text[..read as usize].split_first() else { return Ok(None) };
    let name = String::from_utf8_lossy(name).into_owned();
    Ok(Some(match (kind, file) {
        (b'+', Some(file)) => Message::Added(name, KeptDescriptor::new(file)),
        (b'-', _) => Message::Removed(name),
        _ => Message::Unknown,
    }))
}

/// The descriptor that came with a message; any further descriptors are closed.
fn take_file(message: &libc::msghdr) -> Option<File> {
    let mut file = None;
    // SAFETY: the kernel has filled `msg_control`. CMSG_FIRSTHDR and CMSG_NXTHDR stay inside it. The descriptors in it
    // are new, and nothing else owns them.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS {
                let bytes = (*header).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                for index in 0..bytes / size_of::<RawFd>() {
                    let descriptor = libc::CMSG_DATA(header).cast::<RawFd>().add(index).read_unaligned();
                    file.get_or_insert(File::from(move_up(OwnedFd::from_raw_fd(descriptor))));
                }
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    file
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use super::super::memory_files::{MemoryFiles, memory_file};
    use super::*;

    fn read_all(socket: &OwnedFd, into: &MemoryFiles) -> io::Result<()> {
        while let Some(message) = receive(socket.as_fd())? {
            into.apply(message);
        }
        Ok(())
    }

    #[test]
    fn the_keeper_holds_the_files_under_their_names() {
        let (handover, socket) = Handover::pair().unwrap();
        let (program, keeper) = (MemoryFiles::with_keeper(handover), MemoryFiles::default());
        program.create("a").unwrap().write_all_at(b"text", 0).unwrap();
        program.create_once("b").unwrap();
        program.remove("b");
        program.create_once("c").unwrap();
        assert_eq!(ErrorKind::WouldBlock, read_all(&socket, &keeper).unwrap_err().kind());

        assert_eq!(vec!["a", "c"], keeper.names());
        let mut text = [0; 4];
        keeper.open_file("a").unwrap().read_exact_at(&mut text, 0).unwrap();
        assert_eq!(b"text", &text);
        drop(program);
        read_all(&socket, &keeper).unwrap();
        assert_eq!(vec!["a", "c"], keeper.names(), "they are the keeper's now");
    }

    #[test]
    fn files_that_a_full_socket_does_not_accept_wait_in_memory() {
        let (handover, socket) = Handover::pair().unwrap();
        let file = memory_file().unwrap();
        let mut added = 0;
        while handover.waiting.lock().unwrap().len() < MAX_WAITING {
            handover.add(&format!("{added:04}"), &file);
            added += 1;
        }
        // Removes a file that still waits, before its message was sent.
        handover.remove(&format!("{:04}", added - 1));
        handover.remove("0000");
        assert!(!handover.is_kept(), "a kill would lose the files that wait");

        let keeper = MemoryFiles::default();
        while read_all(&socket, &keeper).is_err() && !handover.is_kept() {}
        let _ = read_all(&socket, &keeper);
        let names = keeper.names();
        assert_eq!((added - 2, "0001"), (names.len(), names[0].as_str()));
    }

    #[test]
    fn the_sender_of_a_file_waits_for_a_keeper_that_reads_late() {
        let (handover, socket) = Handover::pair().unwrap();
        let file = memory_file().unwrap();
        let mut sent = 0;
        while handover.send(b'+', b"a", Some(&file)).is_ok() {
            sent += 1;
        }
        assert!(sent > 100);
        let reader = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            while receive(socket.as_fd()).is_ok() {}
            socket
        });
        handover.add("b", &file);

        assert!(handover.waiting.lock().unwrap().is_empty(), "a kill would lose it");
        let socket = reader.join().unwrap();
        assert!(handover.is_kept());
        drop(socket);
    }

    #[test]
    fn a_keeper_that_stopped_reading_misses_some_files_and_a_dead_one_all() {
        let (handover, socket) = Handover::pair().unwrap();
        let file = memory_file().unwrap();
        assert!(handover.is_kept());
        while handover.missed.load(Ordering::Relaxed) == 0 {
            handover.add("a", &file);
        }
        let keeper = MemoryFiles::default();
        while read_all(&socket, &keeper).is_err() && !handover.waiting.lock().unwrap().is_empty() {
            assert!(!handover.is_kept());
        }
        assert!(!handover.is_kept(), "one file is missing");

        let (handover, other) = Handover::pair().unwrap();
        drop((socket, other));
        assert!(!handover.is_kept());
        handover.add("a", &file);
        handover.end();
    }
}
