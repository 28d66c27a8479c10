//! What the sinks that send over HTTP share.
//!
//! A sink of this kind is a [`HttpFormat`], which encodes records and reads answers, in a [`HttpSink`]
//! (`http/courier.rs`). `address` and `headers` read the options, `client` sends one request, `answer` decides by a
//! status what to do next, `pending_request` runs a request on a thread of its own, and `parcel` has the records that
//! are on their way.

mod address;
mod answer;
mod client;
mod courier;
mod format;
mod headers;
mod kept_transport;
mod parcel;
mod pending_request;
pub mod shapes;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use address::HttpAddress;
pub use answer::HttpAnswer;
pub use client::HttpClient;
pub use courier::HttpSink;
pub use format::{BatchVerdict, HttpFormat, HttpRecord, RecordOutcome};
pub use headers::HttpHeaders;

use crate::sinks::secret::Secret;

/// The options that all sinks over HTTP have, as one struct.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// Where requests go: the address of the options, with the path of the interface.
    pub url: String,
    /// More headers of each request.
    pub headers: Option<HttpHeaders>,
    /// User name for basic authentication.
    pub user: Option<String>,
    /// Password for basic authentication.
    pub password: Option<Secret>,
    /// Token for bearer authentication.
    pub token: Option<Secret>,
    /// File with the certificates of the authorities to trust.
    pub authorities: Option<String>,
    /// Maximum time for one request.
    pub timeout: Duration,
    /// Whether bodies are compressed.
    pub compress: bool,
    /// Maximum size of the entries of one request.
    pub batch_bytes: usize,
    /// Maximum number of records of one request.
    pub batch_records: usize,
}

/// Declares the options of a sink: `address`, its own and `headers`, and after them those that each sink has.
macro_rules! options {
    ($(#[doc = $about:literal])+ pub struct $name:ident { $($own:tt)+ }) => {
        $crate::options! {
            $(#[doc = $about])+
            pub struct $name {
                $($own)+
                /// User name for basic authentication.
                pub user: Option<String> = Nothing,
                /// Password for basic authentication.
                pub password: Option<$crate::sinks::secret::Secret> = Nothing,
                /// Token for bearer authentication.
                pub token: Option<$crate::sinks::secret::Secret> = Nothing,
                /// File with the certificates of the authorities to trust, in PEM; by default those of the system.
                pub authorities: Option<String> as Path = Nothing,
                /// Longest time for a request and its answer.
                pub timeout_seconds: std::time::Duration [seconds 0.1..=600.0] = Seconds(10.0),
                /// Whether requests are compressed by gzip.
                pub compress: bool = Switch(true),
                /// Most bytes of records in a request, before they are encoded.
                pub batch_bytes: u32 ["bytes", 1024..=16777216] = Whole(1048576),
                /// Most records in a request.
                pub batch_records: u32 ["records", 1..=100000] = Whole(1000),
            }
        }
    };
}

/// Makes the sample of such options for a test of the receiver at `$path`, with the own fields of a sink.
macro_rules! sample {
    ($path:expr, $($field:ident: $value:expr),+ $(,)?) => {
        Self {
            address: HttpAddress::sample($path),
            $($field: $value,)+
            headers: None,
            user: None,
            password: None,
            token: None,
            authorities: None,
            timeout_seconds: std::time::Duration::from_secs(10),
            compress: false,
            batch_bytes: 1 << 20,
            batch_records: 1000,
        }
    };
}

/// Makes [`HttpSettings`] of the options of a sink, which has fields of these names.
macro_rules! settings {
    ($options:expr, $path:expr) => {
        $crate::sinks::http::HttpSettings {
            url: $options.address.url($path),
            headers: $options.headers.clone(),
            user: $options.user.clone(),
            password: $options.password.clone(),
            token: $options.token.clone(),
            authorities: $options.authorities.clone(),
            timeout: $options.timeout_seconds,
            compress: $options.compress,
            batch_bytes: $options.batch_bytes as usize,
            batch_records: $options.batch_records as usize,
        }
    };
}

pub(super) use {options, sample, settings};
