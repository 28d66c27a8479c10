//! A record that is about to be queued, as the rules see it.

use logspool_record::Head;
use logspool_record::format::CompiledSite;

/// A record that is about to be queued.
#[derive(Debug, Clone, Copy)]
pub struct OfferedRecord<'a> {
    /// The head of the record.
    pub head: Head,
    /// Name of the logger; empty if it is unknown.
    pub logger: &'a str,
    /// Identifies the sinks that get the record. Ids of routes change after a fork.
    pub sinks: u64,
    /// The call site, if the head names one.
    pub site: Option<&'a CompiledSite>,
    /// A number that identifies the place of the call, for a record without a site.
    pub place: u64,
    /// Whether the bytes of a finished line have to stay as they are.
    pub is_opaque: bool,
    /// The encoded values.
    pub values: &'a [u8],
    /// The id epoch in which the ids of the head are valid.
    pub epoch: u64,
    /// Time on the monotonic clock in nanoseconds.
    pub now_ns: u64,
}
