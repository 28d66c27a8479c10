//! The signal with which the service tells its tasks that it ends.

use tokio::sync::watch;
use tokio::time::Instant;

/// The signal that the service ends, with the deadline for reading data that senders have sent.
pub type StopSignal = watch::Receiver<Option<Instant>>;

/// Waits for the end of the service.
pub async fn stopped(stop: &mut StopSignal) {
    // An error means that the sender of the signal was dropped, so the service has ended.
    drop(stop.wait_for(Option::is_some).await);
}

/// Waits until `until`. If it is `None`, waits for ever.
pub async fn sleep_until(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}
