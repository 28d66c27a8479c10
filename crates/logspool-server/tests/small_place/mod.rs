//! Runs tests in a separate process with a limit on file sizes, which simulates a full disk.

use std::process::{Command, Stdio};

/// Runs one test of the program in a separate process. In it, writing a file beyond the size limit is an error, not a
/// signal.
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

/// Sets the maximum file size.
pub fn limit(bytes: &str) {
    let pid = std::process::id().to_string();
    let done = Command::new("prlimit").args(["--pid", &pid, &format!("--fsize={bytes}:unlimited")]).status().unwrap();
    assert!(done.success());
}
