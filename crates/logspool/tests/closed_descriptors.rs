//! A program in any language that closes every descriptor and opens files of its own.

use crate::line;

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use line::{DEADLINE, begin, counted, file_sink, in_child, log, route_to, sum};
use logspool::pipeline::{self, Options};

/// Closes all descriptors above the standard ones, as daemons do.
fn close_all() {
    let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let numbers: Vec<i32> = links.map(|link| link.file_name().to_str().unwrap().parse().unwrap()).collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        // SAFETY: this program has no value with a descriptor that it uses later.
        unsafe { libc::close(number) };
    }
}

/// Bytes of a file that is longer than a segment.
const LONG_BYTES: u64 = 100 * 1024 * 1024;

/// Opens files with the lowest free numbers, most of them short and one long.
fn open_files(folder: &Path) -> Vec<File> {
    let files: Vec<_> = (0..40)
        .map(|index| {
            File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .open(folder.join(index.to_string()))
                .unwrap()
        })
        .collect();
    files.iter().for_each(|file| (&mut &*file).write_all(b"payload").unwrap());
    files[0].set_len(LONG_BYTES).unwrap();
    files[0].write_all_at(b"end", LONG_BYTES - 3).unwrap();
    files
}

fn assert_unchanged(files: &[File]) {
    let mut text = [0; 7];
    for (index, file) in files.iter().enumerate() {
        let length = if index == 0 { LONG_BYTES } else { 7 };
        assert_eq!(length, file.metadata().unwrap().len(), "{index}");
        file.read_exact_at(&mut text, 0).unwrap();
        assert_eq!(b"payload", &text);
    }
    let mut end = [0; 3];
    files[0].read_exact_at(&mut end, LONG_BYTES - 3).unwrap();
    assert_eq!(b"end", &end);
    // Punched holes would leave fewer blocks, memory of the segment more.
    assert!(files[0].metadata().unwrap().blocks() <= 32, "{}", files[0].metadata().unwrap().blocks());
}

fn close_and_log(folder: &Path, path: &Path, route: u32, sink: u32, before: u64) {
    close_all();
    let files = open_files(folder);
    for index in 0..20_000 {
        assert!(log(route, 20, &index.to_string()));
    }
    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));

    assert_unchanged(&files);
    let text = std::fs::read_to_string(path).unwrap();
    assert_eq!(20_000 + before as usize, text.lines().count());
    assert_eq!(before + 20_000, sum(counted(sink).written));
}

#[test]
fn the_files_of_the_program_are_untouched_and_every_line_is_in_the_log() {
    begin(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.log");
    let sink = file_sink(&path);
    let route = route_to("app", sink);
    assert!(log(route, 20, "first"));
    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));

    close_and_log(folder.path(), &path, route, sink, 1);

    in_child(|| {
        let (own, path) = (folder.path().join("child"), folder.path().join("child.log"));
        std::fs::create_dir(&own).unwrap();
        let sink = file_sink(&path);
        let route = route_to("child", sink);
        assert!(log(route, 20, "first"));
        close_and_log(&own, &path, route, sink, 1);
    });
}
