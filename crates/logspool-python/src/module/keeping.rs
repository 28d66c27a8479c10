//! Python functions for keepers: processes that deliver the records of a killed program.

use std::ffi::CString;
use std::path::PathBuf;

use logspool::keeper::Command;
use pyo3::prelude::*;

/// The words of a command line or an environment, as bytes in the operating system's encoding.
type Words = Vec<Vec<u8>>;

/// Become the keeper of the process to which the pidfd `watched` refers. Ends this process.
#[pyfunction]
#[pyo3(signature = (watched, folder, /))]
pub fn keep(watched: i32, folder: PathBuf) {
    let code = i32::from(logspool::keeper::keep(watched, &folder).is_err());
    // SAFETY: no preconditions. The process ends at once, and no finalizer or exit handler of the interpreter has to
    // run.
    unsafe { libc::_exit(code) }
}

/// Become the keeper of a process whose queue is in memory, and end this process afterwards. Descriptor 3 is a pidfd of
/// the watched process; through the socket 4 that process passes its files.
#[pyfunction]
#[pyo3(signature = (program, /))]
pub fn keep_memory(program: u32) {
    let code = i32::from(logspool::keeper::keep_memory(program).is_err());
    // SAFETY: no preconditions. The process ends at once, and no finalizer or exit handler of the interpreter has to
    // run.
    unsafe { libc::_exit(code) }
}

/// Set the command line and environment that start a keeper for a queue in memory, or the reason why no keeper is
/// started.
#[pyfunction]
#[pyo3(signature = (command, why, /))]
pub fn set_keeper_command(command: Option<(Words, Words)>, why: String) -> PyResult<()> {
    let c_strings = |words: Words| words.into_iter().map(CString::new).collect::<Result<Vec<_>, _>>();
    let command = match command {
        Some((arguments, environment)) => {
            Ok(Command { arguments: c_strings(arguments)?, environment: c_strings(environment)? })
        }
        None => Err(why),
    };
    logspool::keeper::set_command(command);
    Ok(())
}
