//! How the service is set up: one TOML file, options of the command line above it, sensible defaults below.

mod check;
mod limits;
mod parts;
mod settings;
mod text;

pub use limits::Limits;
pub use parts::{Access, Retention, SharedKey, Tls};
pub use settings::Config;
