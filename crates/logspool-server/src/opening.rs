//! Opens the stores that a configuration names.

use std::sync::Arc;

use crate::config::Config;
use crate::store::{QueryReader, Store, StoreError};
use crate::stores::deferred::DeferredStore;
use crate::stores::kind::StoreSettings;
use crate::stores::{StoreAddress, file, private};

/// The stores of a service.
pub struct OpenedStores {
    /// The open stores. Every record is written to each of them.
    pub stores: Vec<Box<dyn Store>>,
    /// The first store that can answer queries.
    pub reader: Option<Arc<dyn QueryReader>>,
}

/// Opens the stores of a configuration.
///
/// If at least one store opens, the service starts. It retries the stores that did not open while it runs.
///
/// # Errors
///
/// No store can be opened. The text names each store and the reason.
pub fn open(config: &Config) -> Result<OpenedStores, String> {
    let mut opened = OpenedStores { stores: Vec::new(), reader: None };
    let mut failures = Vec::new();
    let readers = private::Readers::of(config.store_group.as_deref())?;
    let settings =
        StoreSettings { retention: config.retention.clone(), readers, query_time: config.limits.query_time() };
    for address in &config.store {
        match address.open(&settings) {
            Ok((store, answers)) => {
                opened.stores.push(store);
                opened.reader = opened.reader.or(Some(answers));
            }
            Err(error) => {
                failures.push(format!("{address}: {error}"));
                let (location, settings) = (address.location(), settings.clone());
                let again = Box::new(move || Ok(location.open(&settings)?.0));
                opened.stores.push(Box::new(DeferredStore::new(address.kind().name, again, &error)));
            }
        }
    }
    if let Some(path) = config.file.clone() {
        let open = move || file::FileStore::open(&path, readers);
        opened.stores.push(match open() {
            Ok(store) => Box::new(store),
            Err(error) => {
                failures.push(error.to_string());
                Box::new(DeferredStore::new("file", Box::new(move || Ok(Box::new(open()?) as Box<dyn Store>)), &error))
            }
        });
    }
    if failures.len() == opened.stores.len() { Err(failures.join("; ")) } else { Ok(opened) }
}

/// Opens a store for queries only. A service may be writing to the store at the same time.
///
/// # Errors
///
/// The store does not exist or cannot be read.
pub fn open_for_queries(address: &StoreAddress) -> Result<Arc<dyn QueryReader>, StoreError> {
    address.open_for_queries()
}
