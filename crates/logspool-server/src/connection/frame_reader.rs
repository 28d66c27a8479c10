//! Turns frames into records of a batch.
//!
//! A frame that its decoder cannot read becomes a record with the reason and the whole frame. The frame is
//! counted, and the connection continues. A query for the logger `logspool.undecoded` finds the record.
//!
//! Several tiny unreadable frames in a row become a single record with their number, if the frames are equal or many.
//! As separate records they would take a hundred times as many bytes as were sent.

use std::borrow::Cow;
use std::time::Instant;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use chrono::{DateTime, FixedOffset, Local, SecondsFormat};

use crate::batch::{Arrival, Batch};
use crate::budget::{Budget, Reservation};
use crate::clock::rfc3339;
use crate::connection::line_joiner::{JoinedLine, LineJoiner};
use crate::connection::protocol::{FrameContent, FrameFormat, Protocol, TrailingSpace};
use crate::decoders::zone::Zone;
use crate::decoders::{json_line, json_list};
use crate::intake::Intake;
use crate::metrics::{Metrics, TotalCounter};
use crate::origin::Origin;
use crate::peer::Peer;
use crate::record::{LinePart, Record};
use crate::value::Value;

/// The logger of records about unreadable frames.
pub const UNDECODED_LOGGER: &str = "logspool.undecoded";

/// A record whose time is later than its arrival by more than this gets the time of arrival. Chosen: a day is more than
/// a wrong zone explains, and such a record would be the first of every list until its time comes.
const FAR_AHEAD_NS: i64 = 86_400_000_000_000;

/// The field with the time that the sender gave, if that time is far in the future.
const SENT_TIME: &str = "sent_time";

/// Number of bytes of a frame that are shown as text if the frame is kept as base64.
const SHOWN_BYTES: usize = 256;

/// Frames with fewer bytes than this are tiny. Chosen: a line of text that was sent to the wrong port is usually
/// longer, and gets its own record.
const TINY_BYTES: usize = 32;

/// Number of different tiny frames in a row that get their own records. Chosen: enough to see what a peer sends.
const MAX_ROW_RECORDS: usize = 8;

/// Maximum number of values of a list that are decoded as one frame. Chosen: the memory of their records is reserved
/// only afterwards.
const MAX_VALUES: usize = 1000;

/// Bytes of open lines that a connection may keep without room in the budget. Chosen: as many as it may keep of a
/// frame.
const FREE_BYTES: usize = 64 * 1024;

/// Reads the frames of one peer into batches.
#[derive(Debug)]
pub struct FrameReader<'a> {
    protocol: &'static Protocol,
    peer: Peer,
    host: String,
    metrics: &'a Metrics,
    frames: TotalCounter,
    arrived: DateTime<FixedOffset>,
    batch: Batch,
    /// The lines whose last parts are missing.
    lines: LineJoiner,
    /// Bytes of the lines that were open at the last [`Self::take_open`].
    kept_bytes: usize,
    /// The room for these lines.
    room: Option<Reservation>,
    /// The last unreadable frame. Its record is not written yet, because tiny frames directly after it may be counted
    /// with it.
    run: Option<RejectedRun>,
    /// Number of unreadable frames since the last [`Self::take`].
    rejected: usize,
    /// Number of records about unreadable frames since the last [`Self::take`].
    undecoded: usize,
    /// Number of records about unreadable frames since the last other record.
    in_a_row: usize,
}

/// An unreadable frame, together with the number of tiny unreadable frames directly after it.
#[derive(Debug)]
struct RejectedRun {
    why: String,
    frame: Vec<u8>,
    frames: i64,
}

impl<'a> FrameReader<'a> {
    /// Creates a reader for the frames of one peer.
    pub fn new(protocol: &'static Protocol, peer: Peer, metrics: &'a Metrics) -> Self {
        let frames = metrics.frames(protocol.name);
        let arrived = now_at(&peer);
        let (host, batch) = (peer.host(), Batch::default());
        Self {
            protocol,
            host,
            peer,
            metrics,
            frames,
            arrived,
            batch,
            lines: LineJoiner::default(),
            kept_bytes: 0,
            room: None,
            run: None,
            rejected: 0,
            undecoded: 0,
            in_a_row: 0,
        }
    }

    /// The protocol of the frames.
    pub fn protocol(&self) -> &'static Protocol {
        self.protocol
    }

    /// The origin of the frames.
    pub fn origin(&self) -> Origin {
        self.peer.origin()
    }

    /// Sets the peer that sent the next frames.
    pub fn set_peer(&mut self, peer: Peer) {
        if self.peer != peer {
            self.end_run();
            self.end_lines();
            self.host = peer.host();
            self.peer = peer;
        }
    }

    /// Sets the time of arrival of the next frames to now.
    pub fn mark_arrival(&mut self) {
        self.arrived = now_at(&self.peer);
    }

    /// Decodes a frame, and adds its record to the batch. White space between frames is ignored.
    pub fn read(&mut self, frame: &[u8]) {
        // A protocol with sessions decodes its records itself.
        if let Some(frames) = self.protocol.frame_format() {
            self.read_with(&frames, frame);
        }
    }

    /// Decodes a frame with the functions in `frames`.
    pub fn read_with(&mut self, frames: &FrameFormat, frame: &[u8]) {
        let frame = match frames.trailing_space {
            TrailingSpace::Trimmed if frames.content != FrameContent::Text => frame.trim_ascii_end(),
            _ => frame,
        };
        if frame.trim_ascii_end().is_empty() && frames.trailing_space == TrailingSpace::Trimmed {
            return;
        }
        if frames.content == FrameContent::Text
            && json_list::begins(frame) == Some(true)
            && self.read_pieces(frames, &values(frame))
        {
            return;
        }
        self.frames.add(1);
        match (frames.read)(frame, self.arrived) {
            Ok(record) => self.push(&record),
            Err(why) if !self.read_parts(frames, frame) => self.reject_frame(frame, why),
            Err(_) => {}
        }
    }

    /// Reads an unreadable frame of JSON line by line: a line that is cut off may hold the lines after it. Or value by
    /// value, if it is the rest of a list. Returns false if the frame has no parts that can be read alone; then it has
    /// no effect.
    fn read_parts(&mut self, frames: &FrameFormat, frame: &[u8]) -> bool {
        if frames.content != FrameContent::Json {
            return false;
        }
        let lines: Vec<_> = frame.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).collect();
        let lines: Vec<_> = lines.into_iter().filter(|line| !line.is_empty()).collect();
        if lines.len() > 1 {
            return self.read_pieces(frames, &lines);
        }
        // The list has no end, as its rest.
        let list = [b"[", frame].concat();
        let pieces = if frame.starts_with(b"{") { values(&list) } else { Vec::new() };
        pieces.len() > 1 && self.read_pieces(frames, &pieces)
    }

    /// Reads each piece of a frame. Returns false, without an effect, if no piece is readable, or surely a line of
    /// text.
    fn read_pieces(&mut self, frames: &FrameFormat, pieces: &[&[u8]]) -> bool {
        let is_text = |first: &u8| first.is_ascii_alphabetic() && !b"tfnNI".contains(first);
        let is_alone = |piece: &&[u8]| match frames.content {
            FrameContent::Text => json_line::object(piece).is_ok(),
            _ => piece.first().is_some_and(is_text) || (frames.read)(piece, self.arrived).is_ok(),
        };
        if !pieces.iter().any(is_alone) {
            return false;
        }
        for piece in pieces {
            match (frames.read)(piece, self.arrived) {
                Ok(record) => self.push(&record),
                Err(why) => self.reject_frame(piece, why),
            }
        }
        true
    }

    /// Adds a record. Parts of a line are added as one record, after the last one.
    pub fn push(&mut self, record: &Record<'_>) {
        self.end_run();
        self.in_a_row = 0;
        if record.part == LinePart::Whole {
            return self.append(record);
        }
        match self.lines.add(record, Instant::now()) {
            JoinedLine::Other => self.append(record),
            JoinedLine::Ready(records) => records.iter().for_each(|record| self.append(record)),
        }
    }

    fn append(&mut self, record: &Record<'_>) {
        let time_ns = self.arrived.timestamp_nanos_opt().unwrap_or_default();
        let arrival = Arrival { time_ns, host: &self.host };
        let in_zone = self.peer.zone().filter(|_| record.lacks_zone).zip(record.time_ns);
        let in_zone = in_zone.map(|(zone, local_ns)| zone.to_utc(local_ns));
        match in_zone.or(record.time_ns).filter(|time| time.saturating_sub(time_ns) > FAR_AHEAD_NS) {
            None => {
                self.batch.push(record, arrival);
                in_zone.into_iter().for_each(|time| self.batch.set_last_time(time));
            }
            Some(sent) => self.batch.push(&with_sent_time(record, sent), arrival),
        }
        // The decoder guessed the scale of the number. The option of the listener replaces the guess.
        if let Some(level) = record.sent_level.and_then(|number| self.peer.levels()?.level(number)) {
            self.batch.set_last_level(level);
        }
    }

    /// Counts a frame that the caller decodes itself.
    pub fn count_frame(&self) {
        self.frames.add(1);
    }

    /// Adds a record about an unreadable frame, with the reason `why`.
    pub fn reject(&mut self, frame: &[u8], why: &str) {
        self.reject_records(frame, why, None);
    }

    /// Like [`Self::reject`]. `records` is the number of records that the frame still holds, if the sender gives it.
    pub fn reject_records(&mut self, frame: &[u8], why: &str, records: Option<u64>) {
        self.end_run();
        self.rejected += 1;
        self.append_undecoded(frame, why, 1, records);
    }

    /// Like [`Self::reject`], but tiny unreadable frames directly after this one may be counted in the same record.
    fn reject_frame(&mut self, frame: &[u8], why: String) {
        self.rejected += 1;
        match &mut self.run {
            Some(run) if frame.len() < TINY_BYTES && (frame == run.frame || self.in_a_row + 1 >= MAX_ROW_RECORDS) => {
                run.frames += 1;
            }
            _ if frame.len() < TINY_BYTES => {
                self.end_run();
                self.run = Some(RejectedRun { why, frame: frame.to_vec(), frames: 1 });
            }
            _ => {
                self.end_run();
                self.append_undecoded(frame, &why, 1, None);
            }
        }
    }

    fn end_run(&mut self) {
        if let Some(RejectedRun { why, frame, frames }) = self.run.take() {
            self.append_undecoded(&frame, &why, frames, None);
        }
    }

    fn append_undecoded(&mut self, frame: &[u8], why: &str, frames: i64, records: Option<u64>) {
        self.metrics.reject(self.protocol.name, frames.unsigned_abs());
        let mut fields = kept_frame(frame);
        let mut count = |name, number| fields.push((Cow::Borrowed(name), Value::Int(number)));
        if frames > 1 {
            count("frames", frames);
        }
        if let Some(records) = records {
            count("records", i64::try_from(records).unwrap_or(i64::MAX));
        }
        let (protocol, peer) = (self.protocol.name, self.peer.name());
        fields.push((Cow::Borrowed("protocol"), Value::text(protocol)));
        fields.push((Cow::Borrowed("reason"), Value::text(general(why))));
        let record = Record {
            level: 40,
            logger: Cow::Borrowed(UNDECODED_LOGGER),
            message: Cow::Owned(format!("cannot read a {protocol} frame from {peer}: {why}")),
            fields,
            ..Record::default()
        };
        self.append(&record);
        self.undecoded += 1;
        self.in_a_row += 1;
    }

    /// Number of bytes of memory that the records of the batch use so far.
    pub fn used_bytes(&self) -> usize {
        self.batch.used_bytes() + self.lines.bytes().saturating_sub(self.kept_bytes)
    }

    /// True if parts of a line wait for its last part.
    pub fn has_open_lines(&self) -> bool {
        self.lines.is_open()
    }

    /// Number of records and unreadable frames in the batch so far.
    pub fn values(&self) -> usize {
        self.batch.len() - self.undecoded + self.rejected
    }

    /// Returns the records read since the last call as a batch. Lines without their last parts are in it, too.
    pub fn take(&mut self) -> Batch {
        self.end_lines();
        (self.kept_bytes, self.room) = (0, None);
        self.take_batch()
    }

    /// As [`Self::take`], but keeps lines without their last parts, if there is memory for them. For senders that get
    /// no ack.
    pub fn take_open(&mut self, budget: &Budget) -> Batch {
        for record in self.lines.expire(Instant::now()) {
            self.append(&record);
        }
        let bytes = self.lines.bytes();
        if bytes > FREE_BYTES {
            let origin = self.origin();
            let has_room =
                self.room.as_mut().is_some_and(|room| room.fits(bytes) || room.try_grow(bytes - room.bytes()));
            if !has_room {
                self.room = None;
                self.room = budget.try_for_open_lines(origin, bytes);
            }
            if self.room.is_none() {
                return self.take();
            }
        } else {
            self.room = None;
        }
        self.kept_bytes = bytes;
        self.take_batch()
    }

    /// Hands over the parts of lines that are not finished.
    pub async fn store_open_lines(&mut self, intake: &Intake) {
        if self.has_open_lines() {
            let batch = self.take();
            let room = intake.room_for(self.origin(), &batch).await;
            intake.submit_unacked(batch, room).await;
        }
    }

    fn end_lines(&mut self) {
        for record in self.lines.end() {
            self.append(&record);
        }
    }

    fn take_batch(&mut self) -> Batch {
        self.end_run();
        (self.rejected, self.undecoded) = (0, 0);
        let mut batch = std::mem::take(&mut self.batch);
        batch.shrink_to_fit();
        batch
    }

    /// Drops the records read since the last [`Self::take`], and returns their number.
    pub fn discard(&mut self) -> usize {
        self.take().len()
    }

    /// Returns the number of unreadable frames and the number of records about them, both since the last
    /// [`Self::take`].
    pub fn rejected(&mut self) -> (usize, usize) {
        self.end_run();
        (self.rejected, self.undecoded)
    }
}

/// The current time. Its offset is that of the peer's zone or of this machine, for times of syslog that name no zone.
fn now_at(peer: &Peer) -> DateTime<FixedOffset> {
    peer.zone().map_or_else(|| Local::now().fixed_offset(), Zone::now)
}

/// The values of a list; none if there are too many.
fn values(list: &[u8]) -> Vec<&[u8]> {
    let mut values = Vec::new();
    let read = json_list::read(list, |value| {
        if values.len() <= MAX_VALUES {
            values.push(value);
        }
    });
    if read.is_ok() && values.len() <= MAX_VALUES { values } else { Vec::new() }
}

/// The record without its time, which becomes a field.
fn with_sent_time<'a>(record: &Record<'a>, sent_ns: i64) -> Record<'a> {
    let mut record = Record { time_ns: None, ..record.clone() };
    record.fields.push((Cow::Borrowed(SENT_TIME), Value::text(rfc3339(sent_ns, SecondsFormat::AutoSi))));
    record
}

/// The reason without the parts that differ from frame to frame: positions and numbers at its end. So unreadable frames
/// can be counted by reason.
fn general(why: &str) -> &str {
    why.split(" at line ").next().unwrap_or(why)
}

/// The fields that hold a whole frame. A frame that is not text, or that has many control characters, is kept as base64
/// beside its first bytes: a control character takes six bytes of JSON.
fn kept_frame(frame: &[u8]) -> Vec<(Cow<'_, str>, Value<'_>)> {
    let controls = frame.iter().filter(|byte| byte.is_ascii_control()).count();
    let text = std::str::from_utf8(frame).ok().filter(|_| controls <= TINY_BYTES.max(frame.len() / 8));
    let shown = text.map_or_else(|| String::from_utf8_lossy(&frame[..frame.len().min(SHOWN_BYTES)]), Cow::Borrowed);
    let bytes = i64::try_from(frame.len()).unwrap_or(i64::MAX);
    let mut fields =
        vec![(Cow::Borrowed("frame"), Value::Text(shown)), (Cow::Borrowed("frame_bytes"), Value::Int(bytes))];
    if text.is_none() {
        fields.push((Cow::Borrowed("frame_base64"), Value::text(BASE64.encode(frame))));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Row;
    use crate::decoders::levels::Scale;
    use crate::protocols::json::JSON;
    use crate::protocols::pickle::PICKLE;
    use crate::protocols::syslog::SYSLOG;
    use crate::protocols::text::TEXT;

    fn read(protocol: &'static Protocol, frames: &[&[u8]]) -> Batch {
        let metrics = Metrics::default();
        let mut reader = FrameReader::new(protocol, Peer::socket(([127, 0, 0, 1], 7).into()), &metrics);
        for frame in frames {
            reader.read(frame);
        }
        reader.take()
    }

    /// The fields before the protocol and the reason.
    fn about_frame(fields: Option<&str>) -> &str {
        fields.and_then(|fields| fields.split(",\"protocol\":").next()).unwrap_or_default()
    }

    #[test]
    fn an_unreadable_frame_becomes_a_record_with_the_reason() {
        let batch = read(&JSON, &[b"{\"message\":\"good\"}", b"{bad}\r", b"\r"]);

        assert_eq!(2, batch.len());
        assert_eq!("good", batch.row(0).unwrap().message);
        let undecoded = batch.row(1).unwrap();
        assert_eq!((40, UNDECODED_LOGGER), (undecoded.level, undecoded.logger));
        assert!(undecoded.message.starts_with("cannot read a json frame from 127.0.0.1:7: the line is not JSON"));
        assert_eq!(
            Some(
                r#"{"frame":"{bad}","frame_bytes":5,"protocol":"json","reason":"the line is not JSON: key must be a string"}"#
            ),
            undecoded.fields
        );
        assert_eq!(Some("127.0.0.1"), undecoded.host);
    }

    #[test]
    fn times_without_a_zone_are_in_the_zone_of_the_listener() {
        let metrics = Metrics::default();
        let read = |protocol, frame: &str, zone| {
            let peer = Peer::socket(([127, 0, 0, 1], 7).into()).with_zone(Zone::by_name(zone));
            let mut reader = FrameReader::new(protocol, peer, &metrics);
            reader.read(frame.as_bytes());
            rfc3339(reader.take().row(0).unwrap().time_ns, SecondsFormat::AutoSi)
        };
        for (expected, zone, time) in [
            ("2026-01-21T13:13:20Z", "Europe/Berlin", "2026-01-21 14:13:20"),
            ("2026-07-21T12:13:20Z", "Europe/Berlin", "2026-07-21T14:13:20"),
            ("2026-07-21T14:13:20Z", "Europe/Berlin", "2026-07-21T14:13:20Z"),
            ("2026-07-21T08:43:20Z", "+05:30", "21/Jul/2026:14:13:20"),
            ("2026-07-21T14:13:20Z", "no zone", "2026-07-21 14:13:20"),
        ] {
            assert_eq!(expected, read(&JSON, &format!("{{\"time\":\"{time}\"}}"), zone), "{zone} {time}");
        }
        assert_eq!("2026-07-21T08:43:20Z", read(&SYSLOG, "<14>Jul 21 2026 14:13:20 web shop: m", "+05:30"));
        assert_eq!("2026-07-21T14:13:20Z", read(&SYSLOG, "<14>Jul 21 2026 14:13:20 UTC web shop: m", "+05:30"));
    }

    #[test]
    fn a_time_far_in_the_future_is_marked_and_replaced() {
        let now = Local::now().timestamp_nanos_opt().unwrap();
        let hour = 3_600_000_000_000;
        let times = [now - hour, now + 23 * hour, now + 25 * hour, i64::MAX];
        let frames: Vec<_> = times.iter().map(|time| format!("{{\"time_ns\":{time},\"n\":1}}").into_bytes()).collect();
        let batch = read(&JSON, &frames.iter().map(|frame| &frame[..]).collect::<Vec<_>>());

        let rows: Vec<_> = batch.rows().collect();
        for (row, time) in rows[..2].iter().zip(times) {
            assert_eq!((time, Some(r#"{"n":1}"#)), (row.time_ns, row.fields));
        }
        for row in &rows[2..] {
            assert_eq!(row.arrived_ns, row.time_ns);
        }
        assert_eq!(Some(r#"{"n":1,"sent_time":"2262-04-11T23:47:16.854775807Z"}"#), rows[3].fields);
    }

    #[test]
    fn a_frame_that_holds_lines_after_a_cut_one_is_read_line_by_line() {
        let batch = read(&JSON, &[b"{\"a\":[\n{\"message\":\"one\"}\r\n{\"message\":\"two\"}", b"{\"a\":[\n1,\n2}"]);

        let rows: Vec<_> = batch.rows().map(|row| (row.message, row.logger)).collect();
        assert_eq!([("one", ""), ("two", "")], rows[1..3]);
        assert_eq!([UNDECODED_LOGGER; 2], [rows[0].1, rows[3].1]);
        assert_eq!(4, rows.len());
    }

    #[test]
    fn the_rest_of_a_list_and_lines_of_text_are_read_one_by_one() {
        let cases: &[(&'static Protocol, &[u8], &[&str])] = &[
            (&JSON, b"{\"a\":\"x},{\"message\":\"one\"},{\"message\":\"two\"}]", &["", "one", "two"]),
            (&JSON, b"{\"a\":[1,\n  Traceback\n  \"x\"", &["", "", ""]),
            (&TEXT, b"[{\"message\":\"one\"},{\"message\":\"two\"}]", &["one", "two"]),
            (&TEXT, b"[{\"message\":\"one\"}]", &["one"]),
            (&TEXT, b"[{x] text", &["[{x] text"]),
            (&TEXT, b"[2026-11-28] text", &["[2026-11-28] text"]),
        ];
        for (protocol, frame, expected) in cases {
            let batch = read(protocol, &[frame]);
            let message = |row: Row<'_>| if row.logger == UNDECODED_LOGGER { "" } else { row.message }.to_owned();
            assert_eq!(*expected, batch.rows().map(message).collect::<Vec<_>>(), "{}", String::from_utf8_lossy(frame));
        }
    }

    #[test]
    fn an_empty_pickle_becomes_an_error_record() {
        assert_eq!(UNDECODED_LOGGER, read(&PICKLE, &[b""]).row(0).unwrap().logger);
    }

    #[test]
    fn equal_unreadable_tiny_frames_in_a_row_are_one_record_with_their_number() {
        let long = vec![b'x'; TINY_BYTES];
        let batch = read(&JSON, &[b"{}", b"{}", b"{}", b"{\"message\":\"good\"}", b"y", &long, &long, b"z"]);

        let rows: Vec<_> = batch.rows().map(|row| (row.logger, about_frame(row.fields))).collect();
        assert_eq!((UNDECODED_LOGGER, r#"{"frame":"{}","frame_bytes":2,"frames":3"#), rows[0]);
        assert_eq!(("", ""), rows[1]);
        assert_eq!((UNDECODED_LOGGER, r#"{"frame":"y","frame_bytes":1"#), rows[2]);
        let long = String::from_utf8(long).unwrap();
        assert_eq!(format!(r#"{{"frame":"{long}","frame_bytes":32"#), rows[3].1);
        assert_eq!(r#"{"frame":"z","frame_bytes":1"#, rows[5].1);
        assert_eq!(6, rows.len());
    }

    #[test]
    fn the_first_of_different_tiny_frames_in_a_row_are_records() {
        let frames: Vec<_> = (0..100).map(|number: u8| [b'x', number]).collect();
        let frames: Vec<&[u8]> = frames.iter().map(<[u8; 2]>::as_slice).collect();
        let batch = read(&PICKLE, &frames);

        assert_eq!(MAX_ROW_RECORDS, batch.len());
        assert!(about_frame(batch.row(MAX_ROW_RECORDS - 1).unwrap().fields).ends_with(r#","frames":93"#));
    }

    #[test]
    fn an_unreadable_frame_is_kept_whole() {
        let text = vec![b'x'; 50_000];
        let fields = |frame| match &kept_frame(frame)[..] {
            [(_, Value::Text(shown)), (_, Value::Int(_)), (name, Value::Text(whole))] => {
                (shown.len(), format!("{name} {whole}"))
            }
            [(_, Value::Text(shown)), _] => (shown.len(), String::new()),
            other => panic!("{other:?}"),
        };

        assert_eq!((50_000, String::new()), fields(&text));
        assert_eq!((4, "frame_base64 Yf8=".to_owned()), fields(b"a\xFF"));
        let zeros = fields(&[0; 3_000]);
        assert_eq!((SHOWN_BYTES, 4_013), (zeros.0, zeros.1.len()));
    }

    #[test]
    fn the_scale_of_level_numbers_can_be_set_for_a_listener() {
        let line = br#"{"message":"m","level":30}"#;
        for (levels, expected) in [(None, 30), (Some(Scale::Pino), 20), (Some(Scale::Python), 30)] {
            let metrics = Metrics::default();
            let peer = Peer::socket(([127, 0, 0, 1], 7).into()).with_levels(levels);
            let mut reader = FrameReader::new(&JSON, peer, &metrics);
            reader.read(line);
            reader.read(br#"{"message":"m","level":"error"}"#);

            let rows: Vec<_> = reader.take().rows().map(|row| row.level).collect();
            assert_eq!(vec![expected, 40], rows, "{levels:?}");
        }
    }

    #[test]
    fn gelf_is_recognised_by_its_keys() {
        let batch = read(
            &JSON,
            &[br#"{"version":"1.1","host":"h","short_message":"s","level":3,"_user":1}"#, br#"{"msg":"m","host":"h"}"#],
        );

        let rows: Vec<_> = batch.rows().map(|row| (row.message, row.level, row.fields)).collect();
        assert_eq!(vec![("s", 40, Some("{\"user\":1}")), ("m", 0, None)], rows);
    }
}
