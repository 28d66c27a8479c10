//! Processes whose queue is in memory that a keeper holds, killed at a random moment. The keeper delivers every record
//! that was accepted, once.
//!
//! The keeper is this same test binary, which runs its test `keeper_process`.

use crate::orphan;

use std::ffi::CString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;

use logspool::keeper::{self, Command};
use orphan::exact::{judge, rotated};
use orphan::{Dice, Scene, Task, await_that};

const KEEPS: &str = "LOGSPOOL_KEEPS";

#[test]
fn child_process() {
    let c_string = |word: Vec<u8>| CString::new(word).unwrap();
    let own = std::env::current_exe().unwrap().into_os_string().into_vec();
    let arguments = [own, b"--exact".to_vec(), own_test!("keeper_process").into_bytes()].map(c_string).into();
    let others = std::env::vars_os().filter(|(name, _)| !name.to_string_lossy().starts_with("LOGSPOOL_CHILD"));
    let mut environment: Vec<CString> =
        others.map(|(name, value)| c_string([name.into_vec(), value.into_vec()].join(&b'='))).collect();
    environment.push(c_string(format!("{KEEPS}=1").into_bytes()));
    keeper::set_command(Ok(Command { arguments, environment }));
    orphan::child_main();
}

#[test]
fn keeper_process() {
    if std::env::var_os(KEEPS).is_some() {
        let program = std::env::args().next_back().unwrap().parse().unwrap();
        let code = i32::from(keeper::keep_memory(program).is_err());
        // SAFETY: ends the process, so that nothing of the test harness runs afterwards.
        unsafe { libc::_exit(code) };
    }
}

/// Whether the keeper of this process runs. It is executed before the process accepts its first record, and shows its
/// arguments a moment later.
fn has_keeper(process: u32) -> bool {
    let end = format!("keeper_process\0{process}\0");
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let mut words = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    words.any(|words| words.ends_with(end.as_bytes()))
}

/// A scene whose queue folder is open to other users. The library refuses such a folder, so the queue is in memory.
fn scene() -> Scene {
    let scene = Scene::new(own_test!("child_process"));
    std::fs::set_permissions(scene.queue.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    scene
}

fn kill_and_judge(task: Task, rounds: u32) {
    let mut dice = Dice::new();
    for _ in 0..rounds {
        let scene = scene();
        let witness = scene.spawn(task);
        witness.await_report();
        std::thread::sleep(std::time::Duration::from_micros(dice.below(30_000)));
        let process = witness.id();
        await_that("the queue is in memory that a keeper holds", || has_keeper(process));
        let witnessed = witness.kill();
        await_that("the keeper has done its work", || !has_keeper(process));

        let text: String = rotated(&scene.target).iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
        judge(task, &text, &witnessed, &[]);
        assert_eq!(Vec::<String>::new(), scene.names());
    }
}

#[test]
fn every_accepted_line_survives_a_kill() {
    kill_and_judge(Task::Log, 10);
}

#[test]
fn large_records_survive_a_kill() {
    kill_and_judge(Task::LogLarge, 10);
}

#[test]
fn a_rotated_file_has_every_line_once() {
    kill_and_judge(Task::LogRotating, 5);
}

#[test]
fn records_that_a_frozen_sink_did_not_accept_survive_a_kill() {
    let scene = scene();
    let fifo = scene.freeze_full();
    let witness = scene.spawn(Task::Log);
    let process = witness.id();
    // Segment and lock are open twice, which makes four.
    await_that("the records move to overflow files", || memory_files(process) > 4);
    std::fs::remove_file(&scene.target).unwrap();
    let witnessed = witness.kill();
    await_that("the keeper has done its work", || !has_keeper(process));

    judge(Task::Log, &std::fs::read_to_string(&scene.target).unwrap(), &witnessed, &[]);
    drop(fifo);
}

/// Number of memory files that a process has open.
fn memory_files(process: u32) -> usize {
    let entries = std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let links = entries.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    links.filter(|link| link.to_string_lossy().starts_with("/memfd:logspool")).count()
}
