//! The address of a store in PostgreSQL, as libpq writes it.

use std::sync::Arc;

use super::connection::FORM;
use super::{Address, PostgresConfig, PostgresReader, PostgresWriter};
use crate::config::Limits;
use crate::stores::kind::{OpenedStore, StoreKind, StoreLocation, StoreSettings};
use crate::stores::{QueryReader, StoreError};

/// See the file head.
pub const POSTGRES: StoreKind = StoreKind {
    name: "postgres",
    schemes: &["postgres", "postgresql"],
    form: FORM,
    parse: |text| Ok(Arc::new(text.parse::<Address>()?)),
};

impl StoreLocation for Address {
    fn open(&self, settings: &StoreSettings) -> Result<OpenedStore, StoreError> {
        let config = PostgresConfig {
            address: self.clone(),
            retention_days: settings.retention.days,
            query_timeout: settings.query_time,
        };
        Ok((Box::new(PostgresWriter::new(&config)), Arc::new(PostgresReader::new(&config))))
    }

    fn open_for_queries(&self) -> Result<Arc<dyn QueryReader>, StoreError> {
        let query_timeout = Limits::default().query_time();
        Ok(Arc::new(PostgresReader::new(&PostgresConfig {
            address: self.clone(),
            retention_days: None,
            query_timeout,
        })))
    }
}
