//! The names of the files in an open folder.
//!
//! The standard library lists a folder by its path only. A path of the descriptor needs /proc, which some containers and
//! every program after `chroot` lack.

use std::ffi::CStr;
use std::io;
use std::os::fd::RawFd;
use std::ptr::NonNull;

/// Returns the names of the entries of an open folder that are valid UTF-8.
///
/// # Errors
///
/// The errors of openat(2) and readdir(3).
pub fn names_in(folder: RawFd) -> io::Result<Vec<String>> {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
    // SAFETY: a path that is a C string. The call checks the descriptor.
    let opened = unsafe { libc::openat(folder, c".".as_ptr(), flags) };
    if opened < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was opened above, and only the stream uses it from here on.
    let Some(stream) = NonNull::new(unsafe { libc::fdopendir(opened) }) else {
        let error = io::Error::last_os_error();
        // SAFETY: without a stream the descriptor is still this function's own.
        unsafe { libc::close(opened) };
        return Err(error);
    };
    let names = read_all(stream);
    // SAFETY: the stream is open, and nothing uses it afterwards.
    unsafe { libc::closedir(stream.as_ptr()) };
    names
}

fn read_all(stream: NonNull<libc::DIR>) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    loop {
        // SAFETY: errno is a variable of this thread. The stream is open and used by this thread only.
        let entry = unsafe {
            *libc::__errno_location() = 0;
            libc::readdir64(stream.as_ptr())
        };
        if entry.is_null() {
            let error = io::Error::last_os_error();
            return if error.raw_os_error() == Some(0) { Ok(names) } else { Err(error) };
        }
        // SAFETY: an entry is valid until the next call of readdir, and its name is a C string.
        let name = unsafe { CStr::from_ptr((&raw const (*entry).d_name).cast()) };
        if let Some(name) = name.to_str().ok().filter(|name| !matches!(*name, "." | "..")) {
            names.push(name.to_owned());
        }
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_folder_is_listed_by_its_descriptor() {
        let path = std::env::temp_dir().join(format!("logspool-names-{}", std::process::id()));
        std::fs::create_dir(&path).expect("a new folder");
        for name in ["a", "b"] {
            std::fs::write(path.join(name), "").expect("a new file");
        }
        let folder = std::fs::File::open(&path).expect("the folder");
        let (mut first, second) = (names_in(folder.as_raw_fd()).expect("names"), names_in(folder.as_raw_fd()));
        std::fs::remove_dir_all(&path).expect("the folder");
        first.sort();

        assert_eq!(["a", "b"], first[..]);
        assert_eq!(2, second.expect("names again").len());
        assert!(names_in(-1).is_err());
    }
}
