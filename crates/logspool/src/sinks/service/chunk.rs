//! One chunk of Fluent Forward: `[tag, entries, {"chunk": id, "size": records, ...}]`, encoded once.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use logspool_lanes::segment::layout::LEVEL_CLASSES;
use logspool_record::msgpack::{push_array, push_bool, push_int, push_map, push_text};

use crate::sink::{CarryOutcome, RefusedRecord, Stream};

/// Bytes reserved for the options after the entries.
const OPTION_BYTES: usize = 160;

/// The encoding of the entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// Uncompressed.
    Plain,
    /// Compressed by gzip at its fastest level.
    Gzip,
}

/// The id of a chunk of a stream. `first` is the number of its first record, and `records` is their number.
pub fn id(stream: Stream, first: u64, records: u64) -> String {
    format!("{:032x}/{}/{first}-{}", stream.id, stream.epoch, first + records - 1)
}

/// Number of records of each level class.
pub type ClassCounts = [u32; LEVEL_CLASSES];

/// A chunk that is being delivered.
#[derive(Debug)]
pub struct SentChunk {
    /// The id that its ack repeats.
    pub id: String,
    /// The whole message. If the chunk is sent again, the same bytes are sent.
    pub bytes: Vec<u8>,
    /// Number of batches that end in the chunk.
    pub batches: usize,
    /// The number of records of each level class, for each batch with records in the chunk. It has one entry more than
    /// `batches` if the last batch continues in the next chunk.
    pub classes: Vec<ClassCounts>,
    /// Whether the service has acknowledged the chunk.
    pub acked: bool,
    /// Why the service drops the chunk, if it has acknowledged it with a reason.
    pub dropped: Option<String>,
}

impl SentChunk {
    /// Encodes a chunk from MessagePack entries.
    pub fn new(id: String, tag: &str, entries: &[u8], records: u64, packing: Packing) -> Self {
        let mut bytes = Vec::new();
        let start = push_head(&mut bytes, tag);
        match packing {
            Packing::Plain => {
                bytes.reserve_exact(entries.len() + OPTION_BYTES);
                bytes.extend_from_slice(entries);
            }
            Packing::Gzip => {
                let mut encoder = GzEncoder::new(bytes, Compression::fast());
                encoder.write_all(entries).expect("a vector takes every byte");
                bytes = encoder.finish().expect("a vector takes every byte");
            }
        }
        close_entries(&mut bytes, start);
        push_map(&mut bytes, if packing == Packing::Gzip { 3 } else { 2 });
        push_option(&mut bytes, "chunk", &id);
        push_text(&mut bytes, b"size");
        push_int(&mut bytes, records as i64);
        if packing == Packing::Gzip {
            push_option(&mut bytes, "compressed", "gzip");
        }
        Self { id, bytes, batches: 0, classes: Vec::new(), acked: false, dropped: None }
    }

    /// Notes in `carried` the batches that end in the acknowledged chunk, and the records that the service drops. `cut`
    /// has the dropped records of a batch that began before the chunk, and then those of the batch that continues.
    pub fn arrive(self, cut: &mut ClassCounts, carried: &mut CarryOutcome) {
        let Self { batches, mut classes, dropped, .. } = self;
        match dropped {
            None => classes.fill(ClassCounts::default()),
            Some(why) => {
                let records: u32 = classes.iter().flatten().sum();
                let why = format!("the service drops {records} records for ever: {why}");
                carried.error.get_or_insert(io::Error::other(why));
            }
        }
        if let Some(first) = classes.first_mut() {
            first.iter_mut().zip(std::mem::take(cut)).for_each(|(count, cut)| *count += cut);
        }
        *cut = classes.get(batches).copied().unwrap_or_default();
        for (place, counts) in classes.into_iter().take(batches).enumerate() {
            let batch = carried.arrived + place;
            for (class, count) in (0..).zip(counts) {
                carried.refused.extend((0..count).map(|_| RefusedRecord { batch, class }));
            }
        }
        carried.arrived += batches;
    }
}

/// The message that ends a stream. `id` is the id of a chunk without records.
pub fn end(id: &str, tag: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let start = push_head(&mut bytes, tag);
    close_entries(&mut bytes, start);
    push_map(&mut bytes, 3);
    push_option(&mut bytes, "chunk", id);
    push_text(&mut bytes, b"size");
    push_int(&mut bytes, 0);
    push_text(&mut bytes, b"end");
    push_bool(&mut bytes, true);
    bytes
}

/// Writes what is before the entries. Returns where the entries start.
fn push_head(bytes: &mut Vec<u8>, tag: &str) -> usize {
    push_array(bytes, 3);
    push_text(bytes, tag.as_bytes());
    // The header of a byte string; `close_entries` fills in its length.
    bytes.extend_from_slice(&[0xc6, 0, 0, 0, 0]);
    bytes.len()
}

fn close_entries(bytes: &mut [u8], start: usize) {
    let len = (bytes.len() - start) as u32;
    bytes[start - 4..start].copy_from_slice(&len.to_be_bytes());
}

fn push_option(bytes: &mut Vec<u8>, name: &str, value: &str) {
    push_text(bytes, name.as_bytes());
    push_text(bytes, value.as_bytes());
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use logspool_record::msgpack::{Item, Reader};

    use super::*;
    use crate::sink::NextCarry;

    fn options(bytes: &[u8]) -> (Vec<u8>, Vec<(String, String)>) {
        let mut reader = Reader::new(bytes);
        assert_eq!(Ok(Item::Array(3)), reader.item());
        assert_eq!(Ok(Item::Text(b"logspool")), reader.item());
        let Ok(Item::Bytes(entries)) = reader.item() else { panic!("entries are bytes") };
        let Ok(Item::Map(count)) = reader.item() else { panic!("options are a map") };
        let text = |item: Item<'_>| match item {
            Item::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
            other => format!("{other:?}"),
        };
        let options = (0..count).map(|_| (text(reader.item().unwrap()), text(reader.item().unwrap()))).collect();
        assert!(reader.rest().is_empty());
        (entries.to_vec(), options)
    }

    fn owned(options: &[(&str, &str)]) -> Vec<(String, String)> {
        options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_chunk_names_its_records_and_holds_its_entries() {
        let stream = Stream { id: 0x55, epoch: 7 };
        let expected = format!("{}55/7/11-13", "0".repeat(30));
        let chunk = SentChunk::new(id(stream, 11, 3), "logspool", b"entries", 3, Packing::Plain);

        assert_eq!((b"entries".to_vec(), owned(&[("chunk", &expected), ("size", "Int(3)")])), options(&chunk.bytes));
    }

    #[test]
    fn dropped_records_are_reported_with_the_batch_that_they_belong_to() {
        let counts = |debug, error| [debug, 0, 0, 0, error, 0];
        let arrive = |batches, classes, dropped: Option<&str>, cut: &mut ClassCounts, carried: &mut CarryOutcome| {
            let chunk = SentChunk::new("c".to_owned(), "t", b"", 1, Packing::Plain);
            let dropped = dropped.map(str::to_owned);
            SentChunk { batches, classes, dropped, acked: true, ..chunk }.arrive(cut, carried);
        };
        let mut cut = ClassCounts::default();
        let mut carried = CarryOutcome { arrived: 0, error: None, refused: Vec::new(), next: NextCarry::Idle };
        arrive(1, vec![counts(1, 0)], None, &mut cut, &mut carried);
        // The second of these batches continues in two more chunks; the service stores the last.
        arrive(1, vec![counts(0, 1), counts(2, 0)], Some("too old"), &mut cut, &mut carried);
        arrive(0, vec![counts(0, 1)], Some("too old"), &mut cut, &mut carried);
        assert_eq!((2, counts(2, 1)), (carried.arrived, cut));
        arrive(2, vec![counts(9, 9), counts(9, 9)], None, &mut cut, &mut carried);

        let refused: Vec<_> = carried.refused.iter().map(|record| (record.batch, record.class)).collect();
        assert_eq!((4, vec![(1, 4), (2, 0), (2, 0), (2, 4)]), (carried.arrived, refused));
        assert_eq!(ClassCounts::default(), cut);
        let error = carried.error.unwrap().to_string();
        assert_eq!("the service drops 3 records for ever: too old", error);
    }

    #[test]
    fn gzipped_entries_are_read_back() {
        let entries = b"the same again and ".repeat(10_000);
        let chunk = SentChunk::new("c".to_owned(), "logspool", &entries, 9, Packing::Gzip);
        let (packed, options) = options(&chunk.bytes);
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut unpacked).unwrap();

        assert_eq!(owned(&[("chunk", "c"), ("size", "Int(9)"), ("compressed", "gzip")]), options);
        assert!(entries == unpacked && packed.len() < 10_000);
    }

    #[test]
    fn the_end_of_a_stream_is_an_empty_chunk_after_the_last_one() {
        let expected_id = format!("{}a/1/14-13", "0".repeat(31));
        let expected = owned(&[("chunk", &expected_id), ("size", "Int(0)"), ("end", "Bool(true)")]);

        assert_eq!((Vec::new(), expected), options(&end(&id(Stream { id: 10, epoch: 1 }, 14, 0), "logspool")));
    }
}
