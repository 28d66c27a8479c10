#![no_main]
//! Forward messages: finding their end, and reading their records.

mod check;

use libfuzzer_sys::fuzz_target;
use logspool_server::decoders::forward::{self, ChunkId, ScannedFrame, ForwardLimits, RecordFlow, ReadProgress, Scanner};

fuzz_target!(|bytes: &[u8]| {
    let limits = ForwardLimits { frame: 1 << 20, expanded_entry: 1 << 20, items: 1000 };
    let whole = Scanner::default().frame(bytes, &limits);
    let mut scanner = Scanner::default();
    let in_pieces = (0..bytes.len()).step_by(7).chain([bytes.len()]).map(|end| scanner.frame(&bytes[..end], &limits));
    let in_pieces = in_pieces.into_iter().find(|found| !matches!(found, Ok(ScannedFrame::Incomplete)));
    match (&whole, &in_pieces) {
        (Ok(ScannedFrame::Complete { length }), Some(Ok(found))) => assert_eq!(&ScannedFrame::Complete { length: *length }, found),
        (Ok(ScannedFrame::Incomplete), None) | (Err(_), Some(Err(_))) => {}
        _ => panic!("{whole:?} at once, {in_pieces:?} in pieces"),
    }

    let Ok(message) = forward::read(bytes, &limits) else { return };
    let (mut buffer, mut whole_count, mut count) = (Vec::new(), 0, 0);
    let at_once = message.records(&mut buffer, limits.expanded_entry, 0).read(|record| {
        check::record(record);
        whole_count += 1;
        RecordFlow::Continue
    });
    let mut in_parts = message.records(&mut buffer, limits.expanded_entry, 0);
    let paused = loop {
        match in_parts.read(|_| {
            count += 1;
            RecordFlow::Pause
        }) {
            Ok(ReadProgress::Paused) => {}
            ended => break ended,
        }
    };
    assert_eq!((whole_count, at_once.is_ok()), (count, paused.is_ok()));
    // A message that is read completely ends where the scanner found its end.
    assert!(matches!(whole, Ok(ScannedFrame::Complete { length }) if length == bytes.len()));
    assert_eq!(message.chunk.is_some(), message.ack().is_some());
    if let Some(id) = message.chunk.as_deref()
        && let Some(parsed) = ChunkId::parse(id)
    {
        assert_eq!(id, parsed.to_string());
    }
});
