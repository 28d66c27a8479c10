//! Configuration of the service: one TOML file, overridden by command-line options, with defaults for every key.

mod check;
mod settings;
mod text;

pub use settings::Config;
