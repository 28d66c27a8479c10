//! The spool on real folders: killed writers, a full disk, a limit for files, two folders.
//!
//! `LOGSPOOL_KILLS` sets the rounds of kills, `LOGSPOOL_SEED` repeats a run.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use logspool_spool::{Batch, Frame, GapReason, Item, Options, RealDisk, Spool, SpoolError, WhenFull};

const CONSUMER: u64 = 7;
const RECORDS: u32 = 10;

fn folder() -> tempfile::TempDir {
    tempfile::Builder::new().permissions(PermissionsExt::from_mode(0o700)).tempdir().unwrap()
}

fn small() -> Options {
    let segment_bytes = 128 * 1024;
    Options { segment_bytes, max_bytes: 64 * 1024 * 1024, max_unsynced_bytes: 64 * 1024, ..Options::default() }
}

fn open(path: &Path, options: Options) -> Spool<RealDisk> {
    Spool::open(vec![RealDisk::open(path).unwrap()], options).unwrap()
}

/// Numbers of the records in order, as a program's lines would be.
fn payload(first: u64) -> Vec<u8> {
    (first..first + u64::from(RECORDS)).flat_map(|number| format!("record {number:0>100}\n").into_bytes()).collect()
}

fn append(spool: &mut Spool<RealDisk>) -> Result<u64, SpoolError> {
    let first = spool.next();
    spool.append(&Batch { first, count: RECORDS, codec: 1, payload: &payload(first) })
}

fn check(frame: &Frame, cursor: u64) {
    assert_eq!((cursor, RECORDS, 1), (frame.first, frame.count, frame.codec));
    assert_eq!(payload(cursor), frame.payload);
}

/// Reads everything from `cursor` on and returns the number behind it.
fn read_all(spool: &mut Spool<RealDisk>, mut cursor: u64) -> u64 {
    while let Some(item) = spool.read(CONSUMER).unwrap() {
        match item {
            Item::Frame(frame) => {
                check(&frame, cursor);
                cursor = frame.end();
            }
            gap => panic!("{gap:?} at {cursor}"),
        }
    }
    cursor
}

#[test]
fn appended_records_are_there_after_reopening() {
    let folder = folder();
    let mut spool = open(folder.path(), small());
    assert_eq!(0, spool.add_consumer(CONSUMER).unwrap());
    for _ in 0..1000 {
        append(&mut spool).unwrap();
    }
    assert_eq!(10_000, spool.sync().unwrap());
    spool.ack(CONSUMER, 5_000).unwrap();
    spool.close().unwrap();
    let mut spool = open(folder.path(), small());

    assert_eq!(5_000, spool.add_consumer(CONSUMER).unwrap());
    assert_eq!(10_000, read_all(&mut spool, 5_000));
    let stats = spool.stats();
    assert_eq!((0, 0, false), (stats.lost_records, stats.quarantined_frames, stats.is_degraded), "{stats:?}");
    spool.ack(CONSUMER, 10_000).unwrap();
    spool.checkpoint().unwrap();
    assert!(spool.bytes() <= 3 * small().segment_bytes, "{} bytes are kept for nothing", spool.bytes());
}

#[test]
fn batches_refused_by_a_sink_are_set_aside_and_block_no_other() {
    let folder = folder();
    let mut spool = open(folder.path(), small());
    spool.add_consumer(CONSUMER).unwrap();
    append(&mut spool).unwrap();
    append(&mut spool).unwrap();
    let Some(Item::Frame(frame)) = spool.read(CONSUMER).unwrap() else { panic!("no frame") };
    spool.reject(CONSUMER, &frame).unwrap();

    assert_eq!(20, read_all(&mut spool, 10));
    assert_eq!(1, spool.stats().dead_frames);
    let dead: Vec<_> = std::fs::read_dir(folder.path().join("dead")).unwrap().map(Result::unwrap).collect();
    assert_eq!(1, dead.len());
    let bytes = std::fs::read(dead[0].path()).unwrap();
    assert!(bytes.windows(frame.payload.len()).any(|window| window == frame.payload));
}

#[test]
fn the_oldest_records_are_dropped_if_so_configured_and_the_reader_learns_it() {
    let folder = folder();
    let segment_bytes = 128 * 1024;
    let options = Options { segment_bytes, max_bytes: 5 * segment_bytes, when_full: WhenFull::DropOldest, ..small() };
    let mut spool = open(folder.path(), options.clone());
    spool.add_consumer(CONSUMER).unwrap();
    for _ in 0..2000 {
        append(&mut spool).unwrap();
        assert!(spool.bytes() <= options.max_bytes);
    }
    let Some(Item::Gap { from: 0, to, reason: GapReason::Dropped }) = spool.read(CONSUMER).unwrap() else {
        panic!("the reader is not told")
    };

    assert_eq!(20_000, read_all(&mut spool, to));
    assert_eq!(to, spool.stats().dropped_records);
}

/// Keeps another process, or this one, from a folder twice.
#[test]
fn a_folder_belongs_to_one_process() {
    let folder = folder();
    let _spool = open(folder.path(), small());
    let witness = Witness::spawn("open", folder.path());
    let mut answer = String::new();
    (&witness.reports).read_to_string(&mut answer).unwrap();

    assert!(answer.contains("another process uses it"), "{answer}");
}

#[test]
fn records_survive_a_kill_of_their_writer() {
    let kills = std::env::var("LOGSPOOL_KILLS").map_or(20, |kills| kills.parse().unwrap());
    let clock = || std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos().into();
    let mut seed: u64 = std::env::var("LOGSPOOL_SEED").map_or_else(|_| clock(), |seed| seed.parse().unwrap());
    println!("LOGSPOOL_SEED={seed}");
    let folder = folder();
    let (mut records, mut last) = (0, 0);
    for round in 0..kills {
        let witness = Witness::spawn("write", folder.path());
        let mut report = [0; 8];
        (&witness.reports).read_exact(&mut report).unwrap();
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_micros((seed >> 40) % 20_000));
        let (appended, acked) = witness.kill(report);
        let mut spool = open(folder.path(), small());
        let position = spool.add_consumer(CONSUMER).unwrap();
        let end = read_all(&mut spool, position);

        assert!(position <= acked, "round {round}: begins at {position}, {acked} were acked");
        assert!(end >= appended, "round {round}: ends at {end}, {appended} were appended");
        assert_eq!(0, spool.stats().quarantined_frames);
        records += end - last;
        last = end;
        if round % 2 == 0 {
            spool.ack(CONSUMER, end).unwrap();
            spool.close().unwrap();
        }
    }
    println!("{kills} kills, {records} records, 0 missing, 0 twice");
}

/// A child of this very test binary; its standard input is where it reports.
struct Witness {
    process: std::process::Child,
    reports: UnixStream,
}

impl Witness {
    fn spawn(task: &str, folder: &Path) -> Self {
        let (reports, end) = UnixStream::pair().unwrap();
        let process = Command::new(std::env::current_exe().unwrap())
            .args(["child_process", "--exact", "--nocapture"])
            .env("LOGSPOOL_SPOOL_CHILD", task)
            .env("LOGSPOOL_SPOOL_FOLDER", folder)
            .stdin(Stdio::from(OwnedFd::from(end)))
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        reports.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self { process, reports }
    }

    /// Kills it and returns how much it had appended and acked at least and at most.
    fn kill(mut self, first: [u8; 8]) -> (u64, u64) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        let mut bytes = first.to_vec();
        self.reports.read_to_end(&mut bytes).unwrap();
        let words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
        // The highest bit tells acks, which are reported before they are given.
        let (acked, appended): (Vec<u64>, Vec<u64>) = words.partition(|word| word >> 63 == 1);
        let most = |words: Vec<u64>| words.into_iter().max().unwrap_or(0) & (u64::MAX >> 1);
        (most(appended), most(acked))
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn child_process() {
    let Ok(task) = std::env::var("LOGSPOOL_SPOOL_CHILD") else { return };
    let folder = std::env::var("LOGSPOOL_SPOOL_FOLDER").unwrap();
    // SAFETY: the parent made descriptor 0 the reporting end, and nothing else here uses it.
    let mut report = unsafe { File::from_raw_fd(0) };
    match task.as_str() {
        "open" => {
            let error = RealDisk::open(Path::new(&folder)).unwrap_err();
            report.write_all(error.to_string().as_bytes()).unwrap();
        }
        "write" => write_without_end(Path::new(&folder), &mut report),
        "limited" => fill_under_a_limit(Path::new(&folder)),
        _ => unreachable!("{task}"),
    }
}

fn write_without_end(folder: &Path, report: &mut File) {
    let mut spool = open(folder, small());
    let mut cursor = spool.add_consumer(CONSUMER).unwrap();
    let acked = |end: u64| (end | 1 << 63).to_le_bytes();
    // What a former life acked counts for this one too.
    report.write_all(&acked(cursor)).unwrap();
    loop {
        for _ in 0..5 {
            let end = append(&mut spool).unwrap();
            report.write_all(&end.to_le_bytes()).unwrap();
        }
        spool.sync().unwrap();
        // Slower than it is filled, so that there is something to recover.
        for _ in 0..4 {
            if let Some(Item::Frame(frame)) = spool.read(CONSUMER).unwrap() {
                check(&frame, cursor);
                cursor = frame.end();
            }
        }
        report.write_all(&acked(cursor)).unwrap();
        spool.ack(CONSUMER, cursor).unwrap();
        if cursor.is_multiple_of(7) {
            spool.checkpoint().unwrap();
        }
    }
}

#[test]
fn a_limit_for_files_refuses_batches_until_it_is_lifted() {
    let folder = folder();
    let mut witness = Witness::spawn("limited", folder.path());
    let status = witness.process.wait().unwrap();

    assert!(status.success(), "{status}");
    let mut spool = open(folder.path(), small());
    assert_eq!(0, spool.add_consumer(CONSUMER).unwrap());
    assert_eq!(10, read_all(&mut spool, 0));
}

/// No test for the parent: the limit holds for the whole process.
fn fill_under_a_limit(folder: &Path) {
    let set = |bytes: u64| {
        let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: `limit` lives through the call; ignoring a signal has no handler to be unsafe.
        unsafe {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            assert_eq!(0, libc::setrlimit(libc::RLIMIT_FSIZE, &limit));
        }
    };
    set(50_000);
    let mut spool = open(folder, small());
    spool.add_consumer(CONSUMER).unwrap();
    spool.checkpoint().expect("the checkpoint is below the limit");
    let error = append(&mut spool).unwrap_err();
    assert!(matches!(&error, SpoolError::Disk(error) if error.is_full()), "{error}");
    assert!(error.to_string().contains(".tmp: "), "the path is missing: {error}");
    set(libc::RLIM_INFINITY);
    assert_eq!(10, append(&mut spool).unwrap());
    spool.close().unwrap();
}

/// A tmpfs of one MiB. `None`: this user may not mount.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let target = std::ffi::CString::new(folder.path().to_str().unwrap()).unwrap();
        let data = c"size=1m,mode=0700";
        // SAFETY: all texts are valid C strings that live through the call.
        let mounted =
            unsafe { libc::mount(c"none".as_ptr(), target.as_ptr(), c"tmpfs".as_ptr(), 0, data.as_ptr().cast()) };
        if mounted == 0 {
            return Some(Self(folder));
        }
        println!("skipped: cannot mount a tmpfs: {}", std::io::Error::last_os_error());
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let target = std::ffi::CString::new(self.0.path().to_str().unwrap()).unwrap();
        // SAFETY: a valid C string; the tests have closed what they opened there, else the mount goes with them.
        unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
    }
}

fn fill(spool: &mut Spool<RealDisk>) -> SpoolError {
    loop {
        if let Err(error) = append(spool) {
            return error;
        }
        assert!(spool.next() < 100_000, "a disk of one MiB takes no 10 MB");
    }
}

#[test]
fn a_full_disk_refuses_batches_until_others_are_delivered() {
    let Some(disk) = SmallDisk::mount() else { return };
    let mut spool = open(disk.0.path(), small());
    spool.add_consumer(CONSUMER).unwrap();
    let mut cursor = 0;
    for _ in 0..5 {
        let error = fill(&mut spool);
        assert!(matches!(&error, SpoolError::Disk(error) if error.is_full()), "{error}");
        let end = spool.sync().unwrap();
        assert_eq!(end, read_all(&mut spool, cursor));
        assert!(end > cursor, "nothing was taken although everything was delivered");
        cursor = end;
        spool.ack(CONSUMER, end).unwrap();
        spool.checkpoint().expect("acks are kept on a full disk too");
    }
    drop(spool);
    let mut spool = open(disk.0.path(), small());
    assert_eq!(cursor, spool.add_consumer(CONSUMER).unwrap());
    assert_eq!(0, spool.stats().lost_records);
}

#[test]
fn a_spool_on_a_full_disk_reopens_with_all_its_records() {
    let Some(disk) = SmallDisk::mount() else { return };
    let mut spool = open(disk.0.path(), small());
    spool.add_consumer(CONSUMER).unwrap();
    spool.checkpoint().unwrap();
    fill(&mut spool);
    let end = spool.sync().unwrap();
    drop(spool);
    // Not a byte is left for the opening.
    let mut filler = File::create(disk.0.path().join("filler")).unwrap();
    while filler.write(&[1; 512]).is_ok_and(|count| count > 0) {}
    for _ in 0..3 {
        let mut spool = open(disk.0.path(), small());
        assert_eq!(end, read_all(&mut spool, 0));
    }
    let mut spool = open(disk.0.path(), small());
    spool.add_consumer(CONSUMER).unwrap();
    spool.ack(CONSUMER, end).unwrap();
    spool.checkpoint().expect("acks are kept on a full disk too");
    append(&mut spool).expect("what is delivered makes room");
}

#[test]
fn a_second_folder_takes_the_batches_that_do_not_fit_into_the_first() {
    let Some(disk) = SmallDisk::mount() else { return };
    let second = folder();
    let disks = || [disk.0.path(), second.path()].map(|path| RealDisk::open(path).unwrap());
    let mut spool = Spool::open(disks().into(), small()).unwrap();
    spool.add_consumer(CONSUMER).unwrap();
    for _ in 0..2000 {
        append(&mut spool).unwrap();
    }
    spool.sync().unwrap();
    drop(spool);
    let mut spool = Spool::open(disks().into(), small()).unwrap();

    spool.add_consumer(CONSUMER).unwrap();
    assert_eq!(20_000, read_all(&mut spool, 0));
}
