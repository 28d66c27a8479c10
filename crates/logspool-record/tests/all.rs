//! The tests of records and formats through their public interface, in one program.
//!
//! Each file is a module. `scripts/rust_tests.py` runs each module in a process of its own.

mod fmt_differences;
mod format_hostile;
mod line_programs;
mod rust_differences;
mod support;
