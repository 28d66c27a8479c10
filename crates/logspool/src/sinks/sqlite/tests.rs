//! The sink against databases as other programs make and read them.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use logspool_record::definition::{Descriptor, OptionValue};
use logspool_sys::folder::Folder;

use super::SqliteOptions;
use crate::option::OptionTable;
use crate::sink::{Lines, Mark, Origin, Sink, SinkError};
use crate::sinks::SinkOptions;
use crate::sinks::parts::tests::entry;

fn options(path: &Path, more: &[(&str, OptionValue)]) -> SqliteOptions {
    let given = [("path", OptionValue::Text(path.to_str().unwrap().to_owned()))].into_iter().chain(more.to_vec());
    let given = given.map(|(name, value)| (name.to_owned(), value));
    SqliteOptions::from_values(&crate::option::ordered("sqlite", SqliteOptions::ROWS, given).unwrap()).unwrap()
}

fn sink(path: &Path, more: &[(&str, OptionValue)]) -> Box<dyn Sink> {
    options(path, more).open(Descriptor::Open).unwrap()
}

/// A chunk of records with these messages.
fn chunk(messages: &[&str]) -> (Vec<u8>, Vec<Mark>) {
    let (mut bytes, mut marks) = (Vec::new(), Vec::new());
    for message in messages {
        bytes.extend_from_slice(&entry(&[("logger", "shop"), ("message", message), ("user", "ann"), ("line", "7")]));
        marks.push(Mark { end: bytes.len() as u32, level: 20, class: 2, member: 0, seconds: 0 });
    }
    (bytes, marks)
}

fn write(sink: &mut dyn Sink, (bytes, marks): &(Vec<u8>, Vec<Mark>), first: usize) -> Result<usize, SinkError> {
    let before = if first == 0 { 0 } else { marks[first - 1].end as usize };
    sink.write(Lines { bytes: &bytes[before..], marks: &marks[first..], before })
}

fn rows(path: &Path) -> Vec<String> {
    let database = Connection::open(path).unwrap();
    assert_eq!("ok", database.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0)).unwrap());
    let mut statement = database.prepare("SELECT message FROM records ORDER BY id").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn text(text: &str) -> OptionValue {
    OptionValue::Text(text.to_owned())
}

/// The reason of a failed write that is to be tried again.
fn refusal(sink: &mut dyn Sink, records: &(Vec<u8>, Vec<Mark>)) -> String {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        assert!(Instant::now() < deadline);
        match write(sink, records, 0) {
            Err(SinkError::Retry(error)) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(SinkError::Retry(error)) => return error.to_string(),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_record_is_a_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.sqlite");
    let mut sink = sink(&path, &[("synchronous", text("full"))]);
    write(sink.as_mut(), &chunk(&["one", "two"]), 0).unwrap();
    sink.sync().unwrap();

    assert_eq!(["one", "two"], *rows(&path));
    let sql = "SELECT time_ns, level, logger, line, fields FROM records WHERE message = 'two'";
    let row: (i64, i64, String, i64, String) = Connection::open(&path)
        .unwrap()
        .query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))
        .unwrap();
    assert_eq!((1_709_210_096_789_012_345, 20, "shop".to_owned(), 7, "{\"user\":\"ann\"}".to_owned()), row);
}

#[test]
fn a_batch_that_is_written_again_is_stored_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.sqlite");
    let open = || {
        let mut sink = sink(&path, &[]);
        sink.shared().unwrap().set_origin(Origin {
            folder: Folder::open(&folder.path().join("queue")).unwrap(),
            name: "1-2-3".to_owned(),
            uuid: [7; 16],
            sink: 3,
            path: path.clone(),
        });
        sink
    };
    let all = chunk(&["one", "two", "three"]);
    let mut sink = open();
    sink.shared().unwrap().begin(5, 0);
    write(sink.as_mut(), &all, 0).unwrap();
    drop(sink);
    // As a recoverer whose process died before the queue noted the write.
    let mut sink = open();
    sink.shared().unwrap().begin(5, 0);
    write(sink.as_mut(), &all, 0).unwrap();
    // A longer piece of the same batch, and the rest of the next one behind its first piece.
    let longer = chunk(&["one", "two", "three", "four"]);
    write(sink.as_mut(), &longer, 2).unwrap();
    sink.shared().unwrap().begin(6, 0);
    write(sink.as_mut(), &chunk(&["five"]), 0).unwrap();
    let five = chunk(&["five"]).0.len() as u64;
    sink.shared().unwrap().begin(6, five);
    write(sink.as_mut(), &chunk(&["six"]), 0).unwrap();
    sink.shared().unwrap().begin(5, 0);
    write(sink.as_mut(), &all, 0).unwrap();
    sink.shared().unwrap().begin(u64::MAX, 0);
    write(sink.as_mut(), &chunk(&["rest"]), 0).unwrap();

    assert_eq!(["one", "two", "three", "four", "five", "six", "rest"], *rows(&path));
}

#[test]
fn a_locked_database_gets_the_records_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.sqlite");
    let mut sink = sink(&path, &[("busy_timeout", OptionValue::Seconds(0.1))]);
    write(sink.as_mut(), &chunk(&["one"]), 0).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = refusal(sink.as_mut(), &chunk(&["two"]));
    assert!(error.contains("locks the database (fix: "), "{error}");
    other.execute_batch("COMMIT").unwrap();
    write(sink.as_mut(), &chunk(&["two"]), 0).unwrap();

    assert_eq!(["one", "two"], *rows(&path));
}

#[test]
fn a_reader_delays_no_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.sqlite");
    let mut sink = sink(&path, &[]);
    write(sink.as_mut(), &chunk(&["one"]), 0).unwrap();
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let count = |connection: &Connection| -> i64 {
        connection.query_row("SELECT count(*) FROM records", [], |row| row.get(0)).unwrap()
    };
    assert_eq!(1, count(&reader));
    write(sink.as_mut(), &chunk(&["two"]), 0).unwrap();
    sink.sync().unwrap();

    assert_eq!(1, count(&reader));
    assert_eq!(["one", "two"], *rows(&path));
}

#[test]
fn a_file_that_is_not_a_database_is_left_unchanged_with_a_fix() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.sqlite");
    let before = "this is a text of another program\n".repeat(100);
    std::fs::write(&path, &before).unwrap();
    let mut sink = self::sink(&path, &[]);
    let error = refusal(sink.as_mut(), &chunk(&["one"]));

    assert!(error.contains("not a SQLite database (fix: "), "{error}");
    assert_eq!(before, std::fs::read_to_string(&path).unwrap());
    // Once it is moved away, the sink makes a database.
    std::fs::rename(&path, folder.path().join("old")).unwrap();
    write(sink.as_mut(), &chunk(&["one"]), 0).unwrap();
    assert_eq!(["one"], *rows(&path));
    let error = options(folder.path(), &[]).open(Descriptor::Open).err().unwrap();
    assert!(error.to_string().contains("not a regular file"), "{error}");
}

#[test]
fn writes_to_a_missing_folder_or_a_full_disk_are_retried() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing/log.sqlite");
    let mut missing = sink(&path, &[]);
    let error = refusal(missing.as_mut(), &chunk(&["one"]));
    assert!(error.contains("(fix: the rights of the file and its folder)"), "{error}");
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    write(missing.as_mut(), &chunk(&["one"]), 0).unwrap();
    assert_eq!(["one"], *rows(&path));

    let path = folder.path().join("small.sqlite");
    let mut small = super::SqliteSink::of(options(&path, &[]));
    write(&mut small, &chunk(&["one"]), 0).unwrap();
    small.seat.as_ref().unwrap().run(|database| database.as_ref().unwrap().limit_pages(12)).unwrap();
    let long = "x".repeat(100_000);
    match write(&mut small, &chunk(&[&long]), 0) {
        Err(SinkError::Retry(error)) => assert_eq!(Some(libc::ENOSPC), error.raw_os_error()),
        other => panic!("{other:?}"),
    }
    write(&mut small, &chunk(&[&long]), 0).unwrap();
    assert_eq!(2, rows(&path).len());
}

#[test]
fn a_refused_record_is_counted_alone_and_the_rest_is_stored() {
    let all = ["one", "bad", "two", "three", "bad", "four"];
    // ABORT undoes the statement, ROLLBACK the transaction, and IGNORE leaves the row out without an error.
    for action in ["RAISE(ABORT, 'no')", "RAISE(FAIL, 'no')", "RAISE(ROLLBACK, 'no')", "RAISE(IGNORE)"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.sqlite");
        let mut sink = sink(&path, &[]);
        write(sink.as_mut(), &chunk(&["first"]), 0).unwrap();
        let trigger = format!(
            "CREATE TRIGGER picky BEFORE INSERT ON records WHEN new.message = 'bad' BEGIN SELECT {action}; END"
        );
        execute(&path, &trigger);
        let records = chunk(&all);
        let mut written = 0;
        while written < records.0.len() {
            let first = records.1.partition_point(|mark| mark.end as usize <= written);
            written += write(sink.as_mut(), &records, first).unwrap();
        }

        assert_eq!([0, 0, 2, 0, 0, 0], sink.take_refused(), "{action}");
        assert!(sink.trouble().unwrap().to_string().contains("refuses a record"), "{action}");
        assert_eq!(["first", "one", "two", "three", "four"], *rows(&path), "{action}");
    }
}

fn execute(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn the_next_records_after_a_removed_or_replaced_database_go_to_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.sqlite");
    let beside = |name: &str| folder.path().join(format!("log.sqlite{name}"));
    let mut sink = sink(&path, &[]);
    write(sink.as_mut(), &chunk(&["one"]), 0).unwrap();
    let moved = folder.path().join("moved.sqlite");
    std::fs::rename(&path, &moved).unwrap();
    write(sink.as_mut(), &chunk(&["two"]), 0).unwrap();
    assert!(sink.trouble().unwrap().to_string().contains("removed or replaced"));
    assert_eq!((vec!["one".to_owned()], vec!["two".to_owned()]), (rows(&moved), rows(&path)));

    // Without its log, and then with it.
    std::fs::remove_file(&path).unwrap();
    write(sink.as_mut(), &chunk(&["three"]), 0).unwrap();
    assert_eq!(["three"], *rows(&path));
    for name in ["", "-wal", "-shm"] {
        std::fs::remove_file(beside(name)).unwrap();
    }
    write(sink.as_mut(), &chunk(&["four"]), 0).unwrap();
    assert_eq!(["four"], *rows(&path));

    std::fs::rename(&moved, &path).unwrap();
    write(sink.as_mut(), &chunk(&["five"]), 0).unwrap();
    assert_eq!(["one", "five"], *rows(&path));
    // A log that is gone takes no record with it.
    std::fs::remove_file(beside("-wal")).unwrap();
    write(sink.as_mut(), &chunk(&["six"]), 0).unwrap();
    assert_eq!(["one", "five", "six"], *rows(&path));
}

#[test]
fn a_link_to_a_database_is_synced_and_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, first, second) = (folder.path().join("log"), folder.path().join("a.db"), folder.path().join("b.db"));
    std::os::unix::fs::symlink(&first, &path).unwrap();
    let mut sink = sink(&path, &[]);
    write(sink.as_mut(), &chunk(&["one"]), 0).unwrap();
    sink.sync().unwrap();
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(&second, &path).unwrap();
    write(sink.as_mut(), &chunk(&["two"]), 0).unwrap();

    assert_eq!((vec!["one".to_owned()], vec!["two".to_owned()]), (rows(&first), rows(&second)));
}

#[test]
fn several_sinks_can_write_to_one_database_and_one_can_close() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.sqlite");
    let (mut one, mut two) = (sink(&path, &[]), sink(&path, &[]));
    for _ in 0..3 {
        write(one.as_mut(), &chunk(&["one"]), 0).unwrap();
        write(two.as_mut(), &chunk(&["two"]), 0).unwrap();
        one.leave();
    }
    drop(one);
    write(two.as_mut(), &chunk(&["two"]), 0).unwrap();

    assert_eq!(["one", "two", "one", "two", "one", "two", "two"], *rows(&path));
}

#[test]
fn a_child_of_a_raw_fork_does_not_touch_the_open_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.sqlite");
    let mut sink = sink(&path, &[]);
    write(sink.as_mut(), &chunk(&["one"]), 0).unwrap();
    // SAFETY: the child uses one sink, and ends by `_exit`. No other thread of this program is needed there.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = match write(sink.as_mut(), &chunk(&["two"]), 0) {
            Err(SinkError::Retry(error)) => error.to_string().contains("forked while the database was in use"),
            _ => false,
        };
        // SAFETY: no preconditions.
        unsafe { libc::_exit(i32::from(!refused)) };
    }
    let mut status = -1;
    // SAFETY: a child of ours and a local.
    unsafe { libc::waitpid(child, &mut status, 0) };
    write(sink.as_mut(), &chunk(&["three"]), 0).unwrap();

    assert_eq!((0, vec!["one".to_owned(), "three".to_owned()]), (status, rows(&path)));
}

#[test]
fn old_records_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.sqlite");
    // The records of these tests are of 2024.
    let mut sink = sink(&path, &[("keep_days", OptionValue::Whole(1))]);
    write(sink.as_mut(), &chunk(&["one"]), 0).unwrap();

    assert!(rows(&path).is_empty());
}
