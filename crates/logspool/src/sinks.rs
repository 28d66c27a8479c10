//! All sinks. To add one, add its file and one line in the table below.
//!
//! The file declares a struct of options (by [`options!`](crate::options)). By [`SinkOptions`] it declares how the sink
//! is opened, what its destination is, and how the pipeline treats it. From these declarations follow the names in
//! statistics, recovery, the contract tests, `logspool.SinkHandler` in Python, and the reference page.
//!
//! The other files of this folder are not sinks. `declared` has the declarations, and `lookup` finds the row of a
//! definition. `destination` has destinations, `query` has options as text, `parts` has the parts of an entry, and
//! `duplicates` has duplicates of the program's descriptors, and `secret` has secrets of options. `group` has the sinks
//! that write to one file.
//!
//! `http` has what the sinks that send over HTTP share: their client, and the batches on their way.
//!
//! The file sinks share these files: `named` (a file and its path), `torn` (writes that end inside a record),
//! `unsynced` (records that are not durable yet), `rotated` (a file that a rule rotates), and `compress` (backups).
//! `rotation`, `schedule`, `calendar` and `expired` define by which rules and when a file is rotated, and which backups
//! are then removed.
//!
//! `transport` has what the sinks share that send over sockets.

mod calendar;
pub(crate) mod compress;
mod declared;
mod destination;
pub(crate) mod duplicates;
mod expired;
mod group;
#[cfg(feature = "http")]
mod http;
mod log_stream;
mod lookup;
mod named;
mod parts;
mod query;
mod rotated;
mod rotation;
mod schedule;
mod secret;
mod torn;
mod transport;
mod unsynced;

pub use declared::{SinkInput, SinkOptions, SinkRow, Traits};
pub use destination::{Place, SinkPlace};
pub use group::{GroupChanges, GroupMember, GroupSink, MemberState};
pub use lookup::{
    absolute_paths, check, define, from_recovery_address, is_borrowed, open, place, row, shown_place, traits,
    written_place,
};
pub use rotation::{Compression, RotationRules};
#[cfg(feature = "sqlite")]
pub use sqlite::keep_apart as keep_sqlite_apart;

/// Declares the module of each sink, and adds its row to the table.
macro_rules! sinks {
    ($($(#[$gate:meta])? mod $module:ident; pub use $home:ident::$options:ident;)+) => {
        $($(#[$gate])? pub(crate) mod $module; $(#[$gate])? pub use $home::$options;)+

        /// Every kind of sink.
        pub static TABLE: &[SinkRow] = &[$($(#[$gate])? SinkRow::of::<$options>()),+];
    };
}

sinks! {
    mod console; pub use console::ConsoleOptions;
    #[cfg(feature = "http")]
    mod elasticsearch; pub use elasticsearch::ElasticsearchOptions;
    mod file; pub use file::FileOptions;
    mod gelf; pub use gelf::GelfOptions;
    mod journald; pub use journald::JournaldOptions;
    #[cfg(feature = "http")]
    mod loki; pub use loki::LokiOptions;
    mod null; pub use null::NullOptions;
    #[cfg(feature = "http")]
    mod otlp; pub use otlp::OtlpOptions;
    mod rotating; pub use rotating::RotatingFileOptions;
    mod service; pub use service::ServiceOptions;
    mod socket; pub use socket::SocketOptions;
    #[cfg(feature = "sqlite")]
    mod sqlite; pub use sqlite::SqliteOptions;
    mod syslog; pub use syslog::SyslogOptions;
    mod timed; pub use timed::TimedRotatingFileOptions;
    mod watched; pub use watched::WatchedFileOptions;
}
