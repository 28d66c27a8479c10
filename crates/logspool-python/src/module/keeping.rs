//! Keepers: processes that deliver what a killed program left.

use std::ffi::CString;
use std::path::PathBuf;

use logspool::keeper::Command;
use pyo3::prelude::*;

/// Words of a command line or an environment, as the system has them.
type Words = Vec<Vec<u8>>;

/// Become the keeper of the process that `watched` is a pidfd of. Ends this process.
#[pyfunction]
#[pyo3(signature = (watched, folder, /))]
pub fn keep(watched: i32, folder: PathBuf) {
    let code = i32::from(logspool::keeper::keep(watched, &folder).is_err());
    // SAFETY: nothing of this interpreter has to be ended, and nothing of it is to run.
    unsafe { libc::_exit(code) }
}

/// Become the keeper of a process whose queue is in memory: descriptor 3 is a pidfd of it, 4 the socket by which it
/// hands over its files. Ends this process.
#[pyfunction]
#[pyo3(signature = (program, /))]
pub fn keep_memory(program: u32) {
    let code = i32::from(logspool::keeper::keep_memory(program).is_err());
    // SAFETY: as in `keep`.
    unsafe { libc::_exit(code) }
}

/// Say by which command line and environment a keeper is started for a queue in memory, or why there is to be none.
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
