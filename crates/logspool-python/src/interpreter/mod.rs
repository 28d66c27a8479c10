//! CPython's side: references, names, calls that may not come back, waiting outside the interpreter, frames.

pub mod dict;
pub mod failure;
pub mod frame;
pub mod leaving;
pub mod names;
pub mod object;
pub mod running_loop;
pub mod thread;
pub mod waiting;
