//! The kind of store in PostgreSQL. Its addresses are the URLs of libpq.

use std::sync::Arc;

use super::connection::FORM;
use super::{Address, PostgresConfig, PostgresReader, PostgresWriter};
use crate::limits::Limits;
use crate::stores::kind::{OpenedStore, StoreKind, StoreLocation, StoreSettings};
use crate::stores::{QueryReader, StoreError};

/// The kind of store that keeps records in PostgreSQL.
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
