//! The calls of Linux. They are made by `libc::syscall` where glibc 2.17, on which wheels run, has no function.

pub mod barrier;
pub mod futex;
pub mod identity;
pub mod memory_file;
pub mod random;
pub mod thread;
