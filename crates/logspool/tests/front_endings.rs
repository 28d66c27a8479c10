//! Programs that end in every way: each accepted record is in the file once, at once or after a recovery.

use std::path::Path;
use std::process::Command;

use logspool::front;
use logspool::info;
use logspool::pipeline::Options;

/// Names the way in which the test's copy of itself ends.
const ENDING: &str = "LOGSPOOL_TEST_ENDING";
const FOLDER: &str = "LOGSPOOL_TEST_FOLDER";
const COUNT: u32 = 1_000;

fn start(folder: &Path) {
    let options = Options { queue_dir: Some(folder.join("queue")), ..Options::default() };
    front::builder().file(folder.join("a.log")).format("%(message)s").options(options).start().unwrap();
}

/// Logs and ends the process. `None`: this is the test itself.
fn end_as_told() -> Option<()> {
    let ending = std::env::var(ENDING).ok()?;
    start(Path::new(&std::env::var(FOLDER).unwrap()));
    for number in 0..COUNT {
        info!("{} of {}", number, ending.as_str());
    }
    match ending.as_str() {
        "return" => return Some(()),
        "exit" => std::process::exit(0),
        "abort" => std::process::abort(),
        "kill" => signal(libc::SIGKILL),
        "term" => signal(libc::SIGTERM),
        // SAFETY: the fault is the point.
        "segv" => unsafe { (std::hint::black_box(16) as *mut u8).write_volatile(1) },
        // SAFETY: no preconditions.
        "_exit" => unsafe { libc::_exit(0) },
        other => panic!("unknown ending {other}"),
    }
    std::thread::sleep(std::time::Duration::from_secs(30));
    panic!("the process goes on after {ending}");
}

fn signal(number: i32) {
    // SAFETY: a signal to this process.
    unsafe { libc::kill(libc::getpid(), number) };
}

#[test]
fn each_accepted_record_is_in_the_file_once() {
    if end_as_told().is_some() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // What a kill leaves is delivered by the start of the next program, which is the last one here.
    let endings = ["exit", "abort", "term", "segv", "kill", "_exit", "return"];
    for ending in endings {
        let mut program = Command::new(std::env::current_exe().unwrap());
        program.args(["--exact", &own_test!("each_accepted_record_is_in_the_file_once")]).env(ENDING, ending);
        let status = program.env(FOLDER, folder.path()).output().unwrap().status;
        assert_eq!(matches!(ending, "exit" | "_exit" | "return"), status.success(), "{ending}: {status}");
    }

    let text = std::fs::read_to_string(folder.path().join("a.log")).unwrap();
    for ending in endings {
        let numbers: Vec<u32> =
            text.lines().filter_map(|line| line.strip_suffix(&format!(" of {ending}"))?.parse().ok()).collect();
        assert_eq!((0..COUNT).collect::<Vec<_>>(), numbers, "{ending}");
    }
    assert_eq!(COUNT as usize * endings.len(), text.lines().count());
}
