//! The facts about an open sidecar that a signal handler needs to remove it. A handler may take no lock.
//!
//! Atomics belong in `queue` and `stats`; those of this file are an exception: the words of a place. `take` publishes
//! the descriptor last, and `named` observes it first. So whoever reads a descriptor also reads its name (model:
//! `a_descriptor_is_visible_together_with_its_name`).

use logspool_sys::published::Published;
use logspool_sys::sync::{AtomicI32, AtomicU32, AtomicU64, Ordering};

/// A slot in which a signal handler finds one open sidecar.
#[derive(Debug)]
pub struct HandlerPlace {
    /// Id of the process that uses the place.
    process: AtomicU32,
    /// Descriptor of the sidecar; −1 while the place is free.
    descriptor: AtomicI32,
    folder: AtomicI32,
    device: AtomicU64,
    inode: AtomicU64,
}

/// The descriptors of an open sidecar, and the identity that gives its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedSidecar {
    /// Descriptor of the sidecar.
    pub descriptor: i32,
    /// Descriptor of the sidecar's folder.
    pub folder: i32,
    /// Device of the log file, which is part of the sidecar's name.
    pub device: u64,
    /// Inode of the log file, which is part of the sidecar's name.
    pub inode: u64,
}

impl HandlerPlace {
    /// A place that no sidecar uses.
    #[cfg(not(loom))]
    pub const fn free() -> Self {
        Self {
            process: AtomicU32::new(0),
            descriptor: AtomicI32::new(-1),
            folder: AtomicI32::new(-1),
            device: AtomicU64::new(0),
            inode: AtomicU64::new(0),
        }
    }

    /// A place that no sidecar uses.
    #[cfg(loom)]
    pub fn free() -> Self {
        Self {
            process: AtomicU32::new(0),
            descriptor: AtomicI32::new(-1),
            folder: AtomicI32::new(-1),
            device: AtomicU64::new(0),
            inode: AtomicU64::new(0),
        }
    }

    /// Whether `process` may take the place: it is free, or a parent of this process used it.
    pub fn is_free(&self, process: u32) -> bool {
        self.descriptor.load(Ordering::Relaxed) < 0 || self.process.load(Ordering::Relaxed) != process
    }

    /// Takes the place. Only one thread may call this at a time, and only for a free place.
    pub fn take(&self, process: u32, named: NamedSidecar) {
        self.descriptor.store(-1, Ordering::Relaxed);
        self.process.store(process, Ordering::Relaxed);
        self.folder.store(named.folder, Ordering::Relaxed);
        self.device.store(named.device, Ordering::Relaxed);
        self.inode.store(named.inode, Ordering::Relaxed);
        // Pairs with `observe` in `named`.
        self.descriptor.publish(named.descriptor);
    }

    /// Makes the place free for another sidecar. Call it before the descriptor is closed: afterwards the number of the
    /// descriptor may belong to another file.
    pub fn free_place(&self) {
        self.descriptor.publish(-1);
    }

    /// The sidecar of `process` in this place. Async-signal-safe. A thread may assign the place to another sidecar in
    /// the meantime. So compare the descriptor with the name before you remove a file.
    pub fn named(&self, process: u32) -> Option<NamedSidecar> {
        // Pairs with `publish` in `take`.
        let descriptor = self.descriptor.observe();
        if descriptor < 0 || self.process.load(Ordering::Relaxed) != process {
            return None;
        }
        let folder = self.folder.load(Ordering::Relaxed);
        let (device, inode) = (self.device.load(Ordering::Relaxed), self.inode.load(Ordering::Relaxed));
        Some(NamedSidecar { descriptor, folder, device, inode })
    }
}
