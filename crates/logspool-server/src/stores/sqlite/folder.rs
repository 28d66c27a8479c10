//! The folder of the store: the names of its files, and the lock that prevents a second service from writing.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use chrono::{Datelike, NaiveDate};

use super::failure::failed_io;
use crate::stores::StoreError;
use crate::stores::private::{self, Readers};

/// Name of the catalog in the folder.
pub(super) const CATALOG: &str = "catalog.sqlite";

/// Name of the lock file.
const LOCK: &str = "lock";

/// Suffixes of the files that SQLite keeps next to a database.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

const DAY_NS: i64 = 86_400_000_000_000;

/// Days from the first day of the calendar to 1970.
const DAYS_TO_1970: i32 = 719_163;

/// A day in UTC, counted from 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Day(i32);

impl Day {
    /// The day of a time in nanoseconds since 1970.
    pub fn of(time_ns: i64) -> Self {
        Self(i32::try_from(time_ns.div_euclid(DAY_NS)).unwrap_or_default())
    }

    /// Number of days from `other` to this day.
    pub fn after(self, other: Self) -> i32 {
        self.0 - other.0
    }

    /// The number of the day, counted from 1970.
    pub fn number(self) -> i64 {
        self.0.into()
    }

    /// The first and the last time of the day, in nanoseconds since 1970. For today, the last time is `now_ns`.
    pub fn time_range(self, now_ns: i64) -> (i64, i64) {
        let first = self.number().saturating_mul(DAY_NS);
        (first, first.saturating_add(DAY_NS - 1).min(now_ns).max(first))
    }

    /// The name of the day's nth file. The first file has number 1.
    pub fn file_name(self, nth: u32) -> String {
        let date = NaiveDate::from_num_days_from_ce_opt(self.0 + DAYS_TO_1970).unwrap_or_default();
        match nth {
            1 => format!("{}.sqlite", date.format("%F")),
            _ => format!("{}.{nth}.sqlite", date.format("%F")),
        }
    }

    /// The day in the name of a file. `None`: the name is not the name of a day file.
    pub fn in_name(name: &str) -> Option<Self> {
        let name = name.strip_suffix(".sqlite")?;
        let (date, nth) = name.split_once('.').unwrap_or((name, "1"));
        let date = NaiveDate::parse_from_str(date, "%F").ok()?;
        let day = Self(date.num_days_from_ce() - DAYS_TO_1970);
        let nth = nth.parse().ok()?;
        (day.file_name(nth).strip_suffix(".sqlite") == Some(name)).then_some(day)
    }
}

/// The lock of a folder. It is held while this value exists. If the process is killed, the kernel releases the lock.
#[derive(Debug)]
pub(super) struct FolderLock {
    _file: File,
}

/// Creates the folder if it is missing, and locks it. Only `readers` keep access.
pub(super) fn lock(folder: &Path, readers: Readers) -> Result<FolderLock, StoreError> {
    let was_open = private::make_folder(folder, readers)?;
    let path = folder.join(LOCK);
    private::make_file(&path, readers)?;
    let lock = try_lock(folder, &path)?;
    let mut files = 0;
    for name in names(folder, is_of_the_store)? {
        files += usize::from(private::repair_file(&folder.join(name), readers)?.is_some());
    }
    let shown = folder.display();
    if let Some(mode) = was_open {
        tracing::warn!(
            "other users could open {shown} (mode {mode:04o}) and {files} files in it; this is repaired, but users \
             who have files open keep access to them"
        );
    } else if files > 0 {
        tracing::info!(
            "{files} files in {shown} gave access to other users, which the folder prevented; the access is removed"
        );
    }
    Ok(lock)
}

fn try_lock(folder: &Path, path: &Path) -> Result<FolderLock, StoreError> {
    let mut file =
        OpenOptions::new().read(true).write(true).open(path).map_err(|error| failed_io("open", path, &error))?;
    match file.try_lock() {
        Ok(()) => {
            // The process id is for error messages and for people.
            let _ = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
            Ok(FolderLock { _file: file })
        }
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            let _ = file.take(20).read_to_string(&mut holder);
            Err(StoreError::Fatal(format!(
                "cannot write to {}: process {} does; give each service its own folder",
                folder.display(),
                if holder.is_empty() { "?" } else { &holder }
            )))
        }
        Err(TryLockError::Error(error)) => Err(failed_io("lock", path, &error)),
    }
}

/// True if a file with this name in the folder belongs to the store.
fn is_of_the_store(name: &str) -> bool {
    let base = COMPANIONS.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let day = base.strip_suffix(".index").map(|day| format!("{day}.sqlite"));
    base == LOCK || base == CATALOG || Day::in_name(day.as_deref().unwrap_or(base)).is_some()
}

/// Names of the day files in the folder.
pub(super) fn day_files(folder: &Path) -> Result<Vec<String>, StoreError> {
    names(folder, |name| Day::in_name(name).is_some())
}

/// Removes each index whose day file does not exist.
pub(super) fn remove_lone_indexes(folder: &Path) -> Result<(), StoreError> {
    for name in names(folder, |name| name.ends_with(".index"))? {
        let path = folder.join(name);
        if is_gone(&path.with_extension("sqlite")) {
            remove_database(&path)?;
        }
    }
    Ok(())
}

fn names(folder: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<String>, StoreError> {
    let read = || -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder)? {
            // A name that is not UTF-8 is not the name of a file of the store, so it is skipped.
            names.extend(entry?.file_name().into_string().ok().filter(|name| wanted(name)));
        }
        Ok(names)
    };
    read().map_err(|error| failed_io("list", folder, &error))
}

/// Path of a day file's index.
pub(super) fn index_of(path: &Path) -> PathBuf {
    path.with_extension("index")
}

/// Removes a day's file and its index.
pub(super) fn remove_day(path: &Path) -> Result<(), StoreError> {
    remove_database(&index_of(path))?;
    remove_database(path)
}

/// Removes a database and the files that SQLite keeps next to it.
///
/// The database is removed first. If a kill leaves only its log, SQLite discards the log when a new database gets the
/// same name.
pub(super) fn remove_database(path: &Path) -> Result<(), StoreError> {
    for path in std::iter::once(path.to_owned()).chain(companions(path)) {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed_io("remove", &path, &error)),
            _ => {}
        }
    }
    Ok(())
}

/// True if a file is certainly gone. An I/O error does not prove that the file is gone.
pub(super) fn is_gone(path: &Path) -> bool {
    matches!(path.try_exists(), Ok(false))
}

/// Total bytes of a day file, its index, and the files that SQLite keeps next to both.
pub(super) fn bytes_of_day(path: &Path) -> u64 {
    let index = index_of(path);
    let all = [path.to_owned(), index.clone()].into_iter().chain(companions(path)).chain(companions(&index));
    all.filter_map(|path| fs::metadata(path).ok()).map(|file| file.len()).sum()
}

/// True if the header of a database says that it uses a log.
pub(super) fn needs_log(path: &Path) -> bool {
    const WRITE_VERSION: usize = 18;
    let mut header = [0; WRITE_VERSION + 1];
    File::open(path).and_then(|mut file| file.read_exact(&mut header)).is_ok() && header[WRITE_VERSION] == 2
}

/// Path of a database's log.
pub(super) fn log_of(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    PathBuf::from(log)
}

/// True if neither the database nor one of the files that SQLite keeps next to it exists.
pub(super) fn is_free(path: &Path) -> bool {
    is_gone(path) && companions(path).all(|path| is_gone(&path))
}

/// Returns the actual and the expected bytes of a database that was truncated. `None`: it was not truncated.
pub(super) fn cut_off(path: &Path) -> Option<(u64, u64)> {
    const HEAD: usize = 100;
    let mut head = [0; HEAD];
    let mut file = File::open(path).ok()?;
    let bytes = file.metadata().ok()?.len();
    file.read_exact(&mut head).ok()?;
    let number = |at: usize| head[at..].first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
    let page = match u16::from_be_bytes([head[16], head[17]]) {
        1 => 1 << 16,
        page => u64::from(page),
    };
    let wanted = u64::from(number(28)) * page;
    // If the database uses a log, its length is not final. The page count in the header is valid only if its two
    // version marks agree.
    (head[18] == 1 && number(24) == number(92) && bytes < wanted).then_some((bytes, wanted))
}

fn companions(path: &Path) -> impl Iterator<Item = PathBuf> {
    COMPANIONS.iter().map(move |end| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_inspected_does_not_count_as_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("2026-11-22.sqlite");
        assert!(is_gone(&path));
        File::create(&path).unwrap();

        assert!(!is_gone(&path));
        // The path does not exist, but the system reports an error other than "not found".
        let unknown = path.join("behind a file");
        assert!(!unknown.exists() && !is_gone(&unknown));
    }

    #[test]
    fn a_day_is_read_from_its_own_file_names_and_from_no_others() {
        let day = Day::of(1_795_305_600_000_000_000);

        assert_eq!("2026-11-22.sqlite", day.file_name(1));
        assert_eq!("2026-11-22.3.sqlite", day.file_name(3));
        assert_eq!(Some(day), Day::in_name("2026-11-22.sqlite"));
        assert_eq!(Some(day), Day::in_name("2026-11-22.3.sqlite"));
        for other in
            ["catalog.sqlite", "2026-11-22.index", "2026-11-22.1.sqlite", "2026-1-22.sqlite", "2026-13-01.sqlite"]
        {
            assert_eq!(None, Day::in_name(other), "{other}");
        }
        for time_ns in [i64::MIN, -1, i64::MAX] {
            let day = Day::of(time_ns);
            assert_eq!(Some(day), Day::in_name(&day.file_name(1)), "{time_ns}");
        }
    }
}
