//! The sink of a handler. Earlier and later states of the handler share it while they name the same destination.
//!
//! Each record asks several times whether the sink is still there, so its state is one word, which is read without a
//! lock.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use logspool_sys::published::Published;

/// The state of a sink.
#[derive(Clone, Copy)]
pub(super) enum Sink {
    /// Not opened yet.
    None,
    /// Open: the id epoch of the pipeline in which the sink was opened, and the id of the sink.
    Open(u64, u32),
    /// Taken out to be closed: its id epoch and its id, if it was open. The handler has another state now, or no state.
    Gone(Option<(u64, u32)>),
}

/// The sink of a handler, with its state.
#[derive(Default)]
pub(super) struct HandlerSink {
    /// [`UNOPENED`], or the id epoch in the upper half and the id in the lower half; with [`GONE`] once it is taken out.
    word: AtomicU64,
    /// Held while `word` is changed.
    changing: Mutex<()>,
}

/// The word of [`Sink::None`]. 0 is never the number of a pipeline.
const UNOPENED: u64 = 0;

/// The bit of [`Sink::Gone`]. An id epoch takes 31 bits.
const GONE: u64 = 1 << 63;

impl HandlerSink {
    /// The state of the sink.
    pub(super) fn read(&self) -> Sink {
        // Pairs with `publish` in `opened_in` and in `take`.
        sink_of(self.word.observe())
    }

    /// The id of the sink in this id epoch. If the sink is not open in it, `open` opens it and returns the id epoch and
    /// the id.
    ///
    /// # Errors
    ///
    /// Why the sink cannot be opened.
    pub(super) fn opened_in(
        &self,
        id_epoch: u64,
        open: impl FnOnce() -> Result<(u64, u32), String>,
    ) -> Result<u32, String> {
        let known = || match self.read() {
            Sink::Open(opened, id) if opened == id_epoch => Some(Ok(id)),
            Sink::Gone(_) => Some(Err("the handler has changed".to_owned())),
            Sink::Open(..) | Sink::None => None,
        };
        if let Some(known) = known() {
            return known;
        }
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have opened it since.
        if let Some(known) = known() {
            return known;
        }
        let (id_epoch, id) = open()?;
        if id_epoch >= GONE >> 32 {
            return Err("the queue was started too often".to_owned());
        }
        // Pairs with `observe` in `read`.
        self.word.publish(id_epoch << 32 | u64::from(id));
        Ok(id)
    }

    /// Takes the sink out permanently. Returns its id epoch and its id if it was open.
    pub(super) fn take(&self) -> Option<(u64, u32)> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        match self.read() {
            Sink::Open(id_epoch, id) => {
                // Pairs with `observe` in `read`.
                self.word.publish(GONE | id_epoch << 32 | u64::from(id));
                Some((id_epoch, id))
            }
            Sink::None => {
                self.word.publish(GONE);
                None
            }
            Sink::Gone(_) => None,
        }
    }
}

fn sink_of(word: u64) -> Sink {
    let opened = match word & !GONE {
        UNOPENED => None,
        word => Some((word >> 32, word as u32)),
    };
    match opened {
        opened if word & GONE != 0 => Sink::Gone(opened),
        Some((id_epoch, id)) => Sink::Open(id_epoch, id),
        None => Sink::None,
    }
}
