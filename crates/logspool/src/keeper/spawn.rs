//! Starts a keeper for a queue in memory, from the program itself and at any moment: with the first record, also in a
//! forked child.
//!
//! The shell says once which command line that is (see [`set_command`]). The keeper is a grandchild whose parent ends at
//! once, so the program gets no child that it would have to wait for. Parent and grandchild share the program's memory
//! until the command is executed (as in posix_spawn(3)): they make system calls only. The process between them is one
//! that waitpid(2) does not show to a program that waits for any child, and that sends no SIGCHLD.

use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::AtomicPtr;

use logspool_sys::handover::Handover;
use logspool_sys::published::Published;

use super::{HANDOVER, WATCHED};

/// Bytes of stack for each of the two processes. Chosen: what they call takes a few hundred bytes.
const STACK_BYTES: usize = 32 * 1024;

/// A command line that becomes a keeper. It finds a pidfd of the program at descriptor 3 and the socket at 4.
#[derive(Debug)]
pub struct Command {
    /// The program file and its arguments; the id of the program is added as the last one.
    pub arguments: Vec<CString>,
    /// The environment.
    pub environment: Vec<CString>,
}

static COMMAND: AtomicPtr<Result<Command, String>> = AtomicPtr::new(std::ptr::null_mut());

/// Says how a keeper is started, or why there is to be none.
pub fn set_command(command: Result<Command, String>) {
    // The old one stays where it is: a thread may read it, and it is set once or twice a life.
    COMMAND.publish(Box::into_raw(Box::new(command)));
}

/// Starts a keeper of this process. Returns the way to it; whether it has begun its work shows there later.
///
/// # Errors
///
/// When the shell named no command; what the system said.
pub fn start() -> io::Result<Handover> {
    // SAFETY: stored by `set_command`, never freed, never changed.
    let command = match unsafe { COMMAND.observe().as_ref() } {
        Some(Ok(command)) => command,
        Some(Err(why)) => return Err(io::Error::other(why.clone())),
        None => return Err(io::Error::other("nobody has said how one is started")),
    };
    let (handover, socket) = Handover::pair()?;
    let watched = watched()?;
    let process = c_string(std::process::id().to_string());
    let arguments = pointers(command.arguments.iter().chain([&process]));
    let environment = pointers(command.environment.iter());
    spawn(&arguments, &environment, watched.as_raw_fd(), socket.as_raw_fd())?;
    Ok(handover)
}

fn c_string(text: String) -> CString {
    CString::new(text).expect("a number has no NUL")
}

fn pointers<'a>(words: impl Iterator<Item = &'a CString>) -> Vec<*const c_char> {
    words.map(|word| word.as_ptr()).chain([std::ptr::null()]).collect()
}

/// A descriptor that shows the end of this process; before Linux 5.3 one that shows nothing, where the socket has to do.
fn watched() -> io::Result<OwnedFd> {
    // SAFETY: plain system calls; the descriptor is new and belongs to nobody else.
    unsafe {
        let mut descriptor = libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0) as RawFd;
        if descriptor < 0 {
            descriptor = libc::eventfd(0, libc::EFD_CLOEXEC);
        }
        if descriptor < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(descriptor)) }
    }
}

/// What the two processes read, and where the second one says why it failed.
struct Start {
    arguments: *const *const c_char,
    environment: *const *const c_char,
    watched: RawFd,
    socket: RawFd,
    second_stack: *mut c_void,
    error: c_int,
}

/// A stack that grows down from its end.
fn stack() -> Vec<u128> {
    vec![0; STACK_BYTES / size_of::<u128>()]
}

fn end_of(stack: &mut [u128]) -> *mut c_void {
    stack.as_mut_ptr_range().end.cast()
}

/// The signal is 0: the process is no child that a program sees which waits for any of them.
const SHARED: c_int = libc::CLONE_VM | libc::CLONE_VFORK;

fn spawn(arguments: &[*const c_char], environment: &[*const c_char], watched: RawFd, socket: RawFd) -> io::Result<()> {
    let (mut first_stack, mut second_stack) = (stack(), stack());
    let mut start = Start {
        arguments: arguments.as_ptr(),
        environment: environment.as_ptr(),
        watched,
        socket,
        second_stack: end_of(&mut second_stack),
        error: 0,
    };
    // SAFETY: this thread is suspended until the first process ends, and that one until the second one has executed its
    // command or ended; so all that they use outlives them. With all signals blocked no handler of the program runs in
    // them, and the keeper begins with all of them blocked.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let first = libc::clone(first, end_of(&mut first_stack), SHARED, (&raw mut start).cast());
        let mut result = if first < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
        if first > 0 {
            let mut status = 0;
            while libc::waitpid(first, &mut status, libc::__WALL) < 0
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        if start.error != 0 {
            result = Err(io::Error::from_raw_os_error(start.error));
        }
        result
    }
}

/// The parent of the keeper: ends at once.
extern "C" fn first(start: *mut c_void) -> c_int {
    // SAFETY: see `spawn`.
    unsafe {
        let start = start.cast::<Start>();
        if libc::clone(second, (*start).second_stack, SHARED, start.cast()) < 0 {
            (*start).error = *libc::__errno_location();
        }
        libc::_exit(0)
    }
}

/// The keeper.
extern "C" fn second(start: *mut c_void) -> c_int {
    // SAFETY: see `spawn`; the descriptors are copies of this process alone.
    unsafe {
        let start = start.cast::<Start>();
        // What is sent to the program's group is not for it.
        libc::setsid();
        // Above all that are overwritten, wherever they are now.
        let watched = libc::fcntl((*start).watched, libc::F_DUPFD_CLOEXEC, HANDOVER + 1);
        let socket = libc::fcntl((*start).socket, libc::F_DUPFD_CLOEXEC, HANDOVER + 1);
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        // Whoever reads the other end of what the program writes must not wait for the keeper.
        let are_null = (0..WATCHED).all(|number| libc::dup2(null, number) >= 0);
        if are_null && libc::dup2(watched, WATCHED) >= 0 && libc::dup2(socket, HANDOVER) >= 0 {
            libc::execve(*(*start).arguments, (*start).arguments, (*start).environment);
        }
        (*start).error = *libc::__errno_location();
        libc::_exit(127)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> Command {
        let c_strings = |words: &[&str]| words.iter().map(|word| CString::new(*word).unwrap()).collect();
        Command { arguments: c_strings(words), environment: c_strings(&["PATH=/usr/bin:/bin"]) }
    }

    #[test]
    fn a_keeper_is_no_child_and_its_end_shows() {
        assert!(start().is_err(), "nobody has named a command");
        set_command(Ok(command(&["/bin/sh", "-c", "exec sleep 611 # $0"])));
        let handover = start().unwrap();
        assert!(handover.is_kept());
        // SAFETY: no preconditions; there is no child to wait for.
        assert_eq!(-1, unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::__WALL | libc::WNOHANG) });
        let keepers = || {
            let entries = std::fs::read_dir("/proc").unwrap().flatten();
            let is_it = |entry: &std::fs::DirEntry| {
                let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                words.starts_with(b"sleep\x00611\x00")
            };
            entries
                .filter(is_it)
                .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
                .collect::<Vec<_>>()
        };
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while handover.is_kept() && std::time::Instant::now() < deadline {
            // SAFETY: the process was started above.
            keepers().iter().for_each(|keeper| _ = unsafe { libc::kill(*keeper, libc::SIGKILL) });
            std::thread::yield_now();
        }
        assert!(!handover.is_kept());

        set_command(Ok(command(&["/nowhere/to/be/found"])));
        assert_eq!(io::ErrorKind::NotFound, start().unwrap_err().kind());
        set_command(Err("of the environment".to_owned()));
        assert_eq!("of the environment", start().unwrap_err().to_string());
    }
}
