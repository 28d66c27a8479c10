//! The paths that take records.

/// Where objects are sent.
pub(super) const OBJECTS: &str = "/ingest";

/// Path for OTLP.
pub(super) const OTLP: &str = "/v1/logs";
