//! The declaration of a kind of store. The table of all kinds is [`super::ALL`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::private::Readers;
use super::{QueryReader, Store, StoreError};
use crate::limits::parts::Retention;

/// The declaration of a kind of store.
pub struct StoreKind {
    /// The name of the kind in messages and metrics.
    pub name: &'static str,
    /// The schemes of its addresses. A scheme is the text before the colon.
    pub schemes: &'static [&'static str],
    /// The form of its addresses, for messages and the reference page.
    pub form: &'static str,
    /// Parses an address with one of the schemes.
    pub parse: fn(&str) -> Result<Arc<dyn StoreLocation>, String>,
}

/// The parsed address of one store.
pub trait StoreLocation: fmt::Display + Send + Sync {
    /// Opens the store for a service, which writes to it.
    ///
    /// # Errors
    ///
    /// The store cannot be opened now.
    fn open(&self, settings: &StoreSettings) -> Result<OpenedStore, StoreError>;

    /// Opens the store only for queries. A service may be writing to it at the same time.
    ///
    /// # Errors
    ///
    /// The store does not exist or cannot be read.
    fn open_for_queries(&self) -> Result<Arc<dyn QueryReader>, StoreError>;

    /// A text that is equal for all addresses of the same store.
    fn identity(&self) -> String {
        self.to_string()
    }

    /// Checks that the address can be used, without opening the store.
    ///
    /// # Errors
    ///
    /// The address cannot be used. The text has the reason, and says what to write instead.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// True if the setting `retention.bytes` limits the size of this store.
    fn limits_bytes(&self) -> bool {
        false
    }

    /// Messages about damage that a query would not report.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// An open store, and the reader that answers queries about it.
pub type OpenedStore = (Box<dyn Store>, Arc<dyn QueryReader>);

/// Settings that a service uses for all of its stores.
#[derive(Debug, Clone)]
pub struct StoreSettings {
    /// How long records are kept.
    pub retention: Retention,
    /// Users who may read the files of a store.
    pub readers: Readers,
    /// Time limit of a query.
    pub query_time: Duration,
}
