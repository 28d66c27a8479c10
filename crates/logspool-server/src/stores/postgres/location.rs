//! The address of a store in PostgreSQL, as libpq writes it.

use std::sync::Arc;

use super::{Address, PostgresConfig, PostgresReader, PostgresWriter};
use crate::config::Limits;
use crate::stores::kind::{Kind, Location, Opening, Settings};
use crate::stores::{Answers, StoreError};

/// See the file head.
pub const POSTGRES: Kind = Kind {
    name: "postgres",
    schemes: &["postgres", "postgresql"],
    form: "postgres://USER:PASSWORD@HOST:PORT/DATABASE",
    parse: |text| Ok(Arc::new(text.parse::<Address>()?)),
};

impl Location for Address {
    fn open(&self, settings: &Settings) -> Result<Opening, StoreError> {
        let config = PostgresConfig {
            address: self.clone(),
            retention_days: settings.retention.days,
            query_timeout: settings.query_time,
        };
        Ok((Box::new(PostgresWriter::new(&config)), Arc::new(PostgresReader::new(&config))))
    }

    fn open_to_ask(&self) -> Result<Arc<dyn Answers>, StoreError> {
        let query_timeout = Limits::default().query_time();
        Ok(Arc::new(PostgresReader::new(&PostgresConfig {
            address: self.clone(),
            retention_days: None,
            query_timeout,
        })))
    }
}
