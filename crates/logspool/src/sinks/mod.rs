//! Every sink. To add one: its file, and one line in the table below.
//!
//! The file declares a struct of options (by [`options!`](crate::options)) and says with [`SinkOptions`] how the sink is
//! opened, what identifies its destination and how the line treats it. Names in statistics, recovery, the contract
//! tests, `logspool.SinkHandler` in Python and the reference page follow from that.
//!
//! Beside them, `declared` (what a sink says of itself), `lookup` (how a definition finds its row), `place`
//! (destinations), `query` (options as text), `duplicates` (of descriptors of the program's), and what the file sinks share:
//! `named` (a file and its path), `torn` (writes that end inside a record), `unsynced` (records that are not durable
//! yet), `rotated` (a file that a rule rotates), `rotation`, `schedule`, `calendar` and `expired` (by which rules and when a file is rotated, and which backups
//! that removes), `compress` (backups).

mod calendar;
pub(crate) mod compress;
mod declared;
pub(crate) mod duplicates;
mod expired;
mod lookup;
mod named;
mod place;
mod query;
mod rotated;
mod rotation;
mod schedule;
mod torn;
mod unsynced;

pub use declared::{SinkInput, SinkOptions, SinkRow, Traits};
pub use lookup::{define, from_recovery_address, is_borrowed, open, place, row, shared_place, traits};
pub use place::{Place, SinkPlace};
pub use rotation::{Compression, RotationRules};

/// Makes a row of each sink besides its module.
macro_rules! sinks {
    ($(mod $module:ident; pub use $home:ident::$options:ident;)+) => {
        $(pub(crate) mod $module; pub use $home::$options;)+

        /// Every kind of sink.
        pub static TABLE: &[SinkRow] = &[$(SinkRow::of::<$options>()),+];
    };
}

sinks! {
    mod console; pub use console::ConsoleOptions;
    mod file; pub use file::FileOptions;
    mod null; pub use null::NullOptions;
    mod rotating; pub use rotating::RotatingFileOptions;
    mod service; pub use service::ServiceOptions;
    mod syslog; pub use syslog::SyslogOptions;
    mod timed; pub use timed::TimedRotatingFileOptions;
    mod watched; pub use watched::WatchedFileOptions;
}
