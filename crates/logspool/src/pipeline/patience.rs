//! Waits for the places of closed sinks and released routes. They are free when the last records for them are written.

use std::time::{Duration, Instant};

use super::flushing::flush;
use super::outlets::places_become_free;

/// The longest time between two tries. A flush ends earlier if everything is written.
const PAUSE: Duration = Duration::from_millis(100);

/// Pause after a flush: the writers free the places soon after they have answered it.
const AFTER_FLUSH: Duration = Duration::from_micros(200);

/// What became of one attempt to get a place.
#[derive(Debug)]
pub enum PlaceAttempt<T> {
    /// The place, or an error that no wait mends.
    Done(T),
    /// Something changed meanwhile: try again at once.
    Again,
    /// There is no place. The value is the result if none becomes free in time.
    NoPlace(T),
}

/// Whether another attempt follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextAttempt {
    /// Another one follows if a place may become free.
    MayFollow,
    /// The time is over, or no place becomes free.
    None,
}

/// Tries until there is a place, at most for `timeout` as long as places become free.
pub fn until_place<T>(timeout: Duration, mut attempt: impl FnMut(NextAttempt) -> PlaceAttempt<T>) -> T {
    let end = Instant::now() + timeout;
    let mut next = NextAttempt::MayFollow;
    loop {
        match attempt(next) {
            PlaceAttempt::Done(result) => return result,
            PlaceAttempt::Again => {}
            PlaceAttempt::NoPlace(result) if next == NextAttempt::None => return result,
            PlaceAttempt::NoPlace(_) if places_become_free() && Instant::now() < end => {
                if flush(None, Some(PAUSE)) {
                    std::thread::sleep(AFTER_FLUSH);
                }
            }
            PlaceAttempt::NoPlace(_) => next = NextAttempt::None,
        }
    }
}
