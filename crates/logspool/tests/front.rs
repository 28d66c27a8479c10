//! The macros for Rust programs: what a user writes, and the lines that it leaves.

use std::path::Path;
use std::time::Duration;

use logspool::front::{self, Level, Output, StartError, debug, display};
use logspool::pipeline::Options;
use logspool::{error, info, trace, warn};
use logspool_record::format::{Extras, FormatSpec};

const DEADLINE: Duration = Duration::from_secs(30);

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

fn counted(value: &mut u32) -> u32 {
    *value += 1;
    *value
}

#[test]
fn a_program_logs_its_records_as_written() {
    let folder = tempfile::tempdir().unwrap();
    let (text, json) = (folder.path().join("a.log"), folder.path().join("a.json"));
    let options = || Options { queue_dir: Some(folder.path().join("queue")), ..Options::default() };
    info!("before the start nothing is logged");
    let bad = || front::builder().options(options());

    let error = bad().output(Output::sink("fyle", [])).start().unwrap_err();
    assert!(error.to_string().contains("\"file\""), "{error}");
    let error = bad().file(folder.path().join("no/such/folder/a.log")).start().unwrap_err();
    assert!(matches!(&error, StartError::Output(reason) if reason.contains("No such file")), "{error}");
    let error = bad().format("%(message)q").start().unwrap_err();
    assert!(matches!(error, StartError::Format(_)), "{error}");
    let error = bad().options(Options { queue_bytes: 1, ..options() }).start().unwrap_err();
    assert!(matches!(&error, StartError::Options(reason) if reason.contains("queue_bytes")), "{error}");

    front::builder()
        .format("%(levelname)s %(name)s:%(lineno)d %(message)s")
        .output(Output::file(&text))
        .output(Output::file(&json).level(Level::Warn).format(FormatSpec::json(
            &[("level", "levelname"), ("message", "message"), ("thread", "threadName")],
            Extras::Append,
        )))
        .level_for("noisy", Level::Error)
        .options(options())
        .start()
        .unwrap();
    assert_eq!(Err(StartError::AlreadyStarted), bad().file(&text).start());

    let (name, mut calls) = ("ada", 0);
    let first = line!() + 1;
    info!("user {} waited {:.3} ms", name, 0.25);
    info!("{name} is captured, {{}} is not: {}", 1);
    info!(target: "shop", "{1} {0:>4} {0:<4}|{2:#x} {3:?}", 7, 'x', 255_u8, "quoted \"text\"");
    warn!(target: "shop", order = 17, user = name, paid = true, cost = 2.5; "order {} is late", 17_u64);
    error!("{}", counted(&mut calls));
    error!("{n} {}", counted(&mut calls), n = counted(&mut calls));
    info!("{} {}", debug(Some(1)), display("é"));
    info!("{} {} {}", i128::MIN, u128::MAX, f32::MAX);
    trace!("{}", counted(&mut calls));
    warn!(target: "noisy", "{}", counted(&mut calls));
    warn!(target: "noisy::inner", "{}", counted(&mut calls));
    warn!(target: "noisy_not", "is another target");
    front::set_level(Level::Trace);
    trace!("{}", "x".repeat(300_000));
    front::set_level(Level::Info);

    assert!(front::flush(DEADLINE));
    assert_eq!(3, calls, "arguments of a call that logs run once, of others never");
    let module = module_path!();
    let at = |offset: u32| first + offset;
    let wanted = vec![
        format!("INFO {module}:{} user ada waited 0.250 ms", at(0)),
        format!("INFO {module}:{} ada is captured, {{}} is not: 1", at(1)),
        format!("INFO shop:{} x    7 7   |0xff \"quoted \\\"text\\\"\"", at(2)),
        format!("WARN shop:{} order 17 is late", at(3)),
        format!("ERROR {module}:{} 1", at(4)),
        format!("ERROR {module}:{} 3 2", at(5)),
        format!("INFO {module}:{} Some(1) é", at(6)),
        format!("INFO {module}:{} {} {} {}", at(7), i128::MIN, u128::MAX, f32::MAX),
        format!("WARN noisy_not:{} is another target", at(11)),
        format!("TRACE {module}:{} {}", at(13), "x".repeat(300_000)),
    ];
    assert_eq!(wanted, lines(&text));
    let thread = std::thread::current().name().unwrap().to_owned();
    let end = |text: &str| format!("\"message\":\"{text}\",\"thread\":\"{thread}\"");
    let json_lines = lines(&json);
    assert_eq!(4, json_lines.len());
    assert_eq!(
        format!(
            "{{\"level\":\"WARN\",{},\"order\":17,\"user\":\"ada\",\"paid\":true,\"cost\":2.5}}",
            end("order 17 is late")
        ),
        json_lines[0]
    );
    assert_eq!(format!("{{\"level\":\"ERROR\",{}}}", end("1")), json_lines[1]);

    // A forked child has ids of its own.
    // SAFETY: the child logs, flushes and ends by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        warn!("of the child {}", 1);
        let is_written = front::flush(DEADLINE);
        // SAFETY: no preconditions.
        unsafe { libc::_exit(i32::from(!is_written)) };
    }
    let mut status = -1;
    // SAFETY: a child of ours and a local.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(0, status);
    let threads: Vec<_> = (0..4)
        .map(|thread| std::thread::spawn(move || (0..5_000).for_each(|number| info!("{} {}", thread, number))))
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(front::flush(DEADLINE));

    let found = lines(&text);
    assert!(found[wanted.len()].ends_with("of the child 1"), "{}", found[wanted.len()]);
    for thread in 0..4 {
        let start = format!(" {thread} ");
        let numbers: Vec<u32> = found[11..]
            .iter()
            .filter(|line| line.contains(&start) && !line.contains("child"))
            .filter_map(|line| line.rsplit_once(' ')?.1.parse().ok())
            .collect();
        assert_eq!((0..5_000).collect::<Vec<_>>(), numbers, "thread {thread}");
    }
}
