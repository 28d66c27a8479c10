//! One sidecar, open in this process.
//!
//! Atomics belong in `queue` and `stats`; those of this file are an exception:
//! - `inside` excludes the threads of this process from each other, which record locks do not;
//! - `retired` says that the sidecar was removed, so that its users must open another one;
//! - `let_go` says that other processes may remove the sidecar.

use std::fs::File;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use logspool_sys::clock::monotonic_ns;
use logspool_sys::folder::Folder;
use logspool_sys::kept::KeptDescriptor;
use logspool_sys::published::Entered;
use logspool_sys::sleep::sleep_interruptibly;

use super::identity::Identity;
use super::intent::{
    DUE, HEAD_BYTES, INTENT, INTENT_BYTES, Intent, LARGE_COPY, Read, SMALL_COPY_BYTES, SidecarHead, TORN,
};
use super::locks::{self, ENTER, LockState, USE};
use super::{PIECE_BYTES, steps};

/// How long opening is retried while another process removes the sidecar, and the pause between two tries. A removal
/// takes microseconds.
const OPEN_TIMEOUT: Duration = Duration::from_millis(20);
const OPEN_PAUSE: Duration = Duration::from_micros(200);

/// How long a sidecar is assumed to be still in its folder. It may vanish: logind removes a user's shared memory at
/// logout.
///
/// Chosen: a check costs a system call. Within this second two processes may use two sidecars of one file, and so two
/// locks.
const RECHECK_NS: u64 = 1_000_000_000;

/// One sidecar that this process has open.
#[derive(Debug)]
pub struct Sidecar {
    /// The log file to which the sidecar belongs.
    pub identity: Identity,
    /// Folder of the sidecar.
    pub folder: Folder,
    file: KeptDescriptor<File>,
    name: String,
    inside: AtomicBool,
    retired: AtomicBool,
    /// Whether this process has released its shared lock on byte [`USE`]. It does so when it is about to end or has
    /// nothing queued.
    let_go: AtomicBool,
    /// Whether the head was already compared with the log file.
    known: AtomicBool,
    linked_at: AtomicU64,
}

impl Sidecar {
    /// Opens or creates the sidecar of a file. Only `table.rs` may call it, because a process must have each sidecar
    /// open only once.
    pub(super) fn open(folder: Folder, identity: Identity) -> io::Result<Self> {
        let name = identity.file_name();
        let deadline = Instant::now() + OPEN_TIMEOUT;
        loop {
            // Keep it before the lock is taken: keeping closes the first number.
            let kept = KeptDescriptor::new(folder.open_or_create(&name)?);
            let file = kept.get()?;
            let status = file.metadata()?;
            // SAFETY: geteuid has no preconditions and cannot fail.
            if !status.is_file() || status.uid() != unsafe { libc::geteuid() } {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no file of this user"));
            }
            // A process that removes the file holds this byte exclusively. So check the name only after sharing the
            // byte.
            if locks::set(file, USE, LockState::Shared)? && folder.is_named(&name, file)? {
                let linked_at = AtomicU64::new(monotonic_ns());
                let [inside, retired, let_go, known] = [const { AtomicBool::new(false) }; 4];
                return Ok(Self { identity, folder, file: kept, name, inside, retired, let_go, known, linked_at });
            }
            if Instant::now() >= deadline {
                return Err(io::Error::from(io::ErrorKind::ResourceBusy));
            }
            sleep_interruptibly(OPEN_PAUSE);
        }
    }

    /// Whether the sidecar was removed from its folder.
    pub fn is_retired(&self) -> bool {
        if self.retired.load(Ordering::Relaxed) {
            return true;
        }
        // The program has closed the descriptor, and so dropped the locks. Another open sidecar of the file takes them.
        let Ok(file) = self.file() else {
            self.retired.store(true, Ordering::Relaxed);
            return true;
        };
        let now = monotonic_ns();
        if now.saturating_sub(self.linked_at.load(Ordering::Relaxed)) > RECHECK_NS {
            self.linked_at.store(now, Ordering::Relaxed);
            if matches!(self.folder.is_named(&self.name, file), Ok(false)) {
                self.retired.store(true, Ordering::Relaxed);
                return true;
            }
        }
        false
    }

    /// The sidecar's file.
    ///
    /// # Errors
    ///
    /// EBADF if the program has closed the descriptor.
    pub(super) fn file(&self) -> io::Result<&File> {
        self.file.get()
    }

    /// Number of the sidecar's descriptor, see [`KeptDescriptor::number`].
    pub(super) fn descriptor(&self) -> RawFd {
        self.file.number()
    }

    fn set_lock(&self, byte: i64, lock: LockState) -> io::Result<bool> {
        locks::set(self.file()?, byte, lock)
    }

    fn is_unnamed(&self) -> bool {
        matches!(self.file().and_then(|file| self.folder.is_named(&self.name, file)), Ok(false))
    }

    /// Takes the lock, if no process or thread holds it. After `Ok(true)` the caller must call [`Sidecar::leave`].
    ///
    /// # Errors
    ///
    /// Returns an error if fcntl(2) fails.
    pub fn try_enter(&self) -> io::Result<bool> {
        // Pairs with `leave` of the flag: the changes of the thread that held the lock before are visible. Between
        // processes the kernel's lock orders the changes.
        if !self.inside.try_enter() {
            return Ok(false);
        }
        if self.let_go.load(Ordering::Relaxed) {
            let shared = self.set_lock(USE, LockState::Shared);
            if !matches!(shared, Ok(true)) {
                self.inside.leave();
                return shared;
            }
            self.let_go.store(false, Ordering::Relaxed);
            // The caller next checks whether the sidecar is retired.
            if self.is_unnamed() {
                self.retired.store(true, Ordering::Relaxed);
            }
        }
        let entered = self.set_lock(ENTER, LockState::Alone);
        match entered {
            Ok(true) => steps::reach(steps::AppendStep::Entered),
            _ => self.inside.leave(),
        }
        entered
    }

    /// Whether a thread of this process holds the lock.
    pub fn is_entered_here(&self) -> bool {
        self.inside.load(Ordering::Relaxed)
    }

    /// Releases the lock.
    pub fn leave(&self) {
        let _ = self.set_lock(ENTER, LockState::Free);
        self.inside.leave();
    }

    /// Checks that the head belongs to the opened log file. Writes the head if there is none, or if it is of an earlier
    /// file with the same inode. The caller holds the lock. Returns `false` for a sidecar of another version.
    ///
    /// # Errors
    ///
    /// Returns an error if a system call fails.
    pub fn claim_head(&self, birth_ns: u64, path: &Path) -> io::Result<bool> {
        if self.known.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let mut bytes = [0; HEAD_BYTES];
        let head = SidecarHead { identity: self.identity, birth_ns, path: path.to_owned() };
        let read = match read_up_to(self.file()?, &mut bytes, 0)? {
            0 => Read::New,
            _ => SidecarHead::decode(&bytes),
        };
        match read {
            Read::Foreign => return Ok(false),
            Read::Known(there) if there.identity == head.identity && there.birth_ns == head.birth_ns => {}
            // The earlier file is gone, so its intent has no purpose any more.
            Read::Known(_) => {
                self.clear()?;
                self.file()?.write_all_at(&head.encode(), 0)?;
            }
            Read::New => self.file()?.write_all_at(&head.encode(), 0)?,
        }
        self.known.store(true, Ordering::Relaxed);
        Ok(true)
    }

    /// Reads the head. Returns `None` if it is not valid.
    pub fn head(&self) -> Option<SidecarHead> {
        let mut bytes = [0; HEAD_BYTES];
        self.file().ok()?.read_exact_at(&mut bytes, 0).ok()?;
        match SidecarHead::decode(&bytes) {
            Read::Known(head) => Some(head),
            _ => None,
        }
    }

    /// Whether there is an intent. A process that holds the lock finds its own intent or the intent of a dead writer.
    pub fn has_intent(&self) -> io::Result<bool> {
        let mut state = [0; 8];
        read_up_to(self.file()?, &mut state, INTENT)?;
        Ok(state != [0; 8])
    }

    /// Reads the intent. Returns `None` if it is absent or invalid.
    pub fn intent(&self) -> io::Result<Option<Intent>> {
        let mut bytes = [0; INTENT_BYTES];
        read_up_to(self.file()?, &mut bytes, INTENT)?;
        Ok(Intent::decode(&bytes))
    }

    /// Stores an intent and the copy of its bytes. If there is no room for a large copy, stores the intent alone.
    /// `buffer` is scratch space.
    ///
    /// # Errors
    ///
    /// Returns an error if not even the intent could be written.
    pub fn intend(&self, intent: &mut Intent, bytes: &[u8], buffer: &mut Vec<u8>) -> io::Result<()> {
        if bytes.len() <= SMALL_COPY_BYTES {
            intent.copy_offset = super::intent::SMALL_COPY;
            buffer.clear();
            buffer.extend_from_slice(&intent.encode());
            buffer.extend_from_slice(bytes);
            // This is one write inside one page, so a kill cannot cut it.
            self.file()?.write_all_at(buffer, INTENT)?;
        } else {
            let copied = self.file()?.write_all_at(bytes, LARGE_COPY).is_ok();
            intent.copy_offset = if copied { LARGE_COPY } else { 0 };
            self.rewrite(intent)?;
        }
        steps::reach(steps::AppendStep::Intended);
        Ok(())
    }

    /// Stores an intent whose copy is already in the sidecar.
    pub fn rewrite(&self, intent: &Intent) -> io::Result<()> {
        self.file()?.write_all_at(&intent.encode(), INTENT)
    }

    /// Reads the copy of an intent's bytes. Returns `None` if there is no complete copy.
    pub fn copy(&self, intent: &Intent) -> io::Result<Option<Vec<u8>>> {
        let file_bytes = self.file()?.metadata()?.len();
        if intent.copy_offset == 0 || intent.copy_offset.checked_add(intent.length).is_none_or(|end| end > file_bytes) {
            return Ok(None);
        }
        let mut bytes = vec![0; intent.length as usize];
        self.file()?.read_exact_at(&mut bytes, intent.copy_offset)?;
        Ok(Some(bytes))
    }

    /// Clears the intent.
    pub fn clear(&self) -> io::Result<()> {
        self.file()?.write_all_at(&[0; 8], INTENT)?;
        steps::reach(steps::AppendStep::Cleared);
        Ok(())
    }

    /// Releases the memory of a copy of `bytes` bytes, if the copy is longer than [`PIECE_BYTES`].
    pub fn shrink(&self, bytes: usize) {
        if bytes > PIECE_BYTES {
            let _ = self.file().and_then(|file| file.set_len(LARGE_COPY));
        }
    }

    /// Adds one to the number of torn lines in the sidecar.
    pub fn count_torn(&self) -> io::Result<()> {
        self.file()?.write_all_at(&(self.word(TORN)? + 1).to_ne_bytes(), TORN)
    }

    /// Number of torn lines.
    pub fn torn(&self) -> u64 {
        self.word(TORN).unwrap_or(0)
    }

    /// Returns the agreed time of the next rotation. If there is none yet, `due` becomes it. The caller holds the lock.
    pub fn propose_due(&self, due: i64) -> io::Result<i64> {
        match self.word(DUE)? {
            0 => self.set_due(due).map(|()| due),
            agreed => Ok(agreed as i64),
        }
    }

    /// Sets the agreed time of the next rotation. The caller holds the lock.
    pub fn set_due(&self, due: i64) -> io::Result<()> {
        self.file()?.write_all_at(&due.to_ne_bytes(), DUE)
    }

    fn word(&self, offset: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        read_up_to(self.file()?, &mut bytes, offset)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// Whether another process has the sidecar open.
    pub fn is_used_elsewhere(&self) -> bool {
        self.file().and_then(|file| locks::is_held_elsewhere(file, USE)).unwrap_or(true)
    }

    /// Releases the shared lock, and removes the file if no other process has it open and it holds no intent. If
    /// several processes end at the same time, the last one sees that it is alone and removes the file.
    pub(super) fn retire(&self) {
        // Do nothing while a thread of this process holds the lock.
        if !self.inside.try_enter() {
            return;
        }
        self.let_go.store(true, Ordering::Relaxed);
        if self.file().is_ok_and(locks::lock_exclusively) {
            // While the byte was not locked, other processes may have removed the file and created another one with
            // this name.
            let is_gone = self.is_unnamed();
            if is_gone || matches!(self.has_intent(), Ok(false)) && self.folder.remove(&self.name).is_ok() {
                self.retired.store(true, Ordering::Relaxed);
            }
            // Processes that wait to share the byte can now check whether the name is gone.
            let _ = self.set_lock(USE, LockState::Free);
        }
        self.inside.leave();
    }
}

/// Reads until `bytes` is full or the file ends. Returns the number of bytes read.
fn read_up_to(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], offset + read as u64) {
            Ok(0) => break,
            Ok(count) => read += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}
