//! Configuration of the service: one TOML file, overridden by command-line options, with defaults for every key.

mod check;
mod limits;
mod parts;
mod settings;
mod text;

pub use limits::Limits;
pub use parts::{Access, Retention, SharedKey, Tls};
pub use settings::Config;
