#![no_main]
//! Every protocol of the table whose frames hold one record each: the ends of frames, and their contents. The first
//! byte picks the protocol.

mod check;

use chrono::{DateTime, FixedOffset};
use libfuzzer_sys::fuzz_target;
use logspool_server::connection::protocol::FrameFormat;
use logspool_server::known_protocols;
use logspool_server::connection::framing::{FrameError, FrameScan};

const LIMIT: usize = 4096;

/// The ranges of the frames in a stream that arrives in pieces of `piece` bytes.
fn frames(format: &FrameFormat, stream: &[u8], piece: usize) -> Result<Vec<(usize, usize)>, FrameError> {
    let (mut framer, mut taken, mut found) = ((format.framer)(LIMIT), 0, Vec::new());
    for end in (piece..stream.len()).step_by(piece).chain([stream.len()]) {
        while let FrameScan::Frame { from, to, next } = framer.scan(&stream[taken..end])? {
            found.push((taken + from, taken + to));
            taken += next;
        }
    }
    Ok(found)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((pick, stream)) = bytes.split_first() else { return };
    let protocol = known_protocols::ALL[usize::from(*pick) % known_protocols::ALL.len()];
    let Some(format) = protocol.frame_format() else { return };
    let whole = frames(&format, stream, stream.len().max(1));
    let in_pieces = frames(&format, stream, 7);
    if let (Ok(whole), Ok(in_pieces)) = (&whole, &in_pieces) {
        assert_eq!(whole, in_pieces);
    }
    for (from, to) in whole.unwrap_or_default() {
        if let Ok(record) = (format.read)(&stream[from..to], DateTime::<FixedOffset>::default()) {
            check::record(&record);
        }
    }
});
