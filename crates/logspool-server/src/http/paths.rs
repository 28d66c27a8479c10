//! The paths that take records.

/// Where objects are sent.
pub(super) const OBJECTS: &str = "/ingest";

/// Where OTLP's records are sent.
pub(super) const OTLP: &str = "/v1/logs";
