//! Waits for the places of closed loggers and sinks. They are free when the last records for them are written.

use std::time::{Duration, Instant};

use logspool::pipeline;

/// How long a definition waits for a place in all. Chosen: records are written in milliseconds unless a sink stalls.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The longest time between two tries. A flush ends earlier if everything is written.
const PAUSE: Duration = Duration::from_millis(100);

/// The time that one definition may wait.
pub struct Patience(Instant);

impl Patience {
    /// Begins the time.
    pub fn begin() -> Self {
        Self(Instant::now() + TIMEOUT)
    }

    /// Waits, and returns whether another try may find a place.
    pub fn waits(&mut self) -> bool {
        let waits = pipeline::places_become_free() && Instant::now() < self.0;
        if waits && pipeline::flush(None, Some(PAUSE)) {
            // The writers free the places soon after they have answered the flush.
            std::thread::sleep(Duration::from_micros(200));
        }
        waits
    }
}
