//! Defects that the proof plants to show that it notices them. Outside of the core's own tests there are none: the
//! question is answered with a constant `false` then, and the compiler removes what depends on it.

/// A way to break the spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// A new segment is used before its name is durable.
    NoFolderSync,
    /// A failed fdatasync is called again on the same file, and believed.
    RetryFailedSync,
    /// Segments are given back before the checkpoint that passes them is durable.
    RecycleBeforeCheckpoint,
    /// The checksum of a frame leaves out the segment's id.
    CrcWithoutId,
    /// Checksums are not looked at.
    NoCrc,
    /// A full segment is left without a sync.
    SealWithoutSync,
    /// The last segment of a former life goes before what it held is durable elsewhere.
    FreeTailBeforeCopy,
    /// The last segment of a former life is synced and trusted, not copied.
    TrustSyncOfTail,
    /// Both slots of the checkpoint are one.
    OneSlot,
    /// The checkpoint counts as durable without a sync.
    CheckpointWithoutSync,
    /// Behind a damaged frame nothing is looked for.
    StopAtDamage,
    /// Numbers are given anew when no frame shows that they were used.
    ForgetNumbers,
    /// What is given up is not written into the checkpoint first.
    DropWithoutCheckpoint,
    /// After a failed fdatasync the new segment gets only what comes then.
    RescueForgets,
    /// Of two copies of a frame the older one is taken.
    OldCopyWins,
}

impl Defect {
    /// All of them.
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

    /// Whether this one is planted, in this thread.
    #[cfg(not(test))]
    pub const fn is_planted(self) -> bool {
        false
    }

    /// Whether this one is planted, in this thread.
    #[cfg(test)]
    pub fn is_planted(self) -> bool {
        PLANTED.with(|planted| planted.get() == Some(self))
    }
}

#[cfg(test)]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Defect>> = const { std::cell::Cell::new(None) };
}

/// Plants one in this thread, or none.
#[cfg(test)]
pub fn plant(defect: Option<Defect>) {
    PLANTED.with(|planted| planted.set(defect));
}
