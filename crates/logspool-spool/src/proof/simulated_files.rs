//! The contents of a simulated disk, their durable part, and the contents after a crash.
//!
//! A file has durable bytes and the writes since its last sync, in order. A folder has durable names and the operations
//! on names since its last sync. A crash keeps the first operations of a folder; their number is arbitrary. It keeps
//! each write, drops it, cuts it at a sector, or replaces it by zeros.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::content::{Content, is_same};
use super::generator::Random;

/// Number of bytes that a disk writes in one piece.
const SECTOR_BYTES: usize = 512;

/// A write that no sync has made durable.
#[derive(Debug, PartialEq, Eq)]
pub struct Write {
    offset: usize,
    bytes: Vec<u8>,
}

/// A file, with or without a name. Clones share their bytes.
#[derive(Debug, Clone, Default)]
pub struct Inode {
    /// The bytes that reads return.
    pub cache: Rc<Content>,
    durable: Rc<Content>,
    pending: Vec<Rc<Write>>,
    /// Whether reads still return bytes that a failed sync has dropped.
    is_parted: bool,
}

impl Inode {
    fn is_same(&self, other: &Self) -> bool {
        is_same(&self.cache, &other.cache) && is_same(&self.durable, &other.durable) && self.pending == other.pending
    }

    fn write(&mut self, write: Rc<Write>) {
        Rc::make_mut(&mut self.cache).put(write.offset, &write.bytes);
        self.pending.push(write);
    }

    fn sync(&mut self) {
        if self.is_parted {
            let durable = Rc::make_mut(&mut self.durable);
            for write in self.pending.drain(..) {
                durable.put(write.offset, &write.bytes);
            }
        } else {
            self.durable = self.cache.clone();
            self.pending.clear();
        }
    }

    /// A file whose bytes are all durable.
    fn settled(bytes: Rc<Content>) -> Rc<Self> {
        Rc::new(Self { cache: bytes.clone(), durable: bytes, ..Self::default() })
    }

    fn is_settled(&self) -> bool {
        self.pending.is_empty() && Rc::ptr_eq(&self.cache, &self.durable)
    }
}

/// An operation on names that no sync has made durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameChange {
    Link(Rc<str>, usize),
    Unlink(Rc<str>),
    Rename(Rc<str>, Rc<str>),
}

/// The effect of a call to the disk.
#[derive(Debug, Clone)]
pub enum Change {
    Folder(Rc<str>),
    Name(usize, NameChange),
    SyncFolder(usize),
    Write(usize, Rc<Write>),
    Sync(usize),
    /// A sync failed; reads still return the written bytes.
    FailSync(usize),
    /// A sync failed; reads return the durable bytes.
    Forget(usize),
}

type Names = BTreeMap<Rc<str>, usize>;

/// The names of one folder. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Folder {
    path: Rc<str>,
    pub names: Rc<Names>,
    durable: Rc<Names>,
    pending: Vec<NameChange>,
}

/// All files and folders.
#[derive(Debug, Clone, Default)]
pub struct SimulatedFiles {
    pub inodes: Vec<Rc<Inode>>,
    pub folders: Vec<Folder>,
    /// No crash follows, so pending and durable bytes need not be stored separately.
    pub is_last: bool,
    /// The changes so far, if a caller records them.
    pub changes: Option<Vec<Change>>,
}

fn apply(names: &mut Names, naming: &NameChange) {
    match naming {
        NameChange::Link(name, inode) => {
            names.insert(name.clone(), *inode);
        }
        NameChange::Unlink(name) => {
            names.remove(name);
        }
        NameChange::Rename(from, to) => {
            if let Some(inode) = names.remove(from) {
                names.insert(to.clone(), inode);
            }
        }
    }
}

impl SimulatedFiles {
    /// A file with these bytes, all durable.
    pub fn file(bytes: Vec<u8>) -> Rc<Inode> {
        Inode::settled(Rc::new(Content::new(bytes)))
    }

    /// The folder at this path, made if it is missing.
    pub fn folder(&mut self, path: &str) -> usize {
        if let Some(index) = self.folders.iter().position(|folder| &*folder.path == path) {
            return index;
        }
        self.change(Change::Folder(path.into()));
        self.folders.len() - 1
    }

    pub fn create(&mut self, folder: usize, name: &str) -> usize {
        let inode = self.inodes.len();
        self.change(Change::Name(folder, NameChange::Link(name.into(), inode)));
        inode
    }

    pub fn rename(&mut self, folder: usize, from: &str, to: &str) {
        self.change(Change::Name(folder, NameChange::Rename(from.into(), to.into())));
    }

    pub fn remove(&mut self, folder: usize, name: &str) {
        self.change(Change::Name(folder, NameChange::Unlink(name.into())));
    }

    pub fn sync_folder(&mut self, folder: usize) {
        self.change(Change::SyncFolder(folder));
    }

    pub fn write(&mut self, inode: usize, offset: u64, bytes: &[u8]) {
        let offset = offset as usize;
        if self.is_last {
            let inode = Rc::make_mut(&mut self.inodes[inode]);
            Rc::make_mut(&mut inode.cache).put(offset, bytes);
        } else {
            self.change(Change::Write(inode, Rc::new(Write { offset, bytes: bytes.to_vec() })));
        }
    }

    pub fn sync(&mut self, inode: usize) {
        self.change(Change::Sync(inode));
    }

    /// Fails a sync: the pending writes are dropped and no longer pending. Reads may still return them.
    pub fn fail_sync(&mut self, inode: usize, reads_see_it: bool) {
        self.change(if reads_see_it { Change::FailSync(inode) } else { Change::Forget(inode) });
    }

    fn change(&mut self, change: Change) {
        self.apply(&change);
        if let Some(changes) = &mut self.changes {
            changes.push(change);
        }
    }

    /// Applies a change recorded in other files.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Folder(path) => self.folders.push(Folder { path: path.clone(), ..Folder::default() }),
            Change::Name(folder, naming) => {
                if let NameChange::Link(..) = naming {
                    self.inodes.push(Rc::default());
                }
                let folder = &mut self.folders[*folder];
                apply(Rc::make_mut(&mut folder.names), naming);
                if !self.is_last {
                    folder.pending.push(naming.clone());
                }
            }
            Change::SyncFolder(_) | Change::Sync(_) if self.is_last => {}
            Change::SyncFolder(folder) => {
                let folder = &mut self.folders[*folder];
                folder.durable = folder.names.clone();
                folder.pending.clear();
            }
            Change::Write(inode, write) => Rc::make_mut(&mut self.inodes[*inode]).write(write.clone()),
            Change::Sync(inode) => Rc::make_mut(&mut self.inodes[*inode]).sync(),
            Change::FailSync(inode) => {
                let inode = Rc::make_mut(&mut self.inodes[*inode]);
                inode.pending.clear();
                inode.is_parted = true;
            }
            Change::Forget(inode) => {
                let inode = Rc::make_mut(&mut self.inodes[*inode]);
                inode.pending.clear();
                inode.cache = inode.durable.clone();
            }
        }
    }

    /// Total number of bytes of all files that have a name.
    pub fn bytes(&self) -> u64 {
        let names = self.folders.iter().flat_map(|folder| folder.names.values());
        names.map(|inode| self.inodes[*inode].cache.len() as u64).sum()
    }

    /// The contents after a power cut, with a random outcome of each change.
    pub fn crash(&self, generator: &mut Random) -> Self {
        let temper = generator.below(4);
        let folders = self.folders.iter().map(|folder| {
            let count = folder.pending.len() as u64;
            match temper {
                0 => count,
                1 => 0,
                _ => generator.below(count + 1),
            }
        });
        let folders: Vec<u64> = folders.collect();
        self.crash_with(&folders, |write, _| match temper {
            0 => WriteOutcome::Kept,
            1 => WriteOutcome::Dropped,
            _ => match generator.below(8) {
                0..=2 => WriteOutcome::Kept,
                3..=5 => WriteOutcome::Dropped,
                6 => WriteOutcome::Zeroed,
                _ => WriteOutcome::Cut(
                    generator.below((write.bytes.len() / SECTOR_BYTES + 1) as u64) as usize * SECTOR_BYTES,
                ),
            },
        })
    }

    /// Number of writes that no sync has made durable, in files that may have a name after a crash.
    pub fn pending_writes(&self) -> usize {
        self.reachable().map(|inode| self.inodes[inode].pending.len()).sum()
    }

    /// Number of operations on names that no sync has made durable, for each folder.
    pub fn pending_names(&self) -> Vec<u64> {
        self.folders.iter().map(|folder| folder.pending.len() as u64).collect()
    }

    /// Files that may have a name after a crash.
    fn reachable(&self) -> impl Iterator<Item = usize> {
        let mut is_named = vec![false; self.inodes.len()];
        for folder in &self.folders {
            folder.durable.values().for_each(|inode| is_named[*inode] = true);
            for naming in &folder.pending {
                if let NameChange::Link(_, inode) = naming {
                    is_named[*inode] = true;
                }
            }
        }
        (0..is_named.len()).filter(move |inode| is_named[*inode])
    }

    /// The contents after a crash that keeps `kept_names` operations of each folder and applies `fate` to each pending
    /// write.
    pub fn crash_with(&self, kept_names: &[u64], mut fate: impl FnMut(&Write, usize) -> WriteOutcome) -> Self {
        let mut left = Self::default();
        let mut places = vec![usize::MAX; self.inodes.len()];
        let mut index = 0;
        for inode in self.reachable() {
            let source = &self.inodes[inode];
            places[inode] = left.inodes.len();
            if source.is_settled() {
                left.inodes.push(source.clone());
                continue;
            }
            let mut bytes = source.durable.clone();
            for write in &source.pending {
                let fate = fate(write, index);
                index += 1;
                let place = write.offset..write.offset + write.bytes.len();
                // A write of bytes that are already there changes nothing, whatever its outcome.
                if fate == WriteOutcome::Dropped || bytes.get(place) == Some(&write.bytes[..]) {
                    continue;
                }
                let place = Rc::make_mut(&mut bytes);
                match fate {
                    WriteOutcome::Cut(length) => place.put(write.offset, &write.bytes[..length.min(write.bytes.len())]),
                    WriteOutcome::Zeroed => place.put(write.offset, &vec![0; write.bytes.len()]),
                    _ => place.put(write.offset, &write.bytes),
                }
            }
            left.inodes.push(Inode::settled(bytes));
        }
        for (folder, kept) in self.folders.iter().zip(kept_names) {
            let mut names = Names::clone(&folder.durable);
            for naming in &folder.pending[..*kept as usize] {
                apply(&mut names, naming);
            }
            for inode in names.values_mut() {
                *inode = places[*inode];
            }
            let names = Rc::new(names);
            left.folders.push(Folder { path: folder.path.clone(), durable: names.clone(), names, pending: Vec::new() });
        }
        left
    }

    /// A hash: equal for equal contents of the disk, and mostly different for different contents.
    pub fn hash(&self) -> u64 {
        let mut hash = 0_u64;
        let mut mix = |word: u64| hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        for folder in &self.folders {
            mix(folder.names.len() as u64);
            for (name, inode) in &*folder.names {
                for chunk in name.as_bytes().chunks(8) {
                    let mut word = [0; 8];
                    word[..chunk.len()].copy_from_slice(chunk);
                    mix(u64::from_le_bytes(word));
                }
                mix(u64::from(self.inodes[*inode].cache.hash()));
            }
        }
        hash
    }

    /// Whether neither a reader nor a crash can distinguish the contents of the two disks.
    pub fn is_same(&self, other: &Self) -> bool {
        let is_same_file = |one: usize, two: usize| {
            let (one, two) = (&self.inodes[one], &other.inodes[two]);
            Rc::ptr_eq(one, two) || one.is_same(two)
        };
        let are_same = |one: &Names, two: &Names| {
            one.len() == two.len() && one.iter().zip(two).all(|(a, b)| a.0 == b.0 && is_same_file(*a.1, *b.1))
        };
        // A pending operation refers to a file by its inode, which may have no name at the moment.
        let is_same_to_come = |naming: &NameChange| match naming {
            NameChange::Link(_, inode) => is_same_file(*inode, *inode),
            _ => true,
        };
        let is_same_folder = |one: &Folder, two: &Folder| {
            one.path == two.path
                && one.pending == two.pending
                && are_same(&one.names, &two.names)
                && are_same(&one.durable, &two.durable)
                && one.pending.iter().all(is_same_to_come)
        };
        self.folders.len() == other.folders.len()
            && self.folders.iter().zip(&other.folders).all(|(one, two)| is_same_folder(one, two))
    }
}

/// The outcome of a pending write in a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOutcome {
    Kept,
    Dropped,
    /// Only the first bytes are kept; this is their number.
    Cut(usize),
    /// The file is as long as after the write, but the written bytes are zeros.
    Zeroed,
}
