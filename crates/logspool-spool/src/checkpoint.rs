//! The checkpoint: the positions of all consumers, in a file of two slots that are written in turn.
//!
//! `checkpoint` has two slots of 4096 bytes. The newer valid slot counts; a crash tears at most the slot being written.
//! Without a valid slot the spool is rebuilt from its segments, and all their records are delivered again. All words
//! are little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `LSPOOLCP` |
//! | 8..12 | version, 1 |
//! | 12..16 | masked CRC32C of bytes 0..12 and 16..4096 |
//! | 16..24 | generation: the higher one is newer; its lowest bit is the slot |
//! | 24..40 | id of the stream |
//! | 40..48 | epoch |
//! | 48..56 | the number after the last durable record: no number below it is used again |
//! | 56..64 | the number after the last record dropped to make room |
//! | 64..72 | records dropped to make room, since the stream began |
//! | 72..76 | consumers |
//! | 76..80 | zeros |
//! | 80.. | for each consumer its id and the first number that it has not acked, 8 bytes each |
//!
//! A failed sync is final for the checkpoint's file, too: the next checkpoint is written to a new file that is then
//! renamed over the old one. The first checkpoint of a life does the same, because the newest slot of the former life
//! may be only in the page cache.

use std::collections::BTreeMap;

use super::defect::Defect;
use super::disk::{Disk, DiskError, read_patiently};
use super::id::Id;
use super::words::{masked, put_u32, put_u64, u32_at, u64_at};

const NAME: &str = "checkpoint";
const UNFINISHED_NAME: &str = "checkpoint.tmp";
const MAGIC: &[u8; 8] = b"LSPOOLCP";
const VERSION: u32 = 1;
/// Size of a slot in bytes.
///
/// Chosen: disks write this much in one piece. A slot has room for twice the sinks that a process can have.
pub const SLOT_BYTES: usize = 4096;
const FIXED_BYTES: usize = 80;
/// Maximum number of consumers in a slot.
pub const MAX_CONSUMERS: usize = (SLOT_BYTES - FIXED_BYTES) / 16;

/// Generations are below this number, so a next generation always exists.
const MAX_GENERATION: u64 = 1 << 62;

/// The contents of a slot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckpointState {
    /// Counts the states; the state with the higher generation is newer.
    pub generation: u64,
    /// Id of the stream.
    pub stream: Id,
    /// The epoch, which counts the lives of the stream.
    pub epoch: u64,
    /// The number after the last durable record.
    pub durable: u64,
    /// The number after the last record dropped to make room.
    pub dropped_end: u64,
    /// Records dropped to make room, since the stream began.
    pub dropped_records: u64,
    /// For each consumer the first number that it has not acked.
    pub positions: BTreeMap<u64, u64>,
}

impl CheckpointState {
    fn encode(&self) -> Vec<u8> {
        let mut slot = vec![0; SLOT_BYTES];
        slot[0..8].copy_from_slice(MAGIC);
        put_u32(&mut slot, 8, VERSION);
        put_u64(&mut slot, 16, self.generation);
        slot[24..40].copy_from_slice(&self.stream.0);
        put_u64(&mut slot, 40, self.epoch);
        put_u64(&mut slot, 48, self.durable);
        put_u64(&mut slot, 56, self.dropped_end);
        put_u64(&mut slot, 64, self.dropped_records);
        put_u32(&mut slot, 72, self.positions.len() as u32);
        for (index, (consumer, position)) in self.positions.iter().enumerate() {
            put_u64(&mut slot, FIXED_BYTES + index * 16, *consumer);
            put_u64(&mut slot, FIXED_BYTES + index * 16 + 8, *position);
        }
        let crc = crc_of(&slot);
        put_u32(&mut slot, 12, crc);
        slot
    }

    fn parse(slot: &[u8]) -> Option<Self> {
        if slot.len() < SLOT_BYTES || slot[0..8] != *MAGIC || u32_at(slot, 8) != VERSION {
            return None;
        }
        let consumers = u32_at(slot, 72) as usize;
        if u32_at(slot, 12) != crc_of(slot) || consumers > MAX_CONSUMERS || u64_at(slot, 16) > MAX_GENERATION {
            return None;
        }
        let entry = |index: usize| (u64_at(slot, FIXED_BYTES + index * 16), u64_at(slot, FIXED_BYTES + index * 16 + 8));
        Some(Self {
            generation: u64_at(slot, 16),
            stream: Id::at(slot, 24),
            epoch: u64_at(slot, 40),
            durable: u64_at(slot, 48),
            dropped_end: u64_at(slot, 56),
            dropped_records: u64_at(slot, 64),
            positions: (0..consumers).map(entry).collect(),
        })
    }
}

fn crc_of(slot: &[u8]) -> u32 {
    masked(crc32c::crc32c_append(crc32c::crc32c(&slot[0..12]), &slot[16..SLOT_BYTES]))
}

/// Reads the newest valid state of all folders.
pub fn newest<D: Disk>(disks: &[D]) -> Option<CheckpointState> {
    disks.iter().filter_map(read).max_by_key(|state| state.generation)
}

fn read<D: Disk>(disk: &D) -> Option<CheckpointState> {
    let file = disk.open(NAME).ok()?;
    let mut slots = vec![0; 2 * SLOT_BYTES];
    let filled = read_patiently(disk, &file, &mut slots, 0).ok()?;
    slots[..filled].chunks(SLOT_BYTES).filter_map(CheckpointState::parse).max_by_key(|state| state.generation)
}

/// Writes checkpoints.
#[derive(Debug)]
pub struct CheckpointWriter<D: Disk> {
    /// Folder index and file of this life's checkpoint.
    file: Option<(usize, D::File)>,
}

impl<D: Disk> CheckpointWriter<D> {
    /// A keeper that has written no state yet.
    pub fn new() -> Self {
        Self { file: None }
    }

    /// Makes a state durable. The state's generation must be one higher than the last generation stored.
    ///
    /// # Errors
    ///
    /// The error of the last folder tried. In that case the former state is still stored.
    pub fn store(&mut self, disks: &[D], state: &CheckpointState) -> Result<(), DiskError> {
        let slot = state.encode();
        let first = self.file.as_ref().map_or(0, |(index, _)| *index);
        if let Some((index, file)) = self.file.take() {
            let disk = &disks[index];
            if write_slot(disk, &file, state, &slot).is_ok() {
                self.file = Some((index, file));
                return Ok(());
            }
        }
        let mut failed = None;
        for offset in 0..disks.len() {
            let index = (first + offset) % disks.len();
            match replace(&disks[index], state, &slot) {
                Ok(file) => {
                    self.file = Some((index, file));
                    return Ok(());
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        Err(failed.expect("a spool has a folder"))
    }

    /// Makes a state durable in the former life's file, for a disk without room for another file. First the valid slot
    /// is written again unchanged. After that write is durable, the other slot is written.
    ///
    /// # Errors
    ///
    /// The disk's error, also `NotFound`.
    pub fn store_in_place(
        &mut self,
        disks: &[D],
        before: &CheckpointState,
        state: &CheckpointState,
    ) -> Result<(), DiskError> {
        let holds = |disk: &D| read(disk).as_ref() == Some(before);
        let index = disks.iter().position(holds).unwrap_or(0);
        let disk = &disks[index];
        let file = disk.open(NAME)?;
        write_slot(disk, &file, before, &before.encode())?;
        write_slot(disk, &file, state, &state.encode())?;
        self.file = Some((index, file));
        Ok(())
    }
}

fn write_slot<D: Disk>(disk: &D, file: &D::File, state: &CheckpointState, slot: &[u8]) -> Result<(), DiskError> {
    disk.write_at(file, slot, slot_offset(state))?;
    if Defect::CheckpointWithoutSync.is_planted() {
        return Ok(());
    }
    disk.sync_data(file)
}

fn slot_offset(state: &CheckpointState) -> u64 {
    if Defect::OneSlot.is_planted() { 0 } else { (state.generation % 2) * SLOT_BYTES as u64 }
}

/// Makes a file with one state, then renames it.
fn replace<D: Disk>(disk: &D, state: &CheckpointState, slot: &[u8]) -> Result<D::File, DiskError> {
    // A crash or a full disk may have left a file with this name. If the file cannot be removed, `create` fails.
    let _ = disk.remove(UNFINISHED_NAME);
    let file = disk.create(UNFINISHED_NAME)?;
    let made = disk
        .write_at(&file, &vec![0; 2 * SLOT_BYTES], 0)
        .and_then(|()| disk.write_at(&file, slot, slot_offset(state)))
        .and_then(|()| disk.sync_data(&file))
        .and_then(|()| disk.rename(UNFINISHED_NAME, NAME))
        .and_then(|()| disk.sync_folder());
    if made.is_err() {
        // Frees the space of the unfinished file. After a successful rename no file has this name.
        let _ = disk.remove(UNFINISHED_NAME);
    }
    made.map(|()| file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_back_and_every_changed_byte_is_detected() {
        let positions = (0..MAX_CONSUMERS as u64).map(|consumer| (consumer, consumer * 3)).collect();
        let state = CheckpointState {
            generation: 7,
            stream: Id([3; 16]),
            epoch: 2,
            durable: 900,
            dropped_end: 5,
            dropped_records: 4,
            positions,
        };
        let slot = state.encode();

        assert_eq!(Some(state), CheckpointState::parse(&slot));
        // Miri needs minutes to try every byte.
        for at in (0..SLOT_BYTES).step_by(if cfg!(miri) { 1021 } else { 1 }) {
            let mut changed = slot.clone();
            changed[at] ^= 1;
            assert_eq!(None, CheckpointState::parse(&changed), "byte {at}");
        }
        assert_eq!(None, CheckpointState::parse(&vec![0; SLOT_BYTES]));
    }
}
