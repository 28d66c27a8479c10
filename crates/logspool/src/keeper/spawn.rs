//! Starts a keeper for a queue in memory, from the program itself: with the first record, also in a forked child.
//!
//! The language binding sets the command line once (see [`set_command`]). The keeper is a grandchild whose parent ends
//! at once, so the program gets no child to wait for. Parent and grandchild share the program's memory until the
//! command is executed, as in posix_spawn(3), and make only system calls. A waitpid(2) of the program for any child
//! does not return the parent. The parent sends no SIGCHLD.

use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::AtomicPtr;

use logspool_sys::handover::Handover;
use logspool_sys::published::Published;

use super::independent::{HANDOVER, WATCHED};

/// Bytes of stack for each of the two processes. Chosen: the system calls of these processes need a few hundred bytes.
const STACK_BYTES: usize = 32 * 1024;

/// A command line that becomes a keeper. The started command finds a pidfd of the program at descriptor 3 and the
/// socket at 4.
#[derive(Debug)]
pub struct Command {
    /// The program file and its arguments. The id of the program is appended as the last argument.
    pub arguments: Vec<CString>,
    /// The environment, as `NAME=value`.
    pub environment: Vec<CString>,
}

static COMMAND: AtomicPtr<Result<Command, String>> = AtomicPtr::new(std::ptr::null_mut());

/// Sets the command that starts a keeper, or the reason why none can be started.
pub fn set_command(command: Result<Command, String>) {
    // The old command is never freed: a thread may read it, and it is set only once or twice in a process.
    COMMAND.publish(Box::into_raw(Box::new(command)));
}

/// Starts a keeper of this process. Returns the connection to it, which later shows whether the keeper works.
///
/// # Errors
///
/// Returns an error if the language binding has set no command, or if a system call fails.
pub fn start() -> io::Result<Handover> {
    // SAFETY: stored by `set_command`, never freed, never changed.
    let command = match unsafe { COMMAND.observe().as_ref() } {
        Some(Ok(command)) => command,
        Some(Err(why)) => return Err(io::Error::other(why.clone())),
        None => return Err(io::Error::other("no command for a keeper is set")),
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

/// A descriptor that becomes readable when this process ends. Before Linux 5.3 it is an eventfd that never does; then
/// only the socket shows the end.
fn watched() -> io::Result<OwnedFd> {
    // SAFETY: plain system calls; the descriptor is new and has no other owner.
    unsafe {
        let mut descriptor = libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0) as RawFd;
        if descriptor < 0 {
            descriptor = libc::eventfd(0, libc::EFD_CLOEXEC);
        }
        if descriptor < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(descriptor)) }
    }
}

/// Input of the parent and the keeper, and the error number of the process that failed.
struct KeeperStart {
    arguments: *const *const c_char,
    environment: *const *const c_char,
    watched: RawFd,
    socket: RawFd,
    second_stack: *mut c_void,
    error: c_int,
}

/// A zeroed stack. The stack pointer starts at its end and moves down.
fn stack() -> Vec<u128> {
    vec![0; STACK_BYTES / size_of::<u128>()]
}

fn end_of(stack: &mut [u128]) -> *mut c_void {
    stack.as_mut_ptr_range().end.cast()
}

/// Clone flags with exit signal 0. So the program does not see the process when it waits for any child.
const SHARED: c_int = libc::CLONE_VM | libc::CLONE_VFORK;

fn spawn(arguments: &[*const c_char], environment: &[*const c_char], watched: RawFd, socket: RawFd) -> io::Result<()> {
    let (mut first_stack, mut second_stack) = (stack(), stack());
    let mut start = KeeperStart {
        arguments: arguments.as_ptr(),
        environment: environment.as_ptr(),
        watched,
        socket,
        second_stack: end_of(&mut second_stack),
        error: 0,
    };
    // SAFETY: this thread is suspended until the first process ends. That process is suspended until the second one has
    // executed its command or ended. So everything that they use outlives them. All signals are blocked, so no handler
    // of the program runs in them, and the keeper starts with all signals blocked.
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

/// Parent of the keeper: ends at once.
extern "C" fn first(start: *mut c_void) -> c_int {
    // SAFETY: see `spawn`.
    unsafe {
        let start = start.cast::<KeeperStart>();
        if libc::clone(second, (*start).second_stack, SHARED, start.cast()) < 0 {
            (*start).error = *libc::__errno_location();
        }
        libc::_exit(0)
    }
}

/// Becomes the keeper.
extern "C" fn second(start: *mut c_void) -> c_int {
    // SAFETY: see `spawn`; this process has its own copies of the descriptors.
    unsafe {
        let start = start.cast::<KeeperStart>();
        // A new session, so that signals to the program's group do not reach it.
        libc::setsid();
        // Move both descriptors above all descriptors that are overwritten below.
        let watched = libc::fcntl((*start).watched, libc::F_DUPFD_CLOEXEC, HANDOVER + 1);
        let socket = libc::fcntl((*start).socket, libc::F_DUPFD_CLOEXEC, HANDOVER + 1);
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        // A reader of the program's output must not wait for the keeper to close its copy.
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
    fn a_keeper_is_not_a_child_and_its_end_is_detected() {
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
