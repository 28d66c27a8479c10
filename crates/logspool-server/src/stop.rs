//! The end of the service, as its tasks hear of it.

use tokio::sync::watch;
use tokio::time::Instant;

/// The word that the service ends: up to when what senders have sent is read.
pub type Stop = watch::Receiver<Option<Instant>>;

/// Waits for the end of the service.
pub async fn ended(stop: &mut Stop) {
    // An error says that nobody can end it any more: it has ended.
    drop(stop.wait_for(Option::is_some).await);
}

/// Waits until then; for ever without a time.
pub async fn sleep_until(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}
