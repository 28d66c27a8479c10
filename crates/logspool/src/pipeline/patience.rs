//! Waits for the places of closed sinks and released routes. They are free when the last records for them are written.

use std::time::{Duration, Instant};

use super::flushing::flush;
use super::outlets::places_become_free;

/// The longest time between two tries. A flush ends earlier if everything is written.
const PAUSE: Duration = Duration::from_millis(100);

/// Pause after a flush: the writers free the places soon after they have answered it.
const AFTER_FLUSH: Duration = Duration::from_micros(200);

/// The time that a definition may wait for a place.
#[derive(Debug)]
pub struct Patience(Instant);

impl Patience {
    /// Begins the time.
    pub fn begin(timeout: Duration) -> Self {
        Self(Instant::now() + timeout)
    }

    /// Waits if a place becomes free, and returns whether another try may find it.
    pub fn waits(&self) -> bool {
        let waits = places_become_free() && Instant::now() < self.0;
        if waits && flush(None, Some(PAUSE)) {
            std::thread::sleep(AFTER_FLUSH);
        }
        waits
    }
}
