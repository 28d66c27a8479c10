//! Every sink. To add one: its file, and one line in the table below.
//!
//! The file declares a struct of options (by [`options!`](crate::options)) and says with [`SinkOptions`] how the sink is
//! opened, what identifies its destination and how the line treats it. Names in statistics, recovery, the contract
//! tests, `logspool.SinkHandler` in Python and the reference page follow from that.
//!
//! Beside them, `table` and `place` (how a definition finds its kind and its destination), `query` (options as text),
//! `lent` (descriptors of the program's), and what the file sinks share: `named` (a file and its path), `torn` (writes
//! that end inside a record), `unsynced` (what is not durable yet), `rotation`, `schedule`, `calendar` and `expired`
//! (by which rules and when a file is rotated, and what that removes), `compress` (what becomes of backups).

mod calendar;
pub(crate) mod compress;
mod expired;
pub(crate) mod lent;
mod named;
mod place;
mod query;
mod rotation;
mod schedule;
mod table;
mod torn;
mod unsynced;

pub use place::{Place, SinkPlace};
pub use rotation::{Compression, RotationRules};
pub use table::{SinkOptions, SinkRow, Takes, Traits, at, define, is_lent, open, place, row, shared_place, traits};

/// Makes a module and a row of each sink.
macro_rules! sinks {
    ($($module:ident => $options:ident,)+) => {
        $(pub(crate) mod $module; pub use $module::$options;)+

        /// Every kind of sink.
        pub static TABLE: &[SinkRow] = &[$(SinkRow::of::<$options>()),+];
    };
}

sinks! {
    console => ConsoleOptions,
    file => FileOptions,
    null => NullOptions,
    rotating => RotatingFileOptions,
    service => ServiceOptions,
    timed => TimedRotatingFileOptions,
    watched => WatchedFileOptions,
}
