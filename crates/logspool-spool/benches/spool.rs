//! What does the spool cost beside the plainest thing that does the same work?
//!
//! `cargo bench -p logspool-spool --bench spool`. Append and sync every 50 records, against write and fdatasync of the same
//! bytes; opening a folder that holds much, against `cat` of its files. `LOGSPOOL_BENCH_FOLDER` names the folder to work
//! in (default: beside the build). Each line is the median of the rounds and their spread.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::time::Instant;

use logspool_spool::{Batch, Options, RealDisk, Spool};

const ROUNDS: usize = 7;
const SYNCS: u64 = 400;
const RECORDS: u32 = 50;
const RECORD_BYTES: usize = 120;
/// Bytes of a folder that is opened.
const HELD_BYTES: u64 = 512 * 1024 * 1024;

fn main() {
    let base = std::env::var("LOGSPOOL_BENCH_FOLDER").unwrap_or_else(|_| env!("CARGO_TARGET_TMPDIR").to_owned());
    println!("in {base}");
    sync_every_50(Path::new(&base));
    scan(Path::new(&base));
}

fn folder(base: &Path) -> tempfile::TempDir {
    tempfile::Builder::new().permissions(PermissionsExt::from_mode(0o700)).tempdir_in(base).unwrap()
}

fn show(name: &str, unit: &str, mut rounds: Vec<f64>) -> f64 {
    rounds.sort_by(f64::total_cmp);
    let median = rounds[rounds.len() / 2];
    println!("{name:<44} {median:>10.1} {unit}  ({:.1} to {:.1})", rounds[0], rounds[rounds.len() - 1]);
    median
}

fn sync_every_50(base: &Path) {
    let payload = vec![b'x'; RECORDS as usize * RECORD_BYTES];
    let (mut spools, mut grown, mut filled) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let folder = folder(base);
        let mut spool = Spool::open(vec![RealDisk::open(folder.path()).unwrap()], Options::default()).unwrap();
        let batch = |first| Batch { first, count: RECORDS, codec: 0, payload: &payload };
        // The first append makes the segment and the reserve: not the question here.
        let mut next = spool.append(&batch(0)).unwrap();
        spool.sync().unwrap();
        let rate = |seconds: f64| SYNCS as f64 * f64::from(RECORDS) / seconds / 1000.0;
        let start = Instant::now();
        for _ in 0..SYNCS {
            next = spool.append(&batch(next)).unwrap();
            assert_eq!(next, spool.sync().unwrap());
        }
        spools.push(rate(start.elapsed().as_secs_f64()));
        assert_eq!(next, (SYNCS + 1) * u64::from(RECORDS));

        let mut file = File::create(folder.path().join("raw")).unwrap();
        let start = Instant::now();
        for _ in 0..SYNCS {
            file.write_all(&payload).unwrap();
            file.sync_data().unwrap();
        }
        grown.push(rate(start.elapsed().as_secs_f64()));

        let file = OpenOptions::new().write(true).create_new(true).open(folder.path().join("raw-filled")).unwrap();
        file.write_all_at(&vec![0; 16 * 1024 * 1024], 0).unwrap();
        file.sync_all().unwrap();
        let start = Instant::now();
        for number in 0..SYNCS {
            file.write_all_at(&payload, number * payload.len() as u64).unwrap();
            file.sync_data().unwrap();
        }
        filled.push(rate(start.elapsed().as_secs_f64()));
    }
    let unit = "thousand records/s";
    let spool = show("spool, append and sync every 50", unit, spools);
    let grown = show("write and fdatasync, file grows", unit, grown);
    let filled = show("write and fdatasync, file filled before", unit, filled);
    println!("{:<44} {:>10.2} of a growing file, {:.2} of a filled one", "ratio", spool / grown, spool / filled);
}

fn scan(base: &Path) {
    let payload = vec![b'x'; 64 * 1024];
    let folder = folder(base);
    let mut spool = Spool::open(vec![RealDisk::open(folder.path()).unwrap()], Options::default()).unwrap();
    let mut next = 0;
    while next * (payload.len() as u64) < HELD_BYTES {
        next = spool.append(&Batch { first: next, count: 1, codec: 0, payload: &payload }).unwrap();
    }
    spool.close().unwrap();
    let (mut opens, mut cats) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let spool = Spool::open(vec![RealDisk::open(folder.path()).unwrap()], Options::default()).unwrap();
        let seconds = start.elapsed().as_secs_f64();
        assert_eq!((next, 0), (spool.next(), spool.stats().lost_records));
        opens.push(spool.bytes() as f64 / seconds / 1e6);
        drop(spool);

        let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        let segments = names.iter().filter(|path| path.extension().is_some_and(|kind| kind == "seg"));
        let bytes: u64 = segments.clone().map(|path| path.metadata().unwrap().len()).sum();
        let start = Instant::now();
        let status =
            std::process::Command::new("cat").args(segments).stdout(std::process::Stdio::null()).status().unwrap();
        let seconds = start.elapsed().as_secs_f64();
        assert!(status.success());
        cats.push(bytes as f64 / seconds / 1e6);
    }
    let opened = show("opening, everything scanned, last one copied", "MB/s", opens);
    let cat = show("cat of its segments to nowhere", "MB/s", cats);
    println!("{:<44} {:>10.2}", "ratio", opened / cat);
}
