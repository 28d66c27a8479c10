//! Measures the bytes a second that go into a log file, and the cost of writing one line.
//!
//! `cargo bench -p logspool --bench append [-- bulk|single]`. Wall time and processor time of the process, median and
//! spread of seven rounds; the bytes are counted at the end.

use std::time::{Duration, Instant};

use logspool::pipeline::{self, Push, Waiter};
use logspool::sinks::{FileOptions, SinkOptions};
use logspool_record::definition::{Descriptor, RouteDefinition, Target};
use logspool_record::format::{FormatSpec, Style};
use logspool_record::{Head, tag};

const ROUNDS: usize = 7;
/// Long lines, so that appending outweighs all other work.
const LINE: [u8; 1_000] = [b'x'; 1_000];

fn log(route: u32) {
    let head = Head { len: 0, site: 0, route, level: 20, flags: 0, ticks: 0 };
    let mut waited = Duration::ZERO;
    loop {
        let pushed = pipeline::push(head, 5 + LINE.len(), |place| {
            // SAFETY: `push` reserves five bytes and the bytes of the line.
            unsafe {
                place.write(tag::MESSAGE);
                place.add(1).cast::<u32>().write_unaligned(LINE.len() as u32);
                std::ptr::copy_nonoverlapping(LINE.as_ptr(), place.add(5), LINE.len());
            }
        });
        if pushed == Push::Accepted {
            return;
        }
        let _ = pipeline::make_room(20, 5 + LINE.len(), Waiter::Thread, &mut waited);
    }
}

fn processor_time() -> Duration {
    // SAFETY: an all-zero rusage is a valid value, and the pointer is valid for the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let of = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    of(usage.ru_utime) + of(usage.ru_stime)
}

fn main() {
    let single = std::env::args().any(|argument| argument == "single");
    let (records, at_once) = if single { (20_000, 1) } else { (400_000, 400_000) };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bench.log");
    let kind = FileOptions { path: path.to_str().unwrap().to_owned() };
    let sink = pipeline::open_sink(&kind.define(Descriptor::Open)).unwrap();
    let format = pipeline::define_format(&FormatSpec::text(Style::Percent, "%(message)s")).unwrap();
    let targets = vec![Target { sink, format, min_level: 0 }];
    let route = pipeline::define_route(&RouteDefinition { logger: "bench".to_owned(), targets }).unwrap();

    let (mut wall, mut processor) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        // Truncated, so that a round does not wait for the disk to write the data of earlier rounds.
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
        let (start, used) = (Instant::now(), processor_time());
        for _ in 0..records / at_once {
            (0..at_once).for_each(|_| log(route));
            assert!(pipeline::flush(None, Some(Duration::from_secs(60))));
        }
        wall.push(start.elapsed().as_secs_f64());
        processor.push((processor_time() - used).as_secs_f64());
        // A record that was refused on a busy machine was logged again, and a further line reports it.
        assert!(std::fs::metadata(&path).unwrap().len() >= (records * (LINE.len() + 1)) as u64);
    }
    let megabytes = (records * (LINE.len() + 1)) as f64 / 1e6;
    for (name, mut rounds) in [("wall", wall), ("processor", processor)] {
        rounds.sort_by(f64::total_cmp);
        let rate = |seconds: f64| if single { seconds * 1e6 / records as f64 } else { megabytes / seconds };
        let unit = if single { "us a line" } else { "MB a second" };
        let (median, last) = (rate(rounds[ROUNDS / 2]), rate(rounds[ROUNDS - 1]));
        println!("{name:<10} {median:8.1} {unit} ({:.1} to {last:.1})", rate(rounds[0]));
    }
    assert_eq!(0, pipeline::drain(Duration::from_secs(10)));
}
