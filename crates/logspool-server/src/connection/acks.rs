//! Sends acks to senders that wait for them. An ack is sent when every store has committed the records that it
//! acknowledges.

use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::shared::ConnectionEnd;
use crate::delivery::Outcome;

/// Maximum number of batches of a connection that wait for their commit. At this number the service stops reading from
/// the connection. A usual sender has far fewer unacknowledged batches.
pub const MAX_PENDING_ACKS: usize = 256;

/// A batch that waits for its commit.
#[derive(Debug)]
pub struct PendingAck {
    /// The ack to send after the commit; `None`: no ack is sent for this batch. If the batch is not committed, the
    /// connection is closed.
    pub ack: Option<Vec<u8>>,
    /// Receives the outcome of the batch.
    pub outcome: oneshot::Receiver<Outcome>,
}

/// Sends acks in the order of the chunks, each when its chunk is committed. If a chunk can never be
/// stored, `dropped_ack` adds the reason to its ack. Returns an error if the peer does not read the acks in time.
pub async fn acknowledge<W: AsyncWrite + Unpin>(
    mut waiting: mpsc::Receiver<PendingAck>,
    mut to: W,
    most: Duration,
    dropped_ack: fn(Vec<u8>, &str) -> Vec<u8>,
) -> Result<(), ConnectionEnd> {
    // Why a batch before the next ack was dropped.
    let mut dropped = None;
    while let Some(PendingAck { ack, outcome }) = waiting.recv().await {
        match outcome.await {
            Ok(Outcome::Committed) => {}
            Ok(Outcome::Dropped(why)) => dropped = Some(why),
            // The batch was refused, or a store ended without reporting an outcome.
            _ => return Err(ConnectionEnd::Refused),
        }
        let Some(mut ack) = ack else { continue };
        if let Some(why) = dropped.take() {
            ack = dropped_ack(ack, why.text());
        }
        let written = timeout(most, async {
            to.write_all(&ack).await?;
            to.flush().await
        });
        written.await.map_err(|_| ConnectionEnd::AnswersUnread)??;
    }
    // Close the sending direction. The peer may still send data, but it is no longer read.
    drop(timeout(most, to.shutdown()).await);
    Ok(())
}
