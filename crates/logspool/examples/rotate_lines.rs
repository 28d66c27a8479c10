//! Drives one file sink by orders on standard input, for `tests/python/sinks/compare.py`.
//!
//! The first line is the definition, each further one an order, fields divided by tabs:
//!
//! ```text
//! rotating  PATH  MAX_BYTES  BACKUPS  TERMINATOR_CHARS  early|current
//! timed     PATH  WHEN  INTERVAL  BACKUPS  local|utc  AT|-  ROLLOVER_AT|-  early|current
//! watched   PATH
//! line      SECONDS  HEX      one record, its terminator included
//! chunk                       writes the lines since the last chunk
//! rename    FROM  TO          the rest is done by "others" between two chunks
//! remove    PATH
//! append    PATH  HEX
//! ```
//!
//! At the end it prints how often the sink went over to another file.

use std::fs;
use std::io::{BufRead, Write};
use std::str::FromStr;

use logspool::sink::{Lines, Mark, Sink};
use logspool::sinks;
use logspool::sinks::{RotatingFileOptions, RotationRules, SinkOptions, TimedRotatingFileOptions, WatchedFileOptions};
use logspool_record::definition::{Descriptor, SinkDefinition, Zone};

fn main() {
    let mut orders = std::io::stdin().lock().lines().map(|line| line.expect("orders are UTF-8"));
    let definition = definition(&orders.next().expect("a definition"));
    let mut sink = sinks::open(&definition).expect("the sink opens");
    let (mut bytes, mut marks) = (Vec::new(), Vec::new());
    for order in orders {
        let fields: Vec<&str> = order.split('\t').collect();
        match fields[..] {
            ["line", seconds, hex] => {
                bytes.extend_from_slice(&unhex(hex));
                marks.push(Mark { end: bytes.len() as u32, level: 20, class: 1, member: 0, seconds: number(seconds) });
            }
            ["chunk"] => {
                write(sink.as_mut(), &bytes, &marks);
                bytes.clear();
                marks.clear();
            }
            ["rename", from, to] => fs::rename(from, to).expect("rename"),
            ["remove", path] => fs::remove_file(path).expect("remove"),
            ["append", path, hex] => {
                let mut file = fs::OpenOptions::new().append(true).create(true).open(path).expect("append");
                file.write_all(&unhex(hex)).expect("append");
            }
            _ => panic!("no such order: {order}"),
        }
    }
    println!("{}", sink.rotation_count());
}

/// Writes a chunk as the writer does.
fn write(sink: &mut dyn Sink, bytes: &[u8], marks: &[Mark]) {
    let mut written = 0;
    while written < bytes.len() {
        let first = marks.partition_point(|mark| mark.end as usize <= written);
        let lines = Lines { bytes: &bytes[written..], marks: &marks[first..], before: written };
        written += sink.write(lines).expect("the sink writes");
    }
}

fn definition(line: &str) -> SinkDefinition {
    let fields: Vec<&str> = line.split('\t').collect();
    match fields[..] {
        ["rotating", path, max_bytes, backups, terminator_chars, rules] => RotatingFileOptions {
            path: path.to_owned(),
            max_bytes: number(max_bytes),
            backup_count: number(backups),
            terminator_chars: number(terminator_chars),
            rules: rules_of(rules),
        }
        .define(Descriptor::Open),
        ["timed", path, when, interval, backups, zone, at, rollover_at, rules] => TimedRotatingFileOptions {
            path: path.to_owned(),
            when: when.to_owned(),
            interval: number(interval),
            backup_count: number(backups),
            zone: if zone == "utc" { Zone::Utc } else { Zone::Local },
            at_time_seconds: (at != "-").then(|| number(at)),
            rollover_at: (rollover_at != "-").then(|| number(rollover_at)),
            rules: rules_of(rules),
        }
        .define(Descriptor::Open),
        ["watched", path] => WatchedFileOptions { path: path.to_owned() }.define(Descriptor::Open),
        _ => panic!("no such definition: {line}"),
    }
}

fn rules_of(word: &str) -> RotationRules {
    if word == "early" { RotationRules::EARLY } else { RotationRules::CURRENT }
}

fn number<T: FromStr>(text: &str) -> T {
    text.parse().ok().unwrap_or_else(|| panic!("no number: {text}"))
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex")).collect()
}
