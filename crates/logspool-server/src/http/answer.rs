//! The path of an answer from a query thread to its client.
//!
//! The thread never waits for the client. If the client does not read, the answer pauses. It continues at the same
//! place after the client has read some of it. An answer that is not read in time is ended, because the store keeps old
//! data for it.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::context::Context;
use super::problem::Problem;
use crate::cancel::Cancel;
use crate::peer::Peer;
use crate::questions::{Phase, QueryPlace, Turn};
use crate::stop::{Stop, ended};
use crate::stores::{Progress, UNREAD};

/// Size of a piece of an answer that is sent at once, in bytes.
const PIECE_BYTES: usize = 32 * 1024;

/// Bytes that may wait for the client before the answer pauses; one row may exceed it.
///
/// Chosen: an answer of some hundred records is complete without a pause. With all places taken it is 8 MiB.
const WAITING_BYTES: usize = 128 * 1024;

/// Interval between checks that an answer is read in time.
const LOOK: Duration = Duration::from_millis(250);

/// How long an answer may be unread while the service ends.
const LAST_LOOK: Duration = Duration::from_millis(500);

/// Writes a part of an answer: to its end, or until [`Pieces::are_full`].
pub(super) type Produce = Box<dyn FnMut(&Cancel, &mut Pieces) -> Result<Progress, Problem> + Send>;

/// Starts a query, and waits for its first piece, which shows whether the store can answer at all.
pub(super) async fn ask(context: &Context, peer: &Peer, mut produce: Produce) -> Result<Body, Problem> {
    let queue = Arc::new(Queue::new());
    let mut pieces = Pieces { queue: queue.clone(), piece: Vec::new() };
    let job = Box::new(move |cancel: &Cancel| {
        pieces.queue.lock().began.get_or_insert_with(Instant::now);
        match produce(cancel, &mut pieces) {
            Ok(Progress::Paused) => return Turn::Paused,
            Ok(Progress::Ended) => {
                pieces.push();
                pieces.queue.end(Ok(()));
            }
            Err(problem) => pieces.queue.end(Err(problem)),
        }
        Turn::Complete
    });
    let place = context.questions.ask(peer.origin(), job).map_err(|refusal| {
        let why = format!("no place for another query: {refusal}; ask again in a second (limits.queries)");
        Problem(StatusCode::TOO_MANY_REQUESTS, why)
    })?;
    let place = Arc::new(Mutex::new(Some(place)));
    let watch = tokio::spawn(watch(queue.clone(), place.clone(), context.limits.query_time(), context.stop.clone()));
    let mut reading = Reading { queue, place, watch: watch.abort_handle() };
    let Some(first) = reading.next().await? else { return Ok(Body::empty()) };
    let pieces = futures_util::stream::unfold((Some(first), Some(reading)), |(first, reading)| async move {
        let mut reading = reading?;
        if let Some(piece) = first {
            return Some((Ok(piece), (None, Some(reading))));
        }
        match reading.next().await {
            Ok(piece) => Some((Ok(piece?), (None, Some(reading)))),
            // An interrupted answer must not look complete.
            Err(Problem(_, why)) => Some((Err(io::Error::other(why)), (None, None))),
        }
    });
    Ok(Body::from_stream(pieces))
}

/// The pieces that wait for the client.
struct Queue {
    waiting: Mutex<WaitingAnswer>,
    came: Notify,
}

struct WaitingAnswer {
    pieces: VecDeque<Bytes>,
    bytes: usize,
    end: Option<Result<(), Problem>>,
    /// True after the end, also when the reader has taken the result.
    has_ended: bool,
    /// Start of the first turn.
    began: Option<Instant>,
    /// Time when the client last took a piece.
    taken: Instant,
}

impl Queue {
    fn new() -> Self {
        let waiting = WaitingAnswer {
            pieces: VecDeque::new(),
            bytes: 0,
            end: None,
            has_ended: false,
            began: None,
            taken: Instant::now(),
        };
        Self { waiting: Mutex::new(waiting), came: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, WaitingAnswer> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the queue. Only the first call sets the result.
    fn end(&self, end: Result<(), Problem>) {
        let mut waiting = self.lock();
        if !std::mem::replace(&mut waiting.has_ended, true) {
            waiting.end = Some(end);
        }
        drop(waiting);
        self.came.notify_one();
    }
}

/// Writes an answer into its queue.
pub(super) struct Pieces {
    queue: Arc<Queue>,
    piece: Vec<u8>,
}

impl Pieces {
    /// True if the client has to read before more is written.
    pub fn are_full(&self) -> bool {
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
        self.queue.came.notify_one();
    }
}

impl Write for Pieces {
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

impl Drop for Pieces {
    fn drop(&mut self) {
        // Has no effect if the answer has ended normally.
        self.queue.end(Err(Problem(StatusCode::INTERNAL_SERVER_ERROR, "the query failed".to_owned())));
    }
}

/// The client's side. Dropping it cancels the query.
struct Reading {
    queue: Arc<Queue>,
    place: Arc<Mutex<Option<QueryPlace>>>,
    watch: AbortHandle,
}

impl Reading {
    /// The next piece. `None`: the answer is complete.
    async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        loop {
            {
                let mut waiting = self.queue.lock();
                if let Some(piece) = waiting.pieces.pop_front() {
                    waiting.bytes -= piece.len();
                    waiting.taken = Instant::now();
                    let has_room = waiting.bytes < WAITING_BYTES / 2;
                    drop(waiting);
                    if has_room && let Some(place) = &*lock(&self.place) {
                        place.go_on();
                    }
                    return Ok(Some(piece));
                }
                if let Some(end) = waiting.end.take() {
                    return end.map(|()| None);
                }
            }
            self.queue.came.notified().await;
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.watch.abort();
        drop(lock(&self.place).take());
    }
}

fn lock(place: &Mutex<Option<QueryPlace>>) -> MutexGuard<'_, Option<QueryPlace>> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends an answer that waits too long or is not read in time. This frees its place, also while the connection stays
/// open.
async fn watch(queue: Arc<Queue>, place: Arc<Mutex<Option<QueryPlace>>>, time: Duration, mut stop: Stop) {
    let asked = Instant::now();
    let mut is_ending = false;
    let problem = loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = ended(&mut stop), if !is_ending => is_ending = true,
        }
        let Some(phase) = lock(&place).as_ref().map(QueryPlace::phase) else { return };
        let (began, taken) = {
            let waiting = queue.lock();
            (waiting.began.unwrap_or(asked), waiting.taken)
        };
        match phase {
            Phase::Waiting if is_ending => {
                break Problem(StatusCode::SERVICE_UNAVAILABLE, "the service ends".to_owned());
            }
            Phase::Waiting if asked.elapsed() > time => {
                let why = format!("other queries took all of {time:?}; ask again later (limits.query_seconds)");
                break Problem(StatusCode::TOO_MANY_REQUESTS, why);
            }
            // The store checks its own time limit.
            Phase::Waiting | Phase::Running => {}
            // The store keeps old data for a paused answer. So the time is limited even if the client reads some of it.
            Phase::Paused if began.elapsed() > time => break unread(),
            Phase::Complete if taken.max(began).elapsed() > time => break unread(),
            Phase::Paused | Phase::Complete if is_ending && taken.max(began).elapsed() > LAST_LOOK => break unread(),
            Phase::Paused | Phase::Complete => {}
        }
    };
    {
        let mut waiting = queue.lock();
        waiting.pieces.clear();
        waiting.bytes = 0;
        // Set the error also for a complete answer: the pieces that were cleared are missing.
        (waiting.end, waiting.has_ended) = (Some(Err(problem)), true);
    }
    queue.came.notify_one();
    drop(lock(&place).take());
}

fn unread() -> Problem {
    Problem(StatusCode::SERVICE_UNAVAILABLE, UNREAD.to_owned())
}

#[cfg(test)]
impl Pieces {
    /// Pieces of an answer that is not read.
    pub fn unread() -> Self {
        Self { queue: Arc::new(Queue::new()), piece: Vec::new() }
    }

    /// The bytes written.
    pub fn take(mut self) -> Vec<u8> {
        self.push();
        self.queue.lock().pieces.iter().flatten().copied().collect()
    }
}
