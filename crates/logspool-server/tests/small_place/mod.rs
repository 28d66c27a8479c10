//! Tests in a process of their own, which may not make files larger than some bytes: as on a disk that is full.

use std::process::{Command, Stdio};

/// Runs one test of the program in a process of its own, which may not make files larger than some bytes, and where that
/// is an error, not a signal.
pub fn run_in_a_small_place(test: &str) {
    let script = format!("trap '' XFSZ; exec \"$0\" --exact {test} --nocapture --ignored");
    let child = Command::new("sh")
        .args(["-c", &script])
        .arg(std::env::current_exe().unwrap())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout).into_owned() + &String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success() && output.contains("1 passed"), "{output}");
}

/// Sets how large files may become.
pub fn limit(bytes: &str) {
    let pid = std::process::id().to_string();
    let done = Command::new("prlimit").args(["--pid", &pid, &format!("--fsize={bytes}:unlimited")]).status().unwrap();
    assert!(done.success());
}
