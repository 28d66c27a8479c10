//! Defects that the proof plants to show that it notices them. They exist only in this crate's own tests. In all other
//! builds `is_planted` is a constant `false`, and the compiler removes the code that depends on it.

/// A way to break the spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// A new segment is used before its name is durable.
    NoFolderSync,
    /// After fdatasync fails, it is called a second time on the same file, and its success is believed.
    RetryFailedSync,
    /// Segments are given back before the checkpoint that passes them is durable.
    RecycleBeforeCheckpoint,
    /// The checksum of a frame leaves out the segment's id.
    CrcWithoutId,
    /// Checksums are not checked.
    NoCrc,
    /// A full segment is left without a sync.
    SealWithoutSync,
    /// The last segment of a former life is freed before its frames are durable in another segment.
    FreeTailBeforeCopy,
    /// The last segment of a former life is synced and trusted, not copied.
    TrustSyncOfTail,
    /// The checkpoint writes every state to the same slot.
    OneSlot,
    /// The checkpoint counts as durable without a sync.
    CheckpointWithoutSync,
    /// Recovery does not search for frames after a damaged one.
    StopAtDamage,
    /// Numbers are used again when no frame shows that they were used.
    ForgetNumbers,
    /// Records are dropped before a durable checkpoint counts them.
    DropWithoutCheckpoint,
    /// After a failed fdatasync the new segment gets only later frames.
    RescueForgets,
    /// The older of two copies of a frame is used.
    OldCopyWins,
}

impl Defect {
    /// Every defect.
    #[cfg(test)]
    pub const ALL: [Self; 15] = [
        Self::NoFolderSync,
        Self::RetryFailedSync,
        Self::RecycleBeforeCheckpoint,
        Self::CrcWithoutId,
        Self::NoCrc,
        Self::SealWithoutSync,
        Self::FreeTailBeforeCopy,
        Self::TrustSyncOfTail,
        Self::OneSlot,
        Self::CheckpointWithoutSync,
        Self::StopAtDamage,
        Self::ForgetNumbers,
        Self::DropWithoutCheckpoint,
        Self::RescueForgets,
        Self::OldCopyWins,
    ];

    /// Whether this defect is planted in the calling thread.
    #[cfg(not(test))]
    pub const fn is_planted(self) -> bool {
        false
    }

    /// Whether this defect is planted in the calling thread.
    #[cfg(test)]
    pub fn is_planted(self) -> bool {
        PLANTED.with(|planted| planted.get() == Some(self))
    }
}

#[cfg(test)]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Defect>> = const { std::cell::Cell::new(None) };
}

/// Plants a defect in the calling thread; `None` removes it.
#[cfg(test)]
pub fn plant(defect: Option<Defect>) {
    PLANTED.with(|planted| planted.set(defect));
}
