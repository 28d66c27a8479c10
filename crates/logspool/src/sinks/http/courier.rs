//! Sends records over HTTP, and confirms them when the receiver has answered.
//!
//! One request is on its way at a time, so records arrive in order. While it is on its way, the next records gather. A
//! request without an answer is repeated, so a receiver can get records twice, unless it recognises them by their
//! numbers.
//!
//! If the receiver refuses a request because of its content, the records are sent in two halves, and so on, until the
//! bad record is alone. That record counts as rejected. Everything else that fails is tried again after a pause.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use logspool_lanes::segment::layout::LEVEL_CLASSES;
use logspool_sys::sleep::sleep_interruptibly;

use super::answer::AnswerVerdict;
use super::parcel::{KeptRecord, Parcel};
use super::pending_request::PendingRequest;
use super::{BatchVerdict, HttpAnswer, HttpClient, HttpFormat, HttpRecord, HttpSettings, RecordOutcome};
use crate::sink::{CarryOutcome, Courier, Lines, NextCarry, Pace, RefusedRecord, Sink, SinkError, Stream};
use logspool_sys::platform::random;

/// Maximum time that a request gathers records. A shorter `flush_interval` limits it further.
///
/// Chosen: a reader of a log does not notice it, and a program that logs steadily makes five requests a second.
const MAX_GATHER_TIME: Duration = Duration::from_millis(200);

/// First and longest pause before the next try. Half of each pause is random, so that not all programs return at once.
/// The longest pause is also the most that `Retry-After` can ask for.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(5);
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// Status of an answer to a request that is too long.
const TOO_LONG: u16 = 413;

/// Maximum time that a single write waits for its answer. After it the caller must try the write again.
const LOCKSTEP_LIMIT: Duration = Duration::from_secs(1);

/// The sink of a format; see the module documentation.
#[derive(Debug)]
pub struct HttpSink {
    format: Box<dyn HttpFormat>,
    client: Arc<HttpClient>,
    batch_bytes: usize,
    batch_records: usize,
    stream: Stream,
    stream_text: String,
    /// Number of the next record that is taken.
    next_number: u64,
    /// Records that are not in a parcel yet.
    gathered: VecDeque<KeptRecord>,
    gathered_bytes: usize,
    /// Since when there are gathered records. Meaningful only while there are some.
    gathers_since: Instant,
    /// For each batch that has not arrived, oldest first, how many of its records have not arrived.
    batches: VecDeque<usize>,
    /// Number of the first of these batches.
    first_batch: u64,
    parcel: Parcel,
    pending: Option<PendingRequest>,
    refused: Vec<(u64, u16)>,
    /// Number of records that were refused in writes, by level class.
    refused_in_writes: [u32; LEVEL_CLASSES],
    /// When the next request may be sent, and the length of the pause after a failure of that request.
    next_try: Instant,
    pause: Duration,
}

impl HttpSink {
    /// Makes a sink. Connects to nothing.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for settings that contradict each other, or the system has no random numbers.
    pub fn open(format: Box<dyn HttpFormat>, settings: &HttpSettings) -> io::Result<Self> {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64);
        let stream = Stream { id: u128::from_ne_bytes(random()?), epoch: epoch.max(1) };
        let now = Instant::now();
        Ok(Self {
            format,
            client: Arc::new(HttpClient::new(settings)?),
            batch_bytes: settings.batch_bytes,
            batch_records: settings.batch_records,
            stream,
            stream_text: text(stream),
            next_number: 1,
            gathered: VecDeque::new(),
            gathered_bytes: 0,
            gathers_since: now,
            batches: VecDeque::new(),
            first_batch: 0,
            parcel: Parcel::default(),
            pending: None,
            refused: Vec::new(),
            refused_in_writes: Default::default(),
            next_try: now,
            pause: FIRST_PAUSE,
        })
    }

    /// When gathered records must be sent.
    fn due(&self, pace: Pace) -> Instant {
        match pace {
            Pace::Hurry => self.gathers_since,
            Pace::Gather(longest) => self.gathers_since + longest.min(MAX_GATHER_TIME),
        }
    }

    /// Puts the next records into a parcel, if they are due.
    fn pack(&mut self, pace: Pace) {
        let is_full = self.gathered_bytes >= self.batch_bytes || self.gathered.len() >= self.batch_records;
        if self.gathered.is_empty() || !(is_full || Instant::now() >= self.due(pace)) {
            return;
        }
        let (mut count, mut bytes) = (0, 0);
        for record in self.gathered.iter().take(self.batch_records) {
            if count > 0 && bytes + record.entry.len() > self.batch_bytes {
                break;
            }
            bytes += record.entry.len();
            count += 1;
        }
        self.gathered_bytes -= bytes;
        self.parcel = Parcel::new(self.gathered.drain(..count).collect());
    }

    fn send(&mut self) {
        let records: Vec<_> =
            self.parcel.group().map(|kept| HttpRecord { entry: &kept.entry, number: kept.number }).collect();
        let body = self.format.encode(&records, &self.stream_text);
        let (content_type, answer_bytes) = (self.format.content_type(), self.format.answer_bytes());
        self.pending = Some(PendingRequest::start(self.client.clone(), body, content_type, answer_bytes));
    }

    /// Does what an answer asks for.
    ///
    /// # Errors
    ///
    /// The reason why records were not accepted. They are tried again, or are among `refused`.
    fn heed(&mut self, answer: &HttpAnswer) -> io::Result<()> {
        match answer.verdict() {
            AnswerVerdict::Accepted => match self.format.judge(answer, self.parcel.group_len()) {
                BatchVerdict::Accepted => {
                    self.settle(|_| RecordOutcome::Accepted);
                    self.pause = FIRST_PAUSE;
                    Ok(())
                }
                BatchVerdict::Each(outcomes, why) => {
                    let outcome = |position: usize| outcomes.get(position).copied().unwrap_or(RecordOutcome::Again);
                    self.settle(outcome);
                    if outcomes.contains(&RecordOutcome::Again) {
                        self.rest(answer.retry_after);
                    } else {
                        self.pause = FIRST_PAUSE;
                    }
                    Err(io::Error::other(why))
                }
                BatchVerdict::Unreadable(why) => {
                    self.rest(answer.retry_after);
                    Err(io::Error::new(io::ErrorKind::InvalidData, why))
                }
            },
            AnswerVerdict::Halve(error) if answer.status != TOO_LONG && !self.format.refuses_by_status() => {
                self.rest(answer.retry_after);
                Err(error)
            }
            AnswerVerdict::Halve(error) => {
                if self.parcel.group_len() > 1 {
                    self.parcel.halve();
                    return Ok(());
                }
                self.settle(|_| RecordOutcome::Refused);
                Err(error)
            }
            AnswerVerdict::Again(error) => {
                self.rest(answer.retry_after);
                Err(error)
            }
        }
    }

    /// Settles the records of the group that was sent.
    fn settle(&mut self, outcome: impl Fn(usize) -> RecordOutcome) {
        let Self { parcel, batches, first_batch, refused, .. } = self;
        parcel.settle(outcome, |record, outcome| {
            if let Some(left) = batches.get_mut((record.batch - *first_batch) as usize) {
                *left -= 1;
            }
            if outcome == RecordOutcome::Refused {
                refused.push((record.batch, record.class));
            }
        });
    }

    /// Removes the batches that have arrived, and notes them in `carried`.
    fn note_arrivals(&mut self, carried: &mut CarryOutcome) {
        while self.batches.front() == Some(&0) {
            self.batches.pop_front();
            let batch = self.first_batch;
            self.first_batch += 1;
            let of_batch = self.refused.extract_if(.., |(number, _)| *number == batch);
            carried.refused.extend(of_batch.map(|(_, class)| RefusedRecord { batch: carried.arrived, class }));
            carried.arrived += 1;
        }
    }

    /// Sends nothing for a while.
    fn rest(&mut self, asked: Option<Duration>) {
        // If the kernel gives no random numbers, the pause is half as long and the same for all programs.
        let chance = u16::from_ne_bytes(random().unwrap_or_default());
        let half = self.pause / 2;
        let pause = half + half * u32::from(chance) / u32::from(u16::MAX);
        self.next_try = Instant::now() + pause.max(asked.unwrap_or_default().min(MAX_RETRY_AFTER));
        self.pause = (self.pause * 2).min(MAX_PAUSE);
    }
}

/// A stream as text, in which no two streams are equal.
fn text(stream: Stream) -> String {
    format!("{:032x}-{:x}", stream.id, stream.epoch)
}

impl Courier for HttpSink {
    fn stream(&self) -> Option<Stream> {
        self.format.is_numbered().then_some(self.stream)
    }

    fn resume(&mut self, stream: Stream) {
        self.stream = stream;
        self.stream_text = text(stream);
    }

    fn number_from(&mut self, number: u64) {
        // Records of a write that is repeated keep their numbers.
        if self.batches.is_empty() {
            self.next_number = number;
        }
    }

    fn has_room(&self) -> bool {
        self.gathered_bytes < self.batch_bytes && self.gathered.len() < self.batch_records
    }

    fn take(&mut self, lines: Lines<'_>) {
        if self.gathered.is_empty() {
            self.gathers_since = Instant::now();
        }
        let batch = self.first_batch + self.batches.len() as u64;
        let mut from = 0;
        for mark in lines.marks {
            let end = mark.end as usize - lines.before;
            let entry = lines.bytes[from..end].to_vec();
            self.gathered_bytes += entry.len();
            self.gathered.push_back(KeptRecord { entry, number: self.next_number, class: mark.class.into(), batch });
            self.next_number += 1;
            from = end;
        }
        self.batches.push_back(lines.marks.len());
    }

    fn carry(&mut self, pace: Pace) -> CarryOutcome {
        let mut carried = CarryOutcome { arrived: 0, error: None, refused: Vec::new(), next: NextCarry::Idle };
        loop {
            if let Some(pending) = &self.pending {
                let Some(outcome) = pending.outcome() else {
                    carried.next = NextCarry::OnAnswer;
                    break;
                };
                self.pending = None;
                let heeded = outcome.inspect_err(|_| self.rest(None)).and_then(|answer| self.heed(&answer));
                if let Err(error) = heeded {
                    carried.error = Some(error);
                }
            }
            self.note_arrivals(&mut carried);
            if self.parcel.is_done() {
                self.pack(pace);
            }
            if self.parcel.is_done() {
                if !self.gathered.is_empty() {
                    carried.next = NextCarry::AtTime(self.due(pace));
                }
                break;
            }
            if Instant::now() < self.next_try {
                carried.next = NextCarry::Unreachable(self.next_try);
                break;
            }
            self.send();
        }
        carried
    }

    fn wait(&self, longest: Duration) {
        match &self.pending {
            Some(pending) => pending.wait(longest),
            None => sleep_interruptibly(longest),
        }
    }
}

/// Sends one batch at a time, for callers that do not use the courier.
impl Sink for HttpSink {
    fn write(&mut self, lines: Lines<'_>) -> Result<usize, SinkError> {
        if self.batches.is_empty() {
            self.take(lines);
        }
        let give_up = Instant::now() + LOCKSTEP_LIMIT;
        loop {
            let carried = self.carry(Pace::Hurry);
            carried.refused.iter().for_each(|record| self.refused_in_writes[usize::from(record.class)] += 1);
            if carried.arrived > 0 {
                return Ok(lines.bytes.len());
            }
            // After a refused record, the next request is on its way already.
            if let (Some(error), NextCarry::Unreachable(_)) = (carried.error, carried.next) {
                return Err(SinkError::Retry(error));
            }
            if Instant::now() >= give_up {
                return Err(SinkError::Retry(io::Error::from_raw_os_error(libc::EAGAIN)));
            }
            match carried.next {
                NextCarry::Unreachable(until) | NextCarry::AtTime(until) => {
                    sleep_interruptibly(until.min(give_up).saturating_duration_since(Instant::now()))
                }
                NextCarry::Idle | NextCarry::OnAnswer => self.wait(Duration::from_millis(50)),
            }
        }
    }

    fn take_refused(&mut self) -> [u32; LEVEL_CLASSES] {
        std::mem::take(&mut self.refused_in_writes)
    }

    fn courier(&mut self) -> Option<&mut dyn Courier> {
        Some(self)
    }
}
