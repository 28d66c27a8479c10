//! A store that could not be opened when the service started, although another store could. This module retries until
//! the store opens.
//!
//! Until the store opens, records wait for it. Senders get no acknowledgement meanwhile, because an acknowledged record
//! must be in every store.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{GapCounts, Store, StoreError, WriteResult};
use crate::delivery::Delivery;

/// Time between two attempts to open the store. Chosen: it equals the longest pause between two attempts to write.
const RETRY_PAUSE: Duration = Duration::from_secs(5);

/// Opens the store.
pub(crate) type OpenStore = Box<dyn Fn() -> Result<Box<dyn Store>, StoreError> + Send>;

/// A store that is opened later; see the module documentation.
pub(crate) struct DeferredStore {
    name: &'static str,
    open: OpenStore,
    state: DeferredState,
}

enum DeferredState {
    Closed { why: String, tried: Instant },
    Open(Box<dyn Store>),
}

impl DeferredStore {
    /// A store that failed to open for the reason `why`.
    pub fn new(name: &'static str, open: OpenStore, why: &StoreError) -> Self {
        Self { name, open, state: DeferredState::Closed { why: why.to_string(), tried: Instant::now() } }
    }

    /// Returns the store. Tries to open it if it is closed and [`RETRY_PAUSE`] has passed since the last attempt.
    fn open_if_due(&mut self) -> Result<&mut dyn Store, StoreError> {
        if let DeferredState::Closed { why, tried } = &mut self.state {
            if tried.elapsed() < RETRY_PAUSE {
                return Err(StoreError::Fatal(why.clone()));
            }
            match (self.open)() {
                Ok(store) => self.state = DeferredState::Open(store),
                Err(error) => {
                    (*why, *tried) = (error.to_string(), Instant::now());
                    return Err(StoreError::Fatal(why.clone()));
                }
            }
        }
        match &mut self.state {
            DeferredState::Open(store) => Ok(store.as_mut()),
            DeferredState::Closed { why, .. } => Err(StoreError::Fatal(why.clone())),
        }
    }
}

impl Store for DeferredStore {
    fn name(&self) -> &str {
        self.name
    }

    fn write(&mut self, deliveries: &[Arc<Delivery>]) -> Result<WriteResult, StoreError> {
        self.open_if_due()?.write(deliveries)
    }

    fn maintain(&mut self) -> Result<(), StoreError> {
        match &mut self.state {
            DeferredState::Open(store) => store.maintain(),
            DeferredState::Closed { .. } => Ok(()),
        }
    }

    fn check(&mut self) -> Option<Result<(), StoreError>> {
        match &mut self.state {
            DeferredState::Open(store) => store.check(),
            DeferredState::Closed { .. } => Some(self.open_if_due().map(drop)),
        }
    }

    fn gap_counts(&mut self) -> Option<GapCounts> {
        match &mut self.state {
            DeferredState::Open(store) => store.gap_counts(),
            DeferredState::Closed { .. } => None,
        }
    }

    fn problems(&self) -> Vec<String> {
        match &self.state {
            DeferredState::Open(store) => store.problems(),
            DeferredState::Closed { .. } => Vec::new(),
        }
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        match self.state {
            DeferredState::Open(store) => store.close(),
            DeferredState::Closed { .. } => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    struct Empty;

    impl Store for Empty {
        fn name(&self) -> &str {
            "empty"
        }

        fn write(&mut self, _: &[Arc<Delivery>]) -> Result<WriteResult, StoreError> {
            Ok(WriteResult { stored: 7, ..WriteResult::default() })
        }

        fn maintain(&mut self) -> Result<(), StoreError> {
            Ok(())
        }

        fn close(self: Box<Self>) -> Result<(), StoreError> {
            Ok(())
        }
    }

    #[test]
    fn a_store_is_used_once_it_can_be_opened() {
        let can = Arc::new(AtomicBool::new(false));
        let open: OpenStore = Box::new({
            let can = can.clone();
            move || match can.load(Ordering::Relaxed) {
                true => Ok(Box::new(Empty)),
                false => Err(StoreError::Fatal("still locked".to_owned())),
            }
        });
        let mut store = DeferredStore::new("empty", open, &StoreError::Fatal("locked".to_owned()));
        let tried_before = |store: &mut DeferredStore| {
            if let DeferredState::Closed { tried, .. } = &mut store.state {
                *tried -= RETRY_PAUSE;
            }
        };

        assert_eq!("locked", store.write(&[]).unwrap_err().to_string());
        tried_before(&mut store);
        assert_eq!("still locked", store.check().unwrap().unwrap_err().to_string());
        can.store(true, Ordering::Relaxed);
        assert_eq!("still locked", store.write(&[]).unwrap_err().to_string());
        tried_before(&mut store);
        assert!(store.check().unwrap().is_ok());
        assert_eq!(7, store.write(&[]).unwrap().stored);
        assert!(store.check().is_none());
    }
}
