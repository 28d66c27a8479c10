//! A kind of store: what it declares. The table of all of them is in [`super::ALL`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::private::Readers;
use super::{Answers, Store, StoreError};
use crate::config::Retention;

/// The declaration of a kind of store.
pub struct Kind {
    /// Its name in messages and metrics.
    pub name: &'static str,
    /// The beginnings of its addresses, up to the colon.
    pub schemes: &'static [&'static str],
    /// The form of its addresses, for messages and the reference page.
    pub form: &'static str,
    /// Reads an address with one of the schemes.
    pub parse: fn(&str) -> Result<Arc<dyn Location>, String>,
}

/// The place of one store.
pub trait Location: fmt::Display + Send + Sync {
    /// Opens it for the service, which writes to it.
    ///
    /// # Errors
    ///
    /// It cannot be opened now.
    fn open(&self, settings: &Settings) -> Result<Opening, StoreError>;

    /// Opens it for queries only, beside a service that may be writing to it.
    ///
    /// # Errors
    ///
    /// It does not exist or cannot be read.
    fn open_to_ask(&self) -> Result<Arc<dyn Answers>, StoreError>;

    /// Text that is the same for two addresses of one store.
    fn identity(&self) -> String {
        self.to_string()
    }

    /// Looks for an address that cannot be used, without opening the store.
    ///
    /// # Errors
    ///
    /// The reason, and what to write instead.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// True if `retention.bytes` holds for it.
    fn limits_bytes(&self) -> bool {
        false
    }

    /// Damage that a query would not report.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A store that is open, and what answers queries about it.
pub type Opening = (Box<dyn Store>, Arc<dyn Answers>);

/// What a service sets for all of its stores.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How long records are kept.
    pub retention: Retention,
    /// Who may read the files of a store.
    pub readers: Readers,
    /// How long a query may take.
    pub query_time: Duration,
}
