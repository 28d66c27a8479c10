//! The spool's disk in the proof. Every call works on simulated files and may fail. The state after each call is kept,
//! so that crashes can be made from it.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use super::generator::Random;
use super::model::Promises;
use super::simulated_files::SimulatedFiles;
use crate::disk::{Disk, DiskError, Operation};

/// Faults of a simulated disk. The first five are rates per thousand calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// Rate of writes that end with an error, with any part of the bytes written.
    pub write: u64,
    /// Rate of syncs that fail and drop the pending writes.
    pub sync: u64,
    /// Rate of folder syncs that fail and do nothing.
    pub sync_folder: u64,
    /// Rate of reads that fail.
    pub read: u64,
    /// Rate of operations on names that fail.
    pub name: u64,
    /// Bytes that fit on the disk; 0: no limit.
    pub capacity: u64,
    /// Whether the first folder refuses every call that changes it.
    pub first_is_dead: bool,
    /// Whether reads still return the written bytes after a failed sync.
    pub reads_see_failed: bool,
}

impl Faults {
    /// Whether no fault is set.
    pub fn are_none(&self) -> bool {
        *self == Self { reads_see_failed: self.reads_see_failed, ..Self::default() }
    }
}

/// Simulated files, their faults and their states so far.
#[derive(Debug)]
pub struct Simulation {
    pub files: SimulatedFiles,
    pub faults: Faults,
    pub generator: Random,
    /// The promises made so far.
    pub promises: Promises,
    /// The state after every call, with the promises of that moment.
    pub states: Option<Vec<(SimulatedFiles, Promises)>>,
    /// For each file operation, the total number of recorded changes after it; empty if the files record no changes.
    pub calls: Vec<usize>,
    /// Kind of operation whose next call fails.
    pub fails_next: Option<Operation>,
    ids: u64,
}

impl Simulation {
    pub fn new(files: SimulatedFiles, generator: Random) -> Rc<RefCell<Self>> {
        let (faults, promises) = (Faults::default(), Promises::default());
        Rc::new(RefCell::new(Self {
            files,
            faults,
            generator,
            promises,
            states: None,
            calls: Vec::new(),
            fails_next: None,
            ids: 0,
        }))
    }

    /// Keeps the current state.
    pub fn keep(&mut self) {
        if let Some(states) = &mut self.states {
            states.push((self.files.clone(), self.promises));
        }
        if let Some(changes) = &self.files.changes {
            self.calls.push(changes.len());
        }
    }
}

/// One folder of the simulated disk.
#[derive(Debug)]
pub struct SimDisk {
    simulation: Rc<RefCell<Simulation>>,
    folder: usize,
    path: Rc<str>,
}

impl SimDisk {
    pub fn new(simulation: &Rc<RefCell<Simulation>>, path: &str) -> Self {
        let folder = simulation.borrow_mut().files.folder(path);
        Self { simulation: simulation.clone(), folder, path: path.into() }
    }

    fn error(&self, operation: Operation, number: i32) -> DiskError {
        DiskError { operation, path: (&*self.path).into(), source: io::Error::from_raw_os_error(number) }
    }

    /// Fails at random, with the operation's rate.
    fn may_fail(&self, operation: Operation) -> Result<(), DiskError> {
        let simulation = &mut *self.simulation.borrow_mut();
        let faults = simulation.faults;
        let rate = match operation {
            Operation::Write => faults.write,
            Operation::Sync => faults.sync,
            Operation::SyncFolder => faults.sync_folder,
            Operation::Read => faults.read,
            Operation::Create | Operation::Rename | Operation::Remove => faults.name,
            Operation::List | Operation::Open | Operation::Measure => 0,
        };
        let changes = matches!(
            operation,
            Operation::Write | Operation::Sync | Operation::SyncFolder | Operation::Create | Operation::Rename
        );
        let is_dead = faults.first_is_dead && self.folder == 0 && changes;
        if simulation.fails_next == Some(operation) {
            simulation.fails_next = None;
            return Err(self.error(operation, libc::EIO));
        }
        if is_dead || simulation.generator.permille(rate) { Err(self.error(operation, libc::EIO)) } else { Ok(()) }
    }
}

impl Disk for SimDisk {
    type File = usize;

    fn names(&self) -> Result<Vec<String>, DiskError> {
        Ok(self.simulation.borrow().files.folders[self.folder].names.keys().map(|name| name.to_string()).collect())
    }

    fn create(&self, name: &str) -> Result<usize, DiskError> {
        self.may_fail(Operation::Create)?;
        let simulation = &mut *self.simulation.borrow_mut();
        if simulation.files.folders[self.folder].names.contains_key(name) {
            return Err(self.error(Operation::Create, libc::EEXIST));
        }
        let inode = simulation.files.create(self.folder, name);
        simulation.keep();
        Ok(inode)
    }

    fn open(&self, name: &str) -> Result<usize, DiskError> {
        let simulation = self.simulation.borrow();
        let inode = simulation.files.folders[self.folder].names.get(name).copied();
        inode.ok_or_else(|| self.error(Operation::Open, libc::ENOENT))
    }

    fn bytes(&self, file: &usize) -> Result<u64, DiskError> {
        Ok(self.simulation.borrow().files.inodes[*file].cache.len() as u64)
    }

    fn read_at(&self, file: &usize, buffer: &mut [u8], offset: u64) -> Result<usize, DiskError> {
        self.may_fail(Operation::Read)?;
        let simulation = self.simulation.borrow();
        let bytes = &simulation.files.inodes[*file].cache;
        let begin = (offset as usize).min(bytes.len());
        let count = buffer.len().min(bytes.len() - begin);
        buffer[..count].copy_from_slice(&bytes[begin..begin + count]);
        Ok(count)
    }

    fn write_at(&self, file: &usize, bytes: &[u8], offset: u64) -> Result<(), DiskError> {
        let failed = self.may_fail(Operation::Write).err();
        let simulation = &mut *self.simulation.borrow_mut();
        let mut count = bytes.len();
        let mut error = failed;
        if error.is_some() {
            count = match simulation.generator.below(3) {
                0 => 0,
                1 => count,
                _ => simulation.generator.below(bytes.len() as u64 + 1) as usize,
            };
        }
        let growth = (offset + count as u64).saturating_sub(simulation.files.inodes[*file].cache.len() as u64);
        let capacity = simulation.faults.capacity;
        if capacity > 0 && growth > 0 {
            let free = capacity.saturating_sub(simulation.files.bytes());
            if growth > free {
                count -= (growth - free) as usize;
                error = Some(self.error(Operation::Write, libc::ENOSPC));
            }
        }
        if count > 0 {
            simulation.files.write(*file, offset, &bytes[..count]);
            simulation.keep();
        }
        error.map_or(Ok(()), Err)
    }

    fn sync_data(&self, file: &usize) -> Result<(), DiskError> {
        let failed = self.may_fail(Operation::Sync);
        let simulation = &mut *self.simulation.borrow_mut();
        match &failed {
            Ok(()) => simulation.files.sync(*file),
            Err(_) => simulation.files.fail_sync(*file, simulation.faults.reads_see_failed),
        }
        simulation.keep();
        failed
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        self.may_fail(Operation::Rename)?;
        let simulation = &mut *self.simulation.borrow_mut();
        if !simulation.files.folders[self.folder].names.contains_key(from) {
            return Err(self.error(Operation::Rename, libc::ENOENT));
        }
        simulation.files.rename(self.folder, from, to);
        simulation.keep();
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        self.may_fail(Operation::Remove)?;
        let simulation = &mut *self.simulation.borrow_mut();
        if simulation.files.folders[self.folder].names.contains_key(name) {
            simulation.files.remove(self.folder, name);
            simulation.keep();
        }
        Ok(())
    }

    fn sync_folder(&self) -> Result<(), DiskError> {
        self.may_fail(Operation::SyncFolder)?;
        let simulation = &mut *self.simulation.borrow_mut();
        simulation.files.sync_folder(self.folder);
        simulation.keep();
        Ok(())
    }

    fn child(&self, name: &str) -> Result<Self, DiskError> {
        Ok(Self::new(&self.simulation, &format!("{}/{name}", self.path)))
    }

    fn random_id(&self) -> [u8; 16] {
        let simulation = &mut *self.simulation.borrow_mut();
        simulation.ids += 1;
        let mut id = [0; 16];
        id[0..8].copy_from_slice(&simulation.ids.to_le_bytes());
        id[8..16].copy_from_slice(&simulation.generator.next().to_le_bytes());
        id
    }
}
