//! One sidecar, open in this process.
//!
//! Atomics outside `queue` and `stats`: `inside` keeps the threads of this process apart, which record locks do not;
//! `retired` says that the file was removed, and who goes on needs another one; `let_go` that others may remove it.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use logspool_sys::clock::monotonic_ns;
use logspool_sys::folder::Folder;
use logspool_sys::nap::nap;
use logspool_sys::published::Entered;

use super::intent::{DUE, HEAD_BYTES, Head, INTENT, INTENT_BYTES, Intent, LARGE_COPY, Read, SMALL_COPY_BYTES, TORN};
use super::locks::{self, ENTER, Lock, USE};
use super::shared_file::Identity;
use super::{PIECE_BYTES, steps};

/// How long a sidecar that others remove at the moment is tried for, and the pause between two tries. Removing one takes
/// microseconds.
const OPEN_PATIENCE: Duration = Duration::from_millis(20);
const OPEN_PAUSE: Duration = Duration::from_micros(200);

/// How long a sidecar is taken to be still in its folder (logind removes a user's shared memory at logout).
///
/// Chosen: a look costs a system call; in the second until then two processes may have two locks.
const LINKED_NS: u64 = 1_000_000_000;

/// See the module documentation.
#[derive(Debug)]
pub struct Sidecar {
    /// Of which file.
    pub identity: Identity,
    /// Where it lies.
    pub folder: Folder,
    pub(super) file: File,
    name: String,
    inside: AtomicBool,
    retired: AtomicBool,
    /// Whether this process shares its use no longer: it was about to end.
    let_go: AtomicBool,
    /// Whether the head was compared with the file.
    known: AtomicBool,
    linked_at: AtomicU64,
}

impl Sidecar {
    /// Opens or makes the sidecar of a file. Only `table.rs` may: a process has each of them open once.
    pub(super) fn open(folder: Folder, identity: Identity) -> io::Result<Self> {
        let name = identity.file_name();
        let deadline = Instant::now() + OPEN_PATIENCE;
        loop {
            let file = folder.open_or_create(&name)?;
            let status = file.metadata()?;
            // SAFETY: geteuid has no preconditions and cannot fail.
            if !status.is_file() || status.uid() != unsafe { libc::geteuid() } {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no file of this user"));
            }
            // Whoever removes it has this byte alone, so the name counts only once the byte is shared.
            if locks::set(&file, USE, Lock::Shared)? && folder.is_named(&name, &file)? {
                let linked_at = AtomicU64::new(monotonic_ns());
                let [inside, retired, let_go, known] = [const { AtomicBool::new(false) }; 4];
                return Ok(Self { identity, folder, file, name, inside, retired, let_go, known, linked_at });
            }
            if Instant::now() >= deadline {
                return Err(io::Error::from(io::ErrorKind::ResourceBusy));
            }
            nap(OPEN_PAUSE);
        }
    }

    /// Whether the file was removed since.
    pub fn is_retired(&self) -> bool {
        if self.retired.load(Ordering::Relaxed) {
            return true;
        }
        let now = monotonic_ns();
        if now.saturating_sub(self.linked_at.load(Ordering::Relaxed)) > LINKED_NS {
            self.linked_at.store(now, Ordering::Relaxed);
            if matches!(self.folder.is_named(&self.name, &self.file), Ok(false)) {
                self.retired.store(true, Ordering::Relaxed);
                return true;
            }
        }
        false
    }

    /// Enters it, if nobody is inside. Whoever enters calls [`Sidecar::leave`].
    ///
    /// # Errors
    ///
    /// What fcntl(2) said.
    pub fn try_enter(&self) -> io::Result<bool> {
        // Pairs with `leave` of the flag: what another thread did inside is seen. Between processes that is
        // the kernel's business.
        if !self.inside.try_enter() {
            return Ok(false);
        }
        if self.let_go.load(Ordering::Relaxed) {
            let shared = locks::set(&self.file, USE, Lock::Shared);
            if !matches!(shared, Ok(true)) {
                self.inside.leave();
                return shared;
            }
            self.let_go.store(false, Ordering::Relaxed);
            // Whoever enters asks next whether it is retired.
            if matches!(self.folder.is_named(&self.name, &self.file), Ok(false)) {
                self.retired.store(true, Ordering::Relaxed);
            }
        }
        let entered = locks::set(&self.file, ENTER, Lock::Alone);
        match entered {
            Ok(true) => steps::reach(steps::Step::Entered),
            _ => self.inside.leave(),
        }
        entered
    }

    /// Whether a thread of this process is inside.
    pub fn is_entered_here(&self) -> bool {
        self.inside.load(Ordering::Relaxed)
    }

    /// Leaves it.
    pub fn leave(&self) {
        let _ = locks::set(&self.file, ENTER, Lock::Free);
        self.inside.leave();
    }

    /// Whether the file of this process's entry is the one that the sidecar was made for; makes the head where there
    /// is none or that of a file that had the same inode. Call it inside. `false`: a version of another kind.
    ///
    /// # Errors
    ///
    /// When a system call fails.
    pub fn acquaint(&self, birth_ns: u64, path: &Path) -> io::Result<bool> {
        if self.known.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let mut bytes = [0; HEAD_BYTES];
        let head = Head { identity: self.identity, birth_ns, path: path.to_owned() };
        let read = match read_up_to(&self.file, &mut bytes, 0)? {
            0 => Read::New,
            _ => Head::decode(&bytes),
        };
        match read {
            Read::Foreign => return Ok(false),
            Read::Known(there) if there.identity == head.identity && there.birth_ns == head.birth_ns => {}
            // The bytes of a file that is gone are nobody's any more.
            Read::Known(_) => {
                self.clear()?;
                self.file.write_all_at(&head.encode(), 0)?;
            }
            Read::New => self.file.write_all_at(&head.encode(), 0)?,
        }
        self.known.store(true, Ordering::Relaxed);
        Ok(true)
    }

    /// What the head says, if it can be read.
    pub fn head(&self) -> Option<Head> {
        let mut bytes = [0; HEAD_BYTES];
        self.file.read_exact_at(&mut bytes, 0).ok()?;
        match Head::decode(&bytes) {
            Read::Known(head) => Some(head),
            _ => None,
        }
    }

    /// Whether an intent is there. Those that are inside find one of a dead writer, or their own.
    pub fn has_intent(&self) -> io::Result<bool> {
        let mut state = [0; 8];
        read_up_to(&self.file, &mut state, INTENT)?;
        Ok(state != [0; 8])
    }

    /// The intent that is there. `None`: there is none, or it cannot be read.
    pub fn intent(&self) -> io::Result<Option<Intent>> {
        let mut bytes = [0; INTENT_BYTES];
        read_up_to(&self.file, &mut bytes, INTENT)?;
        Ok(Intent::decode(&bytes))
    }

    /// Writes an intent and the copy of its bytes; without the copy where there is no room. `buffer` is for this.
    ///
    /// # Errors
    ///
    /// When a system call fails, when not even the intent alone could be written.
    pub fn intend(&self, intent: &mut Intent, bytes: &[u8], buffer: &mut Vec<u8>) -> io::Result<()> {
        if bytes.len() <= SMALL_COPY_BYTES {
            intent.copy = super::intent::SMALL_COPY;
            buffer.clear();
            buffer.extend_from_slice(&intent.encode());
            buffer.extend_from_slice(bytes);
            // Inside one page: a kill cannot cut it.
            self.file.write_all_at(buffer, INTENT)?;
        } else {
            let copied = self.file.write_all_at(bytes, LARGE_COPY).is_ok();
            intent.copy = if copied { LARGE_COPY } else { 0 };
            self.rewrite(intent)?;
        }
        steps::reach(steps::Step::Intended);
        Ok(())
    }

    /// Writes an intent whose copy is there.
    pub fn rewrite(&self, intent: &Intent) -> io::Result<()> {
        self.file.write_all_at(&intent.encode(), INTENT)
    }

    /// The copy of an intent's bytes. `None`: there is none.
    pub fn copy(&self, intent: &Intent) -> io::Result<Option<Vec<u8>>> {
        let file_bytes = self.file.metadata()?.len();
        if intent.copy == 0 || intent.copy.checked_add(intent.length).is_none_or(|end| end > file_bytes) {
            return Ok(None);
        }
        let mut bytes = vec![0; intent.length as usize];
        self.file.read_exact_at(&mut bytes, intent.copy)?;
        Ok(Some(bytes))
    }

    /// Takes the intent back, and the memory of an uncommonly long copy.
    pub fn clear(&self) -> io::Result<()> {
        self.file.write_all_at(&[0; 8], INTENT)?;
        steps::reach(steps::Step::Cleared);
        Ok(())
    }

    /// Gives the memory of a copy of `bytes` back, where that is uncommonly much.
    pub fn shrink(&self, bytes: usize) {
        if bytes > PIECE_BYTES {
            let _ = self.file.set_len(LARGE_COPY);
        }
    }

    /// Counts a torn line.
    pub fn count_torn(&self) -> io::Result<()> {
        self.file.write_all_at(&(self.word(TORN)? + 1).to_ne_bytes(), TORN)
    }

    /// Torn lines so far.
    pub fn torn(&self) -> u64 {
        self.word(TORN).unwrap_or(0)
    }

    /// When the file is to be rotated: what the first one said who was asked. Call it inside.
    pub fn agree(&self, due: i64) -> io::Result<i64> {
        match self.word(DUE)? {
            0 => self.agree_anew(due).map(|()| due),
            agreed => Ok(agreed as i64),
        }
    }

    /// Says another time. Call it inside.
    pub fn agree_anew(&self, due: i64) -> io::Result<()> {
        self.file.write_all_at(&due.to_ne_bytes(), DUE)
    }

    fn word(&self, offset: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        read_up_to(&self.file, &mut bytes, offset)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// Whether another process has it open.
    pub fn is_used_elsewhere(&self) -> bool {
        locks::is_held_elsewhere(&self.file, USE).unwrap_or(true)
    }

    /// Removes the file, if nobody else has it open and no intent is in it. Shares the use of it no longer in any case:
    /// of several processes that end at the same time, the last one finds itself alone.
    pub(super) fn retire(&self) {
        // Not under a thread of this process that is about to append.
        if !self.inside.try_enter() {
            return;
        }
        self.let_go.store(true, Ordering::Relaxed);
        if locks::take_alone(&self.file) {
            // Others may have removed it while the byte was free, and made another one of this name.
            let is_gone = matches!(self.folder.is_named(&self.name, &self.file), Ok(false));
            if is_gone || matches!(self.has_intent(), Ok(false)) && self.folder.remove(&self.name).is_ok() {
                self.retired.store(true, Ordering::Relaxed);
            }
            // Those who wait to share the byte see now whether the name is gone.
            let _ = locks::set(&self.file, USE, Lock::Free);
        }
        self.inside.leave();
    }
}

/// Reads what is there. Returns how much that is.
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
