//! What a disk holds, what of it is durable, and what a crash makes of it.
//!
//! A file has its durable bytes and the writes since its last sync, in order. A folder has its durable names and the
//! operations on names since its last sync. A crash keeps any beginning of the latter, and of each write keeps it,
//! drops it, cuts it at a sector, or leaves zeros in its place.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::dice::Dice;

/// Bytes that a disk writes in one piece.
const SECTOR_BYTES: usize = 512;

/// A write that no sync has made durable.
#[derive(Debug)]
pub struct Write {
    offset: usize,
    bytes: Vec<u8>,
}

/// A file, with or without a name. Clones share their bytes.
#[derive(Debug, Clone, Default)]
pub struct Inode {
    /// What reads see.
    pub cache: Rc<Vec<u8>>,
    durable: Rc<Vec<u8>>,
    pending: Vec<Rc<Write>>,
}

/// An operation on names that no sync has made durable.
#[derive(Debug, Clone)]
enum Naming {
    Link(Rc<str>, usize),
    Unlink(Rc<str>),
    Rename(Rc<str>, Rc<str>),
}

/// The names of one folder.
#[derive(Debug, Clone, Default)]
pub struct Folder {
    pub names: BTreeMap<Rc<str>, usize>,
    durable: BTreeMap<Rc<str>, usize>,
    pending: Vec<Naming>,
}

/// All files and folders.
#[derive(Debug, Clone, Default)]
pub struct World {
    pub inodes: Vec<Rc<Inode>>,
    pub folders: Vec<Folder>,
    pub folder_names: Vec<Rc<str>>,
}

fn apply(names: &mut BTreeMap<Rc<str>, usize>, naming: &Naming) {
    match naming {
        Naming::Link(name, inode) => {
            names.insert(name.clone(), *inode);
        }
        Naming::Unlink(name) => {
            names.remove(name);
        }
        Naming::Rename(from, to) => {
            if let Some(inode) = names.remove(from) {
                names.insert(to.clone(), inode);
            }
        }
    }
}

fn put(bytes: &mut Vec<u8>, offset: usize, piece: &[u8]) {
    if bytes.len() < offset + piece.len() {
        bytes.resize(offset + piece.len(), 0);
    }
    bytes[offset..offset + piece.len()].copy_from_slice(piece);
}

impl World {
    /// A durable file of these bytes.
    pub fn file(bytes: Vec<u8>) -> Rc<Inode> {
        let bytes = Rc::new(bytes);
        Rc::new(Inode { cache: bytes.clone(), durable: bytes, pending: Vec::new() })
    }

    /// The folder of this path, made where it is missing.
    pub fn folder(&mut self, path: &str) -> usize {
        if let Some(index) = self.folder_names.iter().position(|name| &**name == path) {
            return index;
        }
        self.folder_names.push(path.into());
        self.folders.push(Folder::default());
        self.folders.len() - 1
    }

    pub fn create(&mut self, folder: usize, name: &str) -> usize {
        self.inodes.push(Rc::default());
        let inode = self.inodes.len() - 1;
        self.change_name(folder, Naming::Link(name.into(), inode));
        inode
    }

    pub fn rename(&mut self, folder: usize, from: &str, to: &str) {
        self.change_name(folder, Naming::Rename(from.into(), to.into()));
    }

    pub fn remove(&mut self, folder: usize, name: &str) {
        self.change_name(folder, Naming::Unlink(name.into()));
    }

    fn change_name(&mut self, folder: usize, naming: Naming) {
        let folder = &mut self.folders[folder];
        apply(&mut folder.names, &naming);
        folder.pending.push(naming);
    }

    pub fn sync_folder(&mut self, folder: usize) {
        let folder = &mut self.folders[folder];
        folder.durable = folder.names.clone();
        folder.pending.clear();
    }

    pub fn write(&mut self, inode: usize, offset: u64, bytes: &[u8]) {
        let inode = Rc::make_mut(&mut self.inodes[inode]);
        put(Rc::make_mut(&mut inode.cache), offset as usize, bytes);
        inode.pending.push(Rc::new(Write { offset: offset as usize, bytes: bytes.to_vec() }));
    }

    pub fn sync(&mut self, inode: usize) {
        let inode = Rc::make_mut(&mut self.inodes[inode]);
        let durable = Rc::make_mut(&mut inode.durable);
        for write in inode.pending.drain(..) {
            put(durable, write.offset, &write.bytes);
        }
    }

    /// A sync that fails: what was to be written is dropped and counts as written. Reads may still see it.
    pub fn fail_sync(&mut self, inode: usize, reads_see_it: bool) {
        let inode = Rc::make_mut(&mut self.inodes[inode]);
        inode.pending.clear();
        if !reads_see_it {
            inode.cache = inode.durable.clone();
        }
    }

    /// Bytes of all files that have a name.
    pub fn bytes(&self) -> u64 {
        let names = self.folders.iter().flat_map(|folder| folder.names.values());
        names.map(|inode| self.inodes[*inode].cache.len() as u64).sum()
    }

    /// What is left when the power goes, with fates drawn from the dice.
    pub fn crash(&self, dice: &mut Dice) -> Self {
        let temper = dice.below(4);
        let folders = self.folders.iter().map(|folder| {
            let count = folder.pending.len() as u64;
            match temper {
                0 => count,
                1 => 0,
                _ => dice.below(count + 1),
            }
        });
        let folders: Vec<u64> = folders.collect();
        self.crash_with(&folders, |write, _| match temper {
            0 => Fate::Kept,
            1 => Fate::Dropped,
            _ => match dice.below(8) {
                0..=2 => Fate::Kept,
                3..=5 => Fate::Dropped,
                6 => Fate::Zeroed,
                _ => Fate::Cut(dice.below((write.bytes.len() / SECTOR_BYTES + 1) as u64) as usize * SECTOR_BYTES),
            },
        })
    }

    /// Writes that no sync has made durable, in files that may have a name after a crash.
    pub fn pending_writes(&self) -> usize {
        self.reachable().map(|inode| self.inodes[inode].pending.len()).sum()
    }

    /// Operations on names that no sync has made durable, for each folder.
    pub fn pending_names(&self) -> Vec<u64> {
        self.folders.iter().map(|folder| folder.pending.len() as u64).collect()
    }

    fn reachable(&self) -> impl Iterator<Item = usize> {
        let is_named = |inode: usize| {
            self.folders.iter().any(|folder| {
                folder.durable.values().any(|named| *named == inode)
                    || folder.pending.iter().any(|naming| matches!(naming, Naming::Link(_, made) if *made == inode))
            })
        };
        (0..self.inodes.len()).filter(move |inode| is_named(*inode))
    }

    /// What is left with so many operations on the names of each folder, and these fates of the pending writes.
    pub fn crash_with(&self, kept_names: &[u64], mut fate: impl FnMut(&Write, usize) -> Fate) -> Self {
        let mut left = Self { folder_names: self.folder_names.clone(), ..Self::default() };
        let mut fates = BTreeMap::new();
        let mut index = 0;
        for inode in self.reachable() {
            let source = &self.inodes[inode];
            let mut bytes = source.durable.clone();
            for write in &source.pending {
                let fate = fate(write, index);
                index += 1;
                let place = write.offset..write.offset + write.bytes.len();
                // Sectors that are written as they are do not change, whatever becomes of the write.
                if fate == Fate::Dropped || bytes.get(place) == Some(&write.bytes[..]) {
                    continue;
                }
                let place = Rc::make_mut(&mut bytes);
                match fate {
                    Fate::Cut(length) => put(place, write.offset, &write.bytes[..length.min(write.bytes.len())]),
                    Fate::Zeroed => put(place, write.offset, &vec![0; write.bytes.len()]),
                    _ => put(place, write.offset, &write.bytes),
                }
            }
            left.inodes.push(Rc::new(Inode { cache: bytes.clone(), durable: bytes, pending: Vec::new() }));
            fates.insert(inode, left.inodes.len() - 1);
        }
        for (folder, kept) in self.folders.iter().zip(kept_names) {
            let mut names = folder.durable.clone();
            for naming in &folder.pending[..*kept as usize] {
                apply(&mut names, naming);
            }
            for inode in names.values_mut() {
                *inode = fates[inode];
            }
            left.folders.push(Folder { durable: names.clone(), names, pending: Vec::new() });
        }
        left
    }
}

/// What becomes of a write in a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Kept,
    Dropped,
    /// Only so many bytes of it.
    Cut(usize),
    /// The file is as long as with it, and holds zeros in its place.
    Zeroed,
}
