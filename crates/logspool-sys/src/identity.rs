//! The process that made a segment, and the NAME that its files have in common.
//!
//! NAME is `<pid namespace>-<pid>-<process start>-<image>`. Each forked child has another process id. The image is a
//! hash of random bytes that the kernel gives a program at exec, so it differs after exec. The start distinguishes two
//! forked children with the same process id.

use std::fmt;

use crate::fork_safe_lock::PerProcess;
use crate::opening::read_text;
use crate::platform;

/// A process, as its NAME in the file names identifies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// Inode of its pid namespace.
    pub namespace: u64,
    /// Its process id in that pid namespace.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start: u64,
    /// Hash that changes with exec.
    pub image: u64,
}

impl ProcessIdentity {
    /// This process. Read only once, because an emulator may report another start time for each thread.
    pub fn current() -> Self {
        static THIS: PerProcess<Option<ProcessIdentity>> = PerProcess::new();
        THIS.with(|this| *this.get_or_insert_with(Self::look_up))
    }

    fn look_up() -> Self {
        use std::os::unix::fs::MetadataExt;
        let pid = std::process::id();
        Self {
            namespace: std::fs::metadata("/proc/self/ns/pid").map_or(0, |status| status.ino()),
            pid,
            start: start_in(&format!("/proc/self/task/{pid}/stat"))
                .or_else(|| start_in("/proc/self/stat"))
                .unwrap_or(0),
            image: platform::program_token(),
        }
    }

    /// The process with this NAME. `None`: the text is no NAME.
    pub fn parse(name: &str) -> Option<Self> {
        let mut parts = name.split('-');
        let (namespace, pid) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let (start, image) = (parts.next()?.parse().ok()?, u64::from_str_radix(parts.next()?, 16).ok()?);
        parts.next().is_none().then_some(Self { namespace, pid, start, image })
    }

    /// Whether this is the calling process. The start is not compared, because another copy of the library in this
    /// process may have read another value. So the process also spares the files of an earlier child of its parent that
    /// had the same process id.
    pub fn is_current(&self) -> bool {
        let this = Self::current();
        (self.namespace, self.pid, self.image) == (this.namespace, this.pid, this.image)
    }

    /// Whether a process with this id and start runs in the pid namespace of this process.
    pub fn is_running(&self) -> bool {
        let pid = self.pid;
        // /proc/PID/stat is not read first. User-mode emulators answer that path themselves, and only for their own
        // process.
        let start =
            start_in(&format!("/proc/{pid}/task/{pid}/stat")).or_else(|| start_in(&format!("/proc/{pid}/stat")));
        start == Some(self.start)
    }
}

impl fmt::Display for ProcessIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}-{}-{:016x}", self.namespace, self.pid, self.start, self.image)
    }
}

/// The start time in a `stat` file of /proc, its field 22. `None`: no such process runs.
fn start_in(path: &str) -> Option<u64> {
    let stat = read_text(path).ok()?;
    // The second field is the program's name in parentheses and may hold anything.
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    after_name.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_identifies_the_process() {
        let this = ProcessIdentity::current();
        assert_eq!(Some(this), ProcessIdentity::parse(&this.to_string()));
        assert_eq!(std::process::id(), this.pid);
        assert!(this.is_current() && this.is_running());
        for foreign in ["a-b", "1-2-3", "1-2-3-xyz", "1-2-3-4-5", ""] {
            assert!(ProcessIdentity::parse(foreign).is_none(), "{foreign}");
        }
    }

    #[test]
    fn a_segment_of_this_process_is_its_own_whatever_start_time_its_name_has() {
        let this = ProcessIdentity::current();
        assert!(ProcessIdentity { start: this.start + 1, ..this }.is_current());
        assert!(!ProcessIdentity { image: this.image ^ 1, ..this }.is_current(), "a program that was here before exec");
        assert!(!ProcessIdentity { pid: this.pid + 1, ..this }.is_current(), "a forked child");
        assert!(!ProcessIdentity { namespace: this.namespace + 1, ..this }.is_current());
    }

    #[test]
    fn a_forked_child_has_another_identity() {
        let this = ProcessIdentity::current();
        // SAFETY: the child allocates, reads /proc and ends by `_exit`. The only lock of another thread that it may
        // wait for is the allocator's, which the C library makes usable in children.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let child = ProcessIdentity::current();
            let is_right = child.pid == std::process::id() && child.pid != this.pid && !this.is_current();
            // SAFETY: no preconditions.
            unsafe { libc::_exit(i32::from(!is_right)) };
        }
        let mut status = -1;
        // SAFETY: `child` is a child of this process and `status` a local.
        unsafe { libc::waitpid(child, &mut status, 0) };

        assert_eq!(0, status);
    }
}
