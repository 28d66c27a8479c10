//! Answers to senders that wait for them: each is sent when every store has committed the records that it is for.

use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::shared::End;
use crate::delivery::Outcome;

/// Batches of a connection that wait for their commit. More are not read: a sender has far fewer in flight.
pub const WAITING: usize = 256;

/// A batch that waits for its commit.
#[derive(Debug)]
pub struct Waiting {
    /// The answer if it is committed; `None` for none. If it is not, the connection is closed.
    pub ack: Option<Vec<u8>>,
    /// Says what has become of it.
    pub outcome: oneshot::Receiver<Outcome>,
}

/// Sends acks in the order of the chunks, each when its chunk is committed. Ends when the peer does not read them in
/// time.
pub async fn acknowledge<W: AsyncWrite + Unpin>(
    mut waiting: mpsc::Receiver<Waiting>,
    mut to: W,
    most: Duration,
) -> Result<(), End> {
    while let Some(Waiting { ack, outcome }) = waiting.recv().await {
        match outcome.await {
            Ok(Outcome::Committed) => {}
            // Also if a store has ended without a word.
            _ => return Err(End::Refused),
        }
        let Some(ack) = ack else { continue };
        let written = timeout(most, async {
            to.write_all(&ack).await?;
            to.flush().await
        });
        written.await.map_err(|_| End::Deaf)??;
    }
    // The sender may still send, but its data is no longer read.
    drop(timeout(most, to.shutdown()).await);
    Ok(())
}
