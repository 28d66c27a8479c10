//! The native half of `logspool.structlog` and `logspool.gunicorn`.
//!
//! [`access_log`] makes the access lines of gunicorn by the parts of [`access_format`]. All other modules are for
//! structlog: they render event dicts as structlog's renderers do, and queue the lines.
//!
//! [`renderer`] is the type of the renderers. [`json`], [`key_values`] and [`console`] each make the text of an event
//! whose values are plain; for any other event structlog's own renderer is called. [`line_logger`] gives the text to a
//! handler, and [`stamper`] adds the time. [`bound_logger`] runs the processors and calls the logger.

mod access_format;
mod access_log;
mod access_setup;
mod bound_logger;
mod console;
mod json;
mod key_values;
mod line_logger;
mod renderer;
mod stamper;
mod values;

pub use access_log::AccessLog;
pub use bound_logger::bound_logger_method;
pub use line_logger::LineLogger;
pub use renderer::EventRenderer;
pub use stamper::IsoStamper;
