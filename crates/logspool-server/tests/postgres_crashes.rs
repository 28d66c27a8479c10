//! The PostgreSQL store when its server crashes.

use crate::postgres;

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use logspool_server::delivery::Outcome;
use logspool_server::query::Query;
use logspool_server::stores::postgres::PostgresReader;
use logspool_server::stores::{Store, StoreError};
use postgres::batches::{all_records_query, chunk, config, records, write, writer};
use postgres::{DEADLINE, Server};
use tempfile::TempDir;

const CHUNK: u64 = 200;

fn wait_for(acked: &AtomicU64, at_least: u64) {
    let until = Instant::now() + DEADLINE;
    while acked.load(Ordering::Relaxed) < at_least {
        assert!(Instant::now() < until, "the writer does not get on");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn acked_records_survive_crashes_of_the_server_without_duplicates() {
    let Some(server) = Server::start() else { return };
    let (acked, done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let sender = thread::spawn({
        let (acked, done, url) = (acked.clone(), done.clone(), server.url("postgres"));
        move || {
            let mut store = writer(&url);
            let mut first = 1;
            while !done.load(Ordering::Relaxed) {
                // Two chunks in a transaction, as from a service with several clients.
                let group = ["a", "b"].map(|stream| chunk(stream, 1, first, first + CHUNK - 1));
                let written = write(&mut store, &group);
                assert_eq!(vec![Outcome::Committed; 2], written.outcomes);
                assert_eq!(0, written.expired);
                acked.store(first + CHUNK - 1, Ordering::Relaxed);
                first += CHUNK;
            }
        }
    });

    let kills = std::env::var("LOGSPOOL_KILLS").map_or(5, |kills| kills.parse().unwrap());
    for round in 0..kills {
        wait_for(&acked, acked.load(Ordering::Relaxed) + 10 * CHUNK);
        server.crash(if round % 2 == 0 { "KILL" } else { "QUIT" });
        server.start_again_at_last();
    }
    wait_for(&acked, acked.load(Ordering::Relaxed) + CHUNK);
    done.store(true, Ordering::Relaxed);
    sender.join().unwrap();

    let acked = i64::try_from(acked.load(Ordering::Relaxed)).unwrap();
    let database = server.named("postgres");
    assert_eq!(2 * acked, database.number("SELECT count(*) FROM logspool.records"));
    assert_eq!(2 * acked, database.number("SELECT count(DISTINCT message) FROM logspool.records"));
}

#[test]
fn a_connection_lost_while_idle_does_not_fail_a_query() {
    let Some(server) = Server::start() else { return };
    let url = server.url("postgres");
    write(&mut writer(&url), &[chunk("s", 1, 1, 3)]);
    let reader = PostgresReader::new(&config(&url));
    let newest = Query { limit: Some(1), ..all_records_query() };
    assert_eq!(1, records(&reader, &newest).len());

    server.crash("QUIT");
    server.start_again_at_last();

    assert_eq!("s/1/3", records(&reader, &newest)[0].message);
}

/// A proxy between a store and the server. It cuts the connection at the `COMMIT` of rows on request.
struct CrashingProxy {
    folder: TempDir,
    cut: Arc<AtomicU8>,
}

/// Do not cut.
const NOT: u8 = 0;
/// Cut once, before the server gets the commit.
const BEFORE: u8 = 1;
/// Cut once, before the store gets the result.
const AFTER: u8 = 2;

impl CrashingProxy {
    fn new(server: &Server) -> Self {
        let between = Self { folder: TempDir::new_in("/tmp").unwrap(), cut: Arc::default() };
        let listener = UnixListener::bind(between.folder.path().join(".s.PGSQL.5432")).unwrap();
        let (cut, socket) = (between.cut.clone(), server.socket());
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), UnixStream::connect(&socket).unwrap());
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let cut = cut.clone();
                let is_mute = Arc::new(AtomicBool::new(false));
                let mute = is_mute.clone();
                let mut has_rows = false;
                let forward = move |bytes: &[u8]| {
                    let holds = |wanted: &[u8]| bytes.windows(wanted.len()).any(|part| part == wanted);
                    has_rows |= holds(b"PGCOPY\n");
                    if !has_rows || !holds(b"COMMIT\0") {
                        return true;
                    }
                    let what = cut.swap(NOT, Ordering::SeqCst);
                    mute.store(what == AFTER, Ordering::SeqCst);
                    what != BEFORE
                };
                thread::spawn(move || pass(from, to, forward));
                thread::spawn(move || pass(server, client, |_| !is_mute.load(Ordering::SeqCst)));
            }
        });
        between
    }

    fn url(&self) -> String {
        format!("postgres://logspool@/postgres?host={}", self.folder.path().display())
    }
}

/// Passes bytes on until `may` returns false, then cuts both ends.
fn pass(mut from: UnixStream, mut to: UnixStream, mut may: impl FnMut(&[u8]) -> bool) {
    let mut buffer = vec![0; 1 << 20];
    loop {
        match from.read(&mut buffer) {
            Ok(read @ 1..) if may(&buffer[..read]) && to.write_all(&buffer[..read]).is_ok() => {}
            _ => break,
        }
    }
    for end in [from, to] {
        drop(end.shutdown(Shutdown::Both));
    }
}

#[test]
fn marks_show_whether_a_commit_with_an_unknown_outcome_took_effect() {
    let Some(server) = Server::start() else { return };
    let between = CrashingProxy::new(&server);
    let mut store = writer(&between.url());
    write(&mut store, &[chunk("s", 1, 1, 5)]);
    let group = [chunk("s", 1, 6, 10), chunk("new", 1, 1, 5)];

    between.cut.store(BEFORE, Ordering::SeqCst);
    let lost = store.write(&group).unwrap_err();
    between.cut.store(AFTER, Ordering::SeqCst);
    let taken = store.write(&group).unwrap_err();
    let written = store.write(&group).unwrap();

    assert!(matches!((lost, taken), (StoreError::Retry(_), StoreError::Retry(_))));
    assert_eq!((0, 10, vec![Outcome::Committed; 2]), (written.stored, written.repeated, written.outcomes));
    let database = server.named("postgres");
    assert_eq!(15, database.number("SELECT count(*) FROM logspool.records"));
    assert_eq!(15, database.number("SELECT count(DISTINCT message) FROM logspool.records"));
}
