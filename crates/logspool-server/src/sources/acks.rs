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
    /// The answer if it is committed; `None` for none.
    pub ack: Option<Vec<u8>>,
    /// The answer if it is not. The connection is closed after it in any case.
    pub refusal: Option<Vec<u8>>,
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
    while let Some(Waiting { ack, refusal, outcome }) = waiting.recv().await {
        // A store that has ended without a word refuses, too.
        let is_committed = matches!(outcome.await, Ok(Outcome::Committed));
        let Some(answer) = (if is_committed { ack } else { refusal }) else {
            if is_committed { continue } else { return Err(End::Refused) }
        };
        let written = timeout(most, async {
            to.write_all(&answer).await?;
            to.flush().await
        });
        written.await.map_err(|_| End::Deaf)??;
        if !is_committed {
            return Err(End::Refused);
        }
    }
    // The sender may still send, but its data is no longer read.
    drop(timeout(most, to.shutdown()).await);
    Ok(())
}
