//! A forked child cannot open the output of its parent: each of its records is refused and counted.

use logspool::pipeline::{self, Options, Refusal};
use logspool::{debug, front, info};

const COUNT: u64 = 3;

#[test]
fn records_without_an_output_are_refused_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (queue, logs) = (folder.path().join("queue"), folder.path().join("logs"));
    std::fs::create_dir(&logs).unwrap();
    let options = Options { queue_dir: Some(queue), ..Options::default() };
    front::builder().file(logs.join("a.log")).options(options).start().unwrap();
    info!("from the parent");
    std::fs::remove_dir_all(&logs).unwrap();

    // SAFETY: the child logs, counts and ends without unwinding.
    let child = unsafe { libc::fork() };
    if child == 0 {
        for number in 0..COUNT {
            info!("{}", number);
            debug!("{} is not wanted", number);
        }
        let counts = pipeline::snapshot().unwrap();
        let no_lane: u64 = counts.refused[Refusal::NoLane as usize].iter().sum();
        let all: u64 = counts.refused.iter().flatten().sum();
        let is_exact = (COUNT, COUNT) == (no_lane, all);
        // SAFETY: no preconditions.
        unsafe { libc::_exit(i32::from(!is_exact)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child.
    assert_eq!(child, unsafe { libc::waitpid(child, &mut status, 0) });
    assert_eq!(0, status);
}
