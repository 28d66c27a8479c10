//! The sink of a handler. Earlier and later states of the handler share it while they name the same destination.
//!
//! Each record asks several times whether the sink is still there, so its state is also kept in one word, which is read
//! without a lock.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard};

use logspool_sys::published::Published;

/// The state of a sink.
#[derive(Clone, Copy, Default)]
pub(super) enum Sink {
    /// Not opened yet.
    #[default]
    None,
    /// Open: the id epoch of the pipeline in which the sink was opened, and the id of the sink.
    Open(u64, u32),
    /// Taken out to be closed. The handler has another state now, or no state.
    Gone,
}

/// The sink of a handler, with its state.
#[derive(Default)]
pub(super) struct HandlerSink {
    sink: Mutex<Sink>,
    /// The state in one word (see [`word_of`]).
    word: AtomicU64,
}

impl HandlerSink {
    /// The state of the sink.
    pub(super) fn read(&self) -> Sink {
        // Pairs with `publish` in `set`.
        match self.word.observe() {
            UNTOLD => *self.locked(),
            GONE => Sink::Gone,
            word => Sink::Open(word >> 32, word as u32),
        }
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
        let id_in = |sink| match sink {
            Sink::Open(opened, id) if opened == id_epoch => Some(Ok(id)),
            Sink::Gone => Some(Err("the handler has changed".to_owned())),
            Sink::Open(..) | Sink::None => None,
        };
        if let Some(known) = id_in(self.read()) {
            return known;
        }
        let mut sink = self.locked();
        // Another thread may have opened it since.
        if let Some(known) = id_in(*sink) {
            return known;
        }
        let (id_epoch, id) = open()?;
        self.set(&mut sink, Sink::Open(id_epoch, id));
        Ok(id)
    }

    /// Takes the sink out permanently. Returns its id epoch and its id if it was open.
    pub(super) fn take(&self) -> Option<(u64, u32)> {
        match self.set(&mut self.locked(), Sink::Gone) {
            Sink::Open(id_epoch, id) => Some((id_epoch, id)),
            Sink::None | Sink::Gone => None,
        }
    }

    fn locked(&self) -> MutexGuard<'_, Sink> {
        self.sink.lock().expect("no panic happens while it is held")
    }

    fn set(&self, sink: &mut Sink, new: Sink) -> Sink {
        // Pairs with `observe` in `read`.
        self.word.publish(word_of(new));
        std::mem::replace(sink, new)
    }
}

/// The word of a state that does not fit into a word.
const UNTOLD: u64 = 0;

/// The word of [`Sink::Gone`].
const GONE: u64 = u64::MAX;

/// An open sink as its id epoch in the upper half and its id in the lower half.
fn word_of(sink: Sink) -> u64 {
    match sink {
        Sink::Gone => GONE,
        Sink::Open(id_epoch, id) if id_epoch < u64::from(u32::MAX) => id_epoch << 32 | u64::from(id),
        Sink::Open(..) | Sink::None => UNTOLD,
    }
}
