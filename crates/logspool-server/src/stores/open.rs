//! Opens the stores that a configuration names.

use std::sync::Arc;

use super::unopened::Unopened;
use super::{Answers, Store, StoreError, file, postgres, private, sqlite};
use crate::address::StoreAddress;
use crate::config::{Config, Limits};

/// The stores of a service.
pub struct Opened {
    /// Each store takes every record.
    pub stores: Vec<Box<dyn Store>>,
    /// The first store that can answer queries.
    pub answers: Option<Arc<dyn Answers>>,
}

/// Opens the stores of a configuration. A new store needs its own file, and a line in this function and in the next
/// one.
///
/// If some stores open and others do not, the service retries the others while it runs.
///
/// # Errors
///
/// No store can be opened. The text names each store and the reason.
pub fn open(config: &Config) -> Result<Opened, String> {
    let mut opened = Opened { stores: Vec::new(), answers: None };
    let mut failures = Vec::new();
    let readers = private::Readers::of(config.store_group.as_deref())?;
    let query_time = config.limits.query_time();
    for address in &config.store {
        let (store, answers): (Box<dyn Store>, Option<Arc<dyn Answers>>) = match address {
            StoreAddress::Sqlite(folder) => {
                let retention = sqlite::Retention { days: config.retention.days, bytes: config.retention.bytes };
                let options = sqlite::Options { retention, readers, ..sqlite::Options::default() };
                let folder = folder.clone();
                let open = move || sqlite::SqliteStore::open(&folder, options.clone());
                match open() {
                    Ok(store) => {
                        let answers = store.answers().with_deadline(query_time);
                        (Box::new(store), Some(Arc::new(answers)))
                    }
                    Err(error) => {
                        failures.push(format!("{address}: {error}"));
                        let again = Box::new(move || Ok(Box::new(open()?) as Box<dyn Store>));
                        (Box::new(Unopened::new("sqlite", again, &error)), None)
                    }
                }
            }
            StoreAddress::Postgres(server) => {
                let settings = postgres::Config {
                    address: server.clone(),
                    retention_days: config.retention.days,
                    query_timeout: query_time,
                };
                (Box::new(postgres::Writer::new(&settings)), Some(Arc::new(postgres::Reader::new(&settings))))
            }
        };
        opened.stores.push(store);
        opened.answers = opened.answers.or(answers);
    }
    if let Some(path) = config.file.clone() {
        let open = move || file::FileStore::open(&path, readers);
        opened.stores.push(match open() {
            Ok(store) => Box::new(store),
            Err(error) => {
                failures.push(error.to_string());
                Box::new(Unopened::new("file", Box::new(move || Ok(Box::new(open()?) as Box<dyn Store>)), &error))
            }
        });
    }
    if failures.len() == opened.stores.len() { Err(failures.join("; ")) } else { Ok(opened) }
}

/// Opens a store for queries only, beside a service that may be writing to it.
///
/// # Errors
///
/// The store does not exist or cannot be read.
pub fn open_to_ask(address: &StoreAddress) -> Result<Arc<dyn Answers>, StoreError> {
    match address {
        StoreAddress::Sqlite(folder) => Ok(Arc::new(sqlite::SqliteAnswers::open(folder)?)),
        StoreAddress::Postgres(server) => {
            let (address, query_timeout) = (server.clone(), Limits::default().query_time());
            Ok(Arc::new(postgres::Reader::new(&postgres::Config { address, retention_days: None, query_timeout })))
        }
    }
}
