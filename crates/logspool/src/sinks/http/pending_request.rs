//! A request on its way. It has a thread of its own, so that the writer of the sink never waits for an answer: a fork,
//! a flush and the end of the program do not wait for a slow receiver.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use logspool_sys::threads::spawn;

use super::{HttpAnswer, HttpClient};

type Outcome = io::Result<HttpAnswer>;

/// A request whose answer arrives later.
#[derive(Debug, Clone, Default)]
pub struct PendingRequest {
    shared: Arc<(Mutex<Option<Outcome>>, Condvar)>,
}

impl PendingRequest {
    /// Sends a request.
    pub fn start(client: Arc<HttpClient>, body: Vec<u8>, content_type: &'static str, answer_bytes: u64) -> Self {
        let pending = Self::default();
        let shared = pending.shared.clone();
        let is_started = spawn("logspool-http", move || {
            let post = AssertUnwindSafe(|| client.post(&body, content_type, answer_bytes));
            let outcome = catch_unwind(post).unwrap_or_else(|_| Err(io::Error::other("the HTTP client failed: a bug")));
            *shared.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
            shared.1.notify_all();
        });
        if !is_started {
            *pending.shared.0.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(Err(io::Error::other("no thread could be started for the request")));
        }
        pending
    }

    /// The outcome, if it has arrived. Returned once.
    pub fn outcome(&self) -> Option<Outcome> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Waits for the outcome, at most for `longest`.
    pub fn wait(&self, longest: Duration) {
        let outcome = self.shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.shared.1.wait_timeout_while(outcome, longest, |outcome| outcome.is_none());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}
