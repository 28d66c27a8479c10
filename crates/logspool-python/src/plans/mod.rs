//! Plans of loggers: what they are made from, how they are made, where they are kept, and when they are stale.

pub mod adoption;
pub mod environment;
pub mod hooks;
pub mod ids;
pub mod logging_globals;
pub mod plan;
pub mod planning;
pub mod table;
pub mod tries;
