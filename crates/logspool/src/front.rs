//! Logging from Rust programs: [`record!`](crate::record), a macro for each level, and what they write to.
//!
//! ```no_run
//! logspool::front::builder().file("app.log").level(logspool::front::Level::Info).start()?;
//! let (name, milliseconds) = ("ada", 0.25);
//! logspool::info!("user {} waited {:.3} ms", name, milliseconds);
//! logspool::warn!(target: "shop", order = 17, paid = false; "order {} is late", 17);
//! # Ok::<(), logspool::front::StartError>(())
//! ```
//!
//! A call copies its arguments into the queue of its thread and returns. The collector makes the text. Text that names a
//! variable inside its braces (`"{name}"`) is made by the caller, as `format!` makes it. So are values that are wrapped
//! by [`display`] or [`debug`].
//!
//! The files, lowest first: `argument`, `context` (values of a record), `template` (checks at compile time), `output`
//! (where lines go), `registry` (what is defined in the pipeline), `site` and `places` (a call), `builder`, `macros`; then the fronts
//! for the crates `log` and `tracing`.

mod argument;
mod builder;
mod level;
#[cfg(feature = "log")]
pub mod log_front;
mod macros;
mod output;
mod places;
mod registry;
mod site;
pub mod template;
#[cfg(feature = "tracing")]
pub mod tracing_layer;

pub use argument::{Argument, Arguments, Debug, Display, Keyed, ValueWriter, debug, display};
pub use builder::{Builder, StartError, builder};
pub use level::Level;
pub use logspool_record::format::{ControlRule, Extras, FormatSpec};
pub use output::Output;
pub use registry::close_target;
pub use site::{Call, CallSite};

use std::time::Duration;

/// Waits until everything that was logged before is written, at most for `timeout`. Returns whether it is.
pub fn flush(timeout: Duration) -> bool {
    crate::pipeline::flush(None, Some(timeout))
}

/// Changes the lowest level that is logged. The change is seen by the next call of each thread.
pub fn set_level(level: Level) {
    registry::set_min_level(level as u16);
}

/// The code of the page for users, which is compiled as a test.
#[cfg(all(doctest, feature = "log", feature = "tracing"))]
#[doc = include_str!("../../../docs/how-to/log-from-rust.md")]
struct HowTo;
