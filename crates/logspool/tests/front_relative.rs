//! Relative paths: a killed program's lines are in the files that the paths named when the program gave them.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use logspool::front::{self, Output};
use logspool::info;
use logspool::option::OptionValue;
use logspool::pipeline::Options;
use logspool::recover;

/// Names the working folder of the test's copy of itself that logs.
const FOLDER: &str = "LOGSPOOL_TEST_FOLDER";
const COUNT: usize = 20_000;
const FILES: [&str; 2] = ["plain.log", "rotating.log"];

/// Logs from another folder than the one in which the paths were given, and is killed. `None`: this is the test itself.
fn log_and_die() -> Option<()> {
    std::env::set_current_dir(std::env::var_os(FOLDER)?).unwrap();
    let rotating = Output::sink("rotating", [("path".to_owned(), OptionValue::Text(FILES[1].to_owned()))]);
    let options = Options { queue_dir: Some("queue".into()), ..Options::default() };
    let builder = front::builder().format("%(message)s").options(options).file(FILES[0]).output(rotating);
    std::env::set_current_dir("other").unwrap();
    builder.start().unwrap();
    for number in 0..COUNT {
        info!("{}", number);
    }
    // SAFETY: a signal to this process.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    Some(())
}

#[test]
fn the_lines_of_a_killed_program_are_in_the_files_that_it_named() {
    if log_and_die().is_some() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("other")).unwrap();
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", &own_test!("the_lines_of_a_killed_program_are_in_the_files_that_it_named")]);
    let ended = program.env(FOLDER, folder.path()).output().unwrap();
    assert_eq!(Some(libc::SIGKILL), ended.status.signal(), "{}", String::from_utf8_lossy(&ended.stderr));

    let queue = folder.path().join("queue");
    let report = recover::recover(&queue, |_| true, recover::RecoverOptions::default()).unwrap();
    for name in FILES {
        let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
        let expected: Vec<String> = (0..COUNT).map(|number| number.to_string()).collect();
        assert_eq!(expected, text.lines().collect::<Vec<_>>(), "{name}: {report:?}");
    }
    assert_eq!(0, std::fs::read_dir(folder.path().join("other")).unwrap().count());
}
