//! The interface to CPython: references, names, calls that may never return, waits while detached, and frames.

pub mod call_thread;
pub mod change_number;
pub mod context_variable;
pub mod dict;
pub mod failure;
pub mod frame;
#[cfg(Py_3_11)]
pub mod frame_layout;
pub mod guard;
pub mod leaving;
pub mod list;
pub mod names;
pub mod native_code;
pub mod native_method;
pub mod object;
pub mod reentrant_lock;
pub mod running_loop;
pub mod thread;
pub mod waiting;
