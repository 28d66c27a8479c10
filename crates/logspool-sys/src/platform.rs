//! The calls of the operating system that no other system has in this form: one folder for each system.
//!
//! A port is a folder beside `linux` with the same functions. `docs/explain/platforms.md` lists what else it must give.
//! `make lint` refuses these calls elsewhere.

mod linux;

pub use linux::barrier::{expedited_barrier, has_expedited_barrier, register_expedited_barrier};
pub use linux::futex::{futex_wait, futex_wake};
pub use linux::identity::program_token;
pub use linux::memory_file::memory_file;
pub use linux::random::random;
pub use linux::thread::thread_id;
