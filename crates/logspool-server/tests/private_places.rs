//! Only the user of the service and the members of one group can open the files of the stores.

use crate::sqlite_support;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use logspool_server::stores::file::FileStore;
use logspool_server::stores::private::Readers;
use logspool_server::stores::sqlite::{Indexing, SqliteOptions, SqliteStore};
use logspool_server::stores::{Store, StoreError};
use sqlite_support::{DAY, ManualClock, TODAY, close, delivery, indexed, open, open_with, said, write};

/// The id of another user.
const OTHER_USER: u32 = 65534;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Names and modes of the files in a folder.
fn modes(folder: &Path) -> Vec<(String, u32)> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut modes: Vec<_> =
        files.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), mode(&path))).collect();
    modes.sort();
    modes
}

fn is_root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        eprintln!("skipped: only root can give a file to somebody else");
    }
    root
}

fn fatal<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
    match result {
        Err(StoreError::Fatal(why)) => why,
        other => panic!("not fatal: {other:?}"),
    }
}

#[test]
fn every_file_of_a_new_folder_is_accessible_only_to_its_owner() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("logs");
    let hand = ManualClock::at(TODAY);
    let mut store = open_with(&folder, &hand, Indexing::Background);
    write(&mut store, &[said(1, "a")]);
    indexed(&store.reader());
    let all = modes(&folder);

    assert_eq!(0o700, mode(&folder));
    for name in ["lock", "catalog.sqlite", "2026-11-22.sqlite", "2026-11-22.sqlite-wal", "2026-11-22.sqlite-shm"] {
        assert!(all.contains(&(name.to_owned(), 0o600)), "{name}: {all:?}");
    }
    assert!(all.iter().any(|(name, _)| name == "2026-11-22.index") && all.iter().all(|(_, mode)| *mode == 0o600));
    close(store);
}

#[test]
fn a_folder_that_others_can_open_is_closed_to_them_with_all_its_files() {
    for before in [0o755, 0o777, 0o750, 0o701] {
        let folder = tempfile::tempdir().unwrap();
        let hand = ManualClock::at(TODAY);
        close(open(folder.path(), &hand));
        for (name, _) in modes(folder.path()) {
            set_mode(&folder.path().join(name), 0o644);
        }
        fs::write(folder.path().join("notes.txt"), "of somebody").unwrap();
        set_mode(&folder.path().join("notes.txt"), 0o644);
        set_mode(folder.path(), before);
        hand.set(TODAY + DAY);
        let mut store = open(folder.path(), &hand);
        write(&mut store, &[said(2, "b")]);

        assert_eq!(0o700, mode(folder.path()), "{before:o}");
        for (name, mode) in modes(folder.path()) {
            assert_eq!(if name == "notes.txt" { 0o644 } else { 0o600 }, mode, "{name}");
        }
    }
}

#[test]
fn only_the_members_of_a_group_can_read() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("logs");
    close(open(&folder, &ManualClock::at(TODAY)));
    set_mode(&folder, 0o777);
    // A group that the folder does not have yet, if the test may set one.
    let group = if nix::unistd::geteuid().is_root() { 12_345 } else { fs::metadata(&folder).unwrap().gid() };
    let readers = Readers::Group(group);
    let hand = ManualClock::at(TODAY + DAY);
    let options =
        SqliteOptions { readers, indexing: Indexing::Background, clock: hand.clock(), ..SqliteOptions::default() };
    let mut store = SqliteStore::open(&folder, options).unwrap();
    write(&mut store, &[said(1, "a")]);
    indexed(&store.reader());
    let text = folder.join("text");
    FileStore::open(&text, readers).unwrap();

    assert_eq!((0o2750, group), (mode(&folder), fs::metadata(&folder).unwrap().gid()));
    for (name, mode) in modes(&folder) {
        let path = folder.join(&name);
        assert_eq!((0o640, group), (mode, fs::metadata(&path).unwrap().gid()), "{name}");
    }
    // Opened again without a group, folder and files are only accessible to the owner.
    close(store);
    close(open(&folder, &hand));
    assert_eq!(0o700, mode(&folder));
    assert_eq!(0o600, mode(&folder.join("2026-11-23.sqlite")));
}

#[test]
fn files_of_another_user_are_refused_with_a_fix() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    close(open(folder.path(), &ManualClock::at(TODAY)));
    let link = tempfile::tempdir().unwrap();
    let link = link.path().join("link");
    symlink(folder.path(), &link).unwrap();
    for (given, opened) in [(folder.path(), folder.path()), (folder.path(), &link)] {
        chown(given, Some(OTHER_USER), None).unwrap();
        let why = fatal(SqliteStore::open(opened, SqliteOptions::default()));
        assert!(why.contains("belongs to the user with the number 65534") && why.contains("chown -R 0"), "{why}");
        chown(given, Some(0), None).unwrap();
    }
    let file = folder.path().join("2026-11-22.sqlite");
    chown(&file, Some(OTHER_USER), None).unwrap();
    let why = fatal(SqliteStore::open(folder.path(), SqliteOptions::default()));
    assert!(why.contains("2026-11-22.sqlite") && why.contains("65534"), "{why}");
    let why = fatal(FileStore::open(&file, Readers::Owner));
    assert!(why.contains("2026-11-22.sqlite") && why.contains("65534"), "{why}");
}

#[test]
fn a_link_in_place_of_a_file_is_refused_and_its_target_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    close(open(folder.path(), &ManualClock::at(TODAY)));
    let other = tempfile::NamedTempFile::new().unwrap();
    set_mode(other.path(), 0o644);
    symlink(other.path(), folder.path().join("2026-11-21.sqlite")).unwrap();

    let why = fatal(SqliteStore::open(folder.path(), SqliteOptions::default()));
    assert!(why.contains("2026-11-21.sqlite") && why.contains("symbolic link"), "{why}");
    assert_eq!(0o644, mode(other.path()));
}

#[test]
fn a_text_file_is_accessible_only_to_its_owner_also_when_recreated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut store = FileStore::open(&path, Readers::Owner).unwrap();
    let lines = [delivery(&[said(1, "a")], None)];
    store.write(&lines).unwrap();
    assert_eq!(0o600, mode(&path));
    fs::rename(&path, folder.path().join("log.1")).unwrap();
    store.write(&lines).unwrap();
    assert_eq!(0o600, mode(&path));

    // A file of an older logspool, with the usual permissions.
    set_mode(&path, 0o644);
    FileStore::open(&path, Readers::Owner).unwrap();
    assert_eq!(0o600, mode(&path));
    assert_eq!(1, fs::read_to_string(&path).unwrap().lines().count());
}
