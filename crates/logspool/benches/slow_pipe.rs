//! How long does the longest call take if the reader of a pipe stands still, or reads slowly?
//!
//! `cargo bench -p logspool --bench slow_pipe`. One thread logs 400,000 records, 20 every 100 us. Each case runs five
//! times, in a process of its own. Prints for each run the longest call, beside the longest empty call of the same
//! loop, and the number of calls that waited for room. Fails if a record is refused, or does not come once and in
//! order.

use std::io::Read;
use std::time::{Duration, Instant};

use logspool::pipeline::{self, Options, Push, Room, Waiter};
use logspool::sinks::{FileOptions, SinkOptions};
use logspool_record::definition::{Descriptor, RouteDefinition, SiteDefinition, Target};
use logspool_record::format::{FormatSpec, Style};
use logspool_record::{Encoder, Head};

const RECORDS: usize = 400_000;
const CALLS: usize = 20;
const PERIOD: Duration = Duration::from_micros(100);
const ROUNDS: usize = 5;
/// No healthy run comes near it.
const DEADLINE: Duration = Duration::from_secs(60);

/// A pipe and its reader.
struct Case {
    name: &'static str,
    /// Format of a line, and template of the message.
    texts: (&'static str, &'static str),
    /// How long the reader waits before it begins to read.
    frozen: Duration,
    /// Bytes of one read.
    piece: usize,
    /// Bytes that the reader takes in a second.
    speed: f64,
}

const LINE: (&str, &str) = ("%(asctime)s %(levelname)s %(name)s %(message)s", "user %s did %d in %.3f ms");
/// Shows only the second argument: a line of 7 bytes for a record of 67.
const SHORT_LINE: (&str, &str) = ("%(message)s", "%.0s%d%.0s");
const STALL: Duration = Duration::from_millis(1500);

const CASES: [Case; 4] = [
    Case { name: "stalled 1.5 s", texts: LINE, frozen: STALL, piece: 65536, speed: f64::INFINITY },
    Case { name: "stalled 1.5 s, short lines", texts: SHORT_LINE, frozen: STALL, piece: 65536, speed: f64::INFINITY },
    Case { name: "12 MB/s in pieces of 4 KiB", texts: LINE, frozen: Duration::ZERO, piece: 4096, speed: 12e6 },
    Case { name: "stalled 1.5 s, then 30 MB/s", texts: LINE, frozen: STALL, piece: 65536, speed: 30e6 },
];

fn main() {
    if let Some(case) = std::env::args().find_map(|argument| argument.strip_prefix("case=")?.parse().ok()) {
        let case: usize = case;
        return run(&CASES[case]);
    }
    let program = std::env::current_exe().unwrap();
    println!("{:<30} {:>10} {:>10} {:>7}", "", "longest", "empty", "waited");
    for (number, case) in CASES.iter().enumerate() {
        for _ in 0..ROUNDS {
            let argument = format!("case={number}");
            let output = std::process::Command::new(&program).arg(argument).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
            println!("{:<30} {}", case.name, String::from_utf8_lossy(&output.stdout).trim_end());
        }
    }
}

fn run(case: &Case) {
    let folder = tempfile::tempdir().unwrap();
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    pipeline::configure(Options { queue_dir: Some(place.path().join("queue")), ..Options::default() }).unwrap();
    let path = folder.path().join("fifo");
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: a valid C string.
    assert_eq!(0, unsafe { libc::mkfifo(name.as_ptr(), 0o600) });
    // Opened for both directions: without a reader, opening and writing then block instead of failing.
    let fifo = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let kind = FileOptions { path: path.to_str().unwrap().to_owned() };
    let sink = pipeline::open_sink(&kind.define(Descriptor::Open)).unwrap();
    let (layout, template) = case.texts;
    let format = pipeline::define_format(&FormatSpec::text(Style::Percent, layout)).unwrap();
    let targets = vec![Target { sink, format, min_level: 0 }];
    let route = pipeline::define_route(&RouteDefinition { logger: "app".to_owned(), targets }).unwrap();
    let site = pipeline::define_site(&SiteDefinition {
        file: "/srv/app/main.py".to_owned(),
        line: 42,
        function: "main".to_owned(),
        template: Some(template.to_owned()),
        ..SiteDefinition::default()
    })
    .unwrap();

    let (frozen, piece, speed) = (case.frozen, case.piece, case.speed);
    let reader = std::thread::spawn(move || read(fifo, frozen, piece, speed));
    let (mut longest, mut longest_empty) = (Duration::ZERO, Duration::ZERO);
    let mut values = Encoder::new();
    let mut begun = None;
    for number in 0..RECORDS {
        // The first record starts the pipeline; the time runs from the second one on.
        let begun = *begun.get_or_insert_with(Instant::now);
        if number % CALLS == 0 {
            let due = PERIOD * (number / CALLS) as u32;
            std::thread::sleep(due.saturating_sub(begun.elapsed()));
        }
        values.bytes.clear();
        values.str("somebody-with-a-name").int(number as i64).float(3.25159);
        let begin = Instant::now();
        std::hint::black_box(&values.bytes);
        let middle = Instant::now();
        log(site, route, &values.bytes);
        let end = Instant::now();
        if number > 0 {
            longest_empty = longest_empty.max(middle - begin);
            longest = longest.max(end - middle);
        }
    }
    let waited = pipeline::snapshot().unwrap().blocked_calls;
    assert!(pipeline::flush(None, Some(DEADLINE)));
    reader.join().unwrap();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    println!("{:7.3} ms {:7.3} ms {waited:>7}", milliseconds(longest), milliseconds(longest_empty));
    assert_eq!(0, pipeline::drain(DEADLINE));
}

/// Reads all lines, and checks their numbers.
fn read(mut fifo: std::fs::File, frozen: Duration, piece: usize, speed: f64) {
    std::thread::sleep(frozen);
    let begun = Instant::now();
    let (mut text, mut buffer, mut total, mut number) = (Vec::new(), vec![0; piece], 0, 0);
    while number < RECORDS {
        let due = Duration::from_secs_f64(total as f64 / speed);
        std::thread::sleep(due.saturating_sub(begun.elapsed()));
        let count = fifo.read(&mut buffer).unwrap();
        total += count;
        text.extend_from_slice(&buffer[..count]);
        let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        for line in std::str::from_utf8(&text[..end]).unwrap().lines() {
            let shown = line.split(" did ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or(line);
            assert_eq!(Ok(number), shown.parse(), "{line}");
            number += 1;
        }
        text.drain(..end);
    }
}

fn log(site: u32, route: u32, values: &[u8]) {
    let mut waited = Duration::ZERO;
    let head = Head { len: 0, site, route, level: 20, flags: 0, ticks: 0 };
    loop {
        let pushed = pipeline::push(head, values.len(), |place| {
            // SAFETY: `push` reserves room for all values.
            unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), place, values.len()) }
        });
        if pushed == Push::Accepted {
            return;
        }
        let room = pipeline::make_room(20, values.len(), Waiter::Thread, &mut waited);
        assert_eq!(Room::Retry, room, "a record is refused");
    }
}
