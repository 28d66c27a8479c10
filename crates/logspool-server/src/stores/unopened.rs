//! A store that could not be opened when the service started, while another one could. Opening is retried until it
//! works.
//!
//! Until then records wait for this store, and senders get no acknowledgement, because an acknowledged record is in
//! every store.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Store, StoreError, Written};
use crate::delivery::Delivery;

/// Time between two attempts to open. Chosen: the same as between two attempts of a failed write.
const AGAIN: Duration = Duration::from_secs(5);

/// Opens the store.
pub(super) type Open = Box<dyn Fn() -> Result<Box<dyn Store>, StoreError> + Send>;

/// A store that is opened later; see the file head.
pub(super) struct Unopened {
    name: &'static str,
    open: Open,
    state: OpenState,
}

enum OpenState {
    Closed { why: String, tried: Instant },
    Open(Box<dyn Store>),
}

impl Unopened {
    /// A store that failed to open for the reason `why`.
    pub fn new(name: &'static str, open: Open, why: &StoreError) -> Self {
        Self { name, open, state: OpenState::Closed { why: why.to_string(), tried: Instant::now() } }
    }

    /// The store, once it can be opened.
    fn opened(&mut self) -> Result<&mut dyn Store, StoreError> {
        if let OpenState::Closed { why, tried } = &mut self.state {
            if tried.elapsed() < AGAIN {
                return Err(StoreError::Fatal(why.clone()));
            }
            match (self.open)() {
                Ok(store) => self.state = OpenState::Open(store),
                Err(error) => {
                    (*why, *tried) = (error.to_string(), Instant::now());
                    return Err(StoreError::Fatal(why.clone()));
                }
            }
        }
        match &mut self.state {
            OpenState::Open(store) => Ok(store.as_mut()),
            OpenState::Closed { why, .. } => Err(StoreError::Fatal(why.clone())),
        }
    }
}

impl Store for Unopened {
    fn name(&self) -> &str {
        self.name
    }

    fn write(&mut self, deliveries: &[Arc<Delivery>]) -> Result<Written, StoreError> {
        self.opened()?.write(deliveries)
    }

    fn maintain(&mut self) -> Result<(), StoreError> {
        match &mut self.state {
            OpenState::Open(store) => store.maintain(),
            OpenState::Closed { .. } => Ok(()),
        }
    }

    fn check(&mut self) -> Option<Result<(), StoreError>> {
        match &mut self.state {
            OpenState::Open(store) => store.check(),
            OpenState::Closed { .. } => Some(self.opened().map(drop)),
        }
    }

    fn problems(&self) -> Vec<String> {
        match &self.state {
            OpenState::Open(store) => store.problems(),
            OpenState::Closed { .. } => Vec::new(),
        }
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        match self.state {
            OpenState::Open(store) => store.close(),
            OpenState::Closed { .. } => Ok(()),
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

        fn write(&mut self, _: &[Arc<Delivery>]) -> Result<Written, StoreError> {
            Ok(Written { stored: 7, ..Written::default() })
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
        let open: Open = Box::new({
            let can = can.clone();
            move || match can.load(Ordering::Relaxed) {
                true => Ok(Box::new(Empty)),
                false => Err(StoreError::Fatal("still locked".to_owned())),
            }
        });
        let mut store = Unopened::new("empty", open, &StoreError::Fatal("locked".to_owned()));
        let tried_before = |store: &mut Unopened| {
            if let OpenState::Closed { tried, .. } = &mut store.state {
                *tried -= AGAIN;
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
