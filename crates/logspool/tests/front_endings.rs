//! Programs that end in every way: each accepted record is in the file once, at once or after a recovery.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use logspool::front;
use logspool::info;
use logspool::pipeline::Options;

/// Names the way in which the test's copy of itself ends.
const ENDING: &str = "LOGSPOOL_TEST_ENDING";
const FOLDER: &str = "LOGSPOOL_TEST_FOLDER";
const COUNT: u32 = 1_000;
/// Room for some of the lines.
const LIMIT_BYTES: u64 = 4 * 1024;
/// The time of the end for programs that write everything.
const LONG: Duration = Duration::from_secs(60);

fn start(folder: &Path, file: &Path, shutdown_timeout: Duration) {
    let options = Options { queue_dir: Some(folder.join("queue")), shutdown_timeout, ..Options::default() };
    front::builder().file(file).format("%(message)s").options(options).start().unwrap();
}

/// Logs and ends the process. `None`: this is the test itself.
fn end_as_told() -> Option<()> {
    let ending = std::env::var(ENDING).ok()?;
    let folder = std::env::var(FOLDER).unwrap();
    let folder = Path::new(&folder);
    let (file, timeout) = match ending.as_str() {
        "full" => ("/dev/full".into(), Duration::from_millis(200)),
        "limit" => (folder.join("a.log"), Duration::from_secs(2)),
        _ => (folder.join("a.log"), LONG),
    };
    start(folder, &file, timeout);
    if ending == "limit" {
        let limit = libc::rlimit { rlim_cur: LIMIT_BYTES, rlim_max: LIMIT_BYTES };
        // SAFETY: `limit` is valid for the call.
        assert_eq!(0, unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) });
    }
    for number in 0..COUNT {
        info!("{} of {}", number, ending.as_str());
    }
    match ending.as_str() {
        "return" => return Some(()),
        "full" => {
            eprintln!("flush: {}", front::flush(Duration::from_millis(200)));
            std::process::exit(0);
        }
        "exit" | "limit" => std::process::exit(0),
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

/// The end of the test's copy of itself that ends in this way.
fn program(ending: &str, folder: &Path) -> Output {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "--nocapture", &own_test!("each_accepted_record_is_in_the_file_once")]);
    program.env(ENDING, ending).env(FOLDER, folder).output().unwrap()
}

#[test]
fn a_full_device_is_reported_once_and_fails_a_flush() {
    let folder = tempfile::tempdir().unwrap();
    let done = program("full", folder.path());

    let told = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success(), "{told}");
    assert!(told.contains("flush: false\n"), "{told}");
    let lines: Vec<_> = told.lines().filter(|line| line.starts_with("logspool: ")).collect();
    assert!(matches!(lines[..], [line] if line.ends_with("(the device is full: /dev/full)")), "{told}");
    assert!(lines[0].starts_with(&format!("logspool: {COUNT} records were not written within 0.2 s")), "{told}");
}

#[test]
fn records_beyond_the_limit_of_a_file_are_reported_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let done = program("limit", folder.path());

    let told = String::from_utf8(done.stderr).unwrap();
    let text = std::fs::read_to_string(folder.path().join("a.log")).unwrap();
    // The limit may cut the last line, whose record counts as not written.
    let written = text.matches('\n').count();
    assert!(done.status.success(), "{told}");
    assert!(written > 0);
    let lines: Vec<_> = told.lines().filter(|line| line.starts_with("logspool: ")).collect();
    let missing = COUNT as usize - written;
    assert!(
        matches!(lines[..], [line] if line.starts_with(&format!("logspool: {missing} records were not written"))),
        "{told}"
    );
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
        let status = program(ending, folder.path()).status;
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
