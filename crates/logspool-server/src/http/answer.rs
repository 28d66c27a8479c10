//! Passes an answer from a query thread to its client.
//!
//! The query thread never waits for the client. If the client does not read, the answer pauses. After the client has
//! read some of it, the answer continues at the same place. An answer that is not read in time is ended, because the
//! store keeps old data for it.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::context::Context;
use super::error::HttpError;
use crate::cancel::CancelToken;
use crate::peer::Peer;
use crate::scheduler::{QueryPhase, QueryPlace, TurnResult};
use crate::stop::{StopSignal, stopped};
use crate::stores::{ANSWER_UNREAD, AnswerProgress};

/// Size of a piece of an answer that is sent at once, in bytes.
const PIECE_BYTES: usize = 32 * 1024;

/// Number of bytes that may wait for the client before the answer pauses. One row may exceed this number.
///
/// Chosen: an answer of some hundred records is completed without a pause. With the maximum number of queries (64), the
/// waiting bytes take 8 MiB.
const WAITING_BYTES: usize = 128 * 1024;

/// Interval between checks whether an answer is read in time.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Maximum time for which an answer may stay unread while the service shuts down.
const SHUTDOWN_READ_TIME: Duration = Duration::from_millis(500);

/// Writes the next part of an answer. It returns at the end of the answer, or when [`AnswerWriter::is_full`] returns
/// true.
pub(super) type WriteAnswer =
    Box<dyn FnMut(&CancelToken, &mut AnswerWriter) -> Result<AnswerProgress, HttpError> + Send>;

/// Starts a query and waits for the first piece of its answer. So an error of the store can still be sent as an HTTP
/// status.
pub(super) async fn start(context: &Context, peer: &Peer, mut produce: WriteAnswer) -> Result<Body, HttpError> {
    let queue = Arc::new(AnswerQueue::new());
    let mut pieces = AnswerWriter { queue: queue.clone(), piece: Vec::new() };
    let job = Box::new(move |cancel: &CancelToken| {
        pieces.queue.lock().began.get_or_insert_with(Instant::now);
        match produce(cancel, &mut pieces) {
            Ok(AnswerProgress::Paused) => return TurnResult::Paused,
            Ok(AnswerProgress::Ended) => {
                pieces.push();
                pieces.queue.end(Ok(()));
            }
            Err(problem) => pieces.queue.end(Err(problem)),
        }
        TurnResult::Complete
    });
    let place = context.scheduler.submit(peer.origin(), job).map_err(|refusal| {
        let why = format!("too many queries: {refusal}; retry in a second (limits.queries)");
        HttpError(StatusCode::TOO_MANY_REQUESTS, why)
    })?;
    let place = Arc::new(Mutex::new(Some(place)));
    let watch =
        tokio::spawn(enforce_limits(queue.clone(), place.clone(), context.limits.query_time(), context.stop.clone()));
    let mut reading = AnswerReader { queue, place, watch: watch.abort_handle() };
    let Some(first) = reading.next().await? else { return Ok(Body::empty()) };
    let pieces = futures_util::stream::unfold((Some(first), Some(reading)), |(first, reading)| async move {
        let mut reading = reading?;
        if let Some(piece) = first {
            return Some((Ok(piece), (None, Some(reading))));
        }
        match reading.next().await {
            Ok(piece) => Some((Ok(piece?), (None, Some(reading)))),
            // Return an error: an interrupted answer must not look complete.
            Err(HttpError(_, why)) => Some((Err(io::Error::other(why)), (None, None))),
        }
    });
    Ok(Body::from_stream(pieces))
}

/// The pieces of an answer that wait for the client.
struct AnswerQueue {
    waiting: Mutex<AnswerState>,
    changed: Notify,
}

struct AnswerState {
    pieces: VecDeque<Bytes>,
    bytes: usize,
    end: Option<Result<(), HttpError>>,
    /// True after the end of the answer. Stays true when the reader has taken `end`.
    has_ended: bool,
    /// Time when the query first ran on a query thread.
    began: Option<Instant>,
    /// Time when the client last took a piece.
    taken: Instant,
}

impl AnswerQueue {
    fn new() -> Self {
        let waiting = AnswerState {
            pieces: VecDeque::new(),
            bytes: 0,
            end: None,
            has_ended: false,
            began: None,
            taken: Instant::now(),
        };
        Self { waiting: Mutex::new(waiting), changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, AnswerState> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the answer. Only the first call sets the result.
    fn end(&self, end: Result<(), HttpError>) {
        let mut waiting = self.lock();
        if !std::mem::replace(&mut waiting.has_ended, true) {
            waiting.end = Some(end);
        }
        drop(waiting);
        self.changed.notify_one();
    }
}

/// Writes an answer into its queue.
pub(super) struct AnswerWriter {
    queue: Arc<AnswerQueue>,
    piece: Vec<u8>,
}

impl AnswerWriter {
    /// True if so many bytes wait that the client has to read some before more are written.
    pub fn is_full(&self) -> bool {
        self.queue.lock().bytes >= WAITING_BYTES
    }

    fn push(&mut self) {
        if self.piece.is_empty() {
            return;
        }
        let piece = Bytes::from(std::mem::take(&mut self.piece));
        let mut waiting = self.queue.lock();
        waiting.bytes += piece.len();
        waiting.pieces.push_back(piece);
        drop(waiting);
        self.queue.changed.notify_one();
    }
}

impl Write for AnswerWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE_BYTES {
            self.push();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.push();
        Ok(())
    }
}

impl Drop for AnswerWriter {
    fn drop(&mut self) {
        // This call has no effect if the answer has already ended.
        self.queue.end(Err(HttpError(StatusCode::INTERNAL_SERVER_ERROR, "the query failed".to_owned())));
    }
}

/// The reading side of an answer queue. Dropping it cancels the query.
struct AnswerReader {
    queue: Arc<AnswerQueue>,
    place: Arc<Mutex<Option<QueryPlace>>>,
    watch: AbortHandle,
}

impl AnswerReader {
    /// The next piece. `None`: the answer is complete.
    async fn next(&mut self) -> Result<Option<Bytes>, HttpError> {
        loop {
            {
                let mut waiting = self.queue.lock();
                if let Some(piece) = waiting.pieces.pop_front() {
                    waiting.bytes -= piece.len();
                    waiting.taken = Instant::now();
                    let has_room = waiting.bytes < WAITING_BYTES / 2;
                    drop(waiting);
                    if has_room && let Some(place) = &*lock(&self.place) {
                        place.resume();
                    }
                    return Ok(Some(piece));
                }
                if let Some(end) = waiting.end.take() {
                    return end.map(|()| None);
                }
            }
            self.queue.changed.notified().await;
        }
    }
}

impl Drop for AnswerReader {
    fn drop(&mut self) {
        self.watch.abort();
        drop(lock(&self.place).take());
    }
}

fn lock(place: &Mutex<Option<QueryPlace>>) -> MutexGuard<'_, Option<QueryPlace>> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends a query that waits too long for its turn, or whose answer is not read in time. This frees its place in the
/// scheduler even if the connection stays open.
async fn enforce_limits(
    queue: Arc<AnswerQueue>,
    place: Arc<Mutex<Option<QueryPlace>>>,
    time: Duration,
    mut stop: StopSignal,
) {
    let asked = Instant::now();
    let mut is_ending = false;
    let problem = loop {
        tokio::select! {
            () = tokio::time::sleep(CHECK_INTERVAL) => {}
            () = stopped(&mut stop), if !is_ending => is_ending = true,
        }
        let Some(phase) = lock(&place).as_ref().map(QueryPlace::phase) else { return };
        let (began, taken) = {
            let waiting = queue.lock();
            (waiting.began.unwrap_or(asked), waiting.taken)
        };
        match phase {
            QueryPhase::Waiting if is_ending => {
                break HttpError(StatusCode::SERVICE_UNAVAILABLE, "the service is shutting down".to_owned());
            }
            QueryPhase::Waiting if asked.elapsed() > time => {
                let why = format!("other queries used all of {time:?}; retry later (limits.query_seconds)");
                break HttpError(StatusCode::TOO_MANY_REQUESTS, why);
            }
            // A running query is stopped by the store, which checks the time limit itself.
            QueryPhase::Waiting | QueryPhase::Running => {}
            // The store keeps old data for a paused answer. So its time is limited even if the client reads slowly.
            QueryPhase::Paused if began.elapsed() > time => break unread(),
            QueryPhase::Complete if taken.max(began).elapsed() > time => break unread(),
            QueryPhase::Paused | QueryPhase::Complete
                if is_ending && taken.max(began).elapsed() > SHUTDOWN_READ_TIME =>
            {
                break unread();
            }
            QueryPhase::Paused | QueryPhase::Complete => {}
        }
    };
    {
        let mut waiting = queue.lock();
        waiting.pieces.clear();
        waiting.bytes = 0;
        // Set the error even if the answer was complete: its last pieces were just cleared.
        (waiting.end, waiting.has_ended) = (Some(Err(problem)), true);
    }
    queue.changed.notify_one();
    drop(lock(&place).take());
}

fn unread() -> HttpError {
    HttpError(StatusCode::SERVICE_UNAVAILABLE, ANSWER_UNREAD.to_owned())
}

#[cfg(test)]
impl AnswerWriter {
    /// Creates a writer for an answer that no client reads.
    pub fn unread() -> Self {
        Self { queue: Arc::new(AnswerQueue::new()), piece: Vec::new() }
    }

    /// Returns the bytes written so far.
    pub fn take(mut self) -> Vec<u8> {
        self.push();
        self.queue.lock().pieces.iter().flatten().copied().collect()
    }
}
