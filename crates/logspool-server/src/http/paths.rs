//! The paths that receive records.

/// Path for JSON objects.
pub(super) const OBJECTS: &str = "/ingest";

/// Path for OTLP.
pub(super) const OTLP: &str = "/v1/logs";
