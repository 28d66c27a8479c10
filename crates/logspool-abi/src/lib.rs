//! The table of C functions through which programs in other languages use the core.
//!
//! `logspool.h` is the contract. `logspool-c` exports the functions of the table under their names, and Python's
//! `_native` offers the table as a capsule. Sites, loggers and sinks are handles of this crate: it defines them again
//! after a fork, and whenever the process gets another pipeline.
//!
//! The files, lowest first: [`status`] is the result of a call; [`handles`] has the tables of sinks, loggers and sites;
//! [`json`] reads options and formats; [`sinks`], [`loggers`], [`sites`] are the three kinds of handles; [`values`]
//! encodes arguments; [`emitting`] logs; [`beginning`] installs what runs at the end of the process; [`table`] is the
//! table.

pub mod beginning;
mod by_name;
pub mod emitting;
pub mod handles;
pub mod json;
pub mod loggers;
mod names;
pub mod sinks;
pub mod sites;
pub mod stats;
pub mod status;
pub mod table;
pub mod values;
