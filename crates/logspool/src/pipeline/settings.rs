//! Stores the options in force, and derives the queue folder from them.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::atomic::AtomicPtr;
use std::time::Duration;

use logspool_sys::folder;
use logspool_sys::published::Published;

use super::options::Options;

static OPTIONS: AtomicPtr<Options> = AtomicPtr::new(std::ptr::null_mut());

/// Replaces the options in force. The caller has checked that the new options are valid, and that they fit an existing
/// pipeline.
pub(super) fn set(options: Options) {
    // The old options are never freed, because a reader may still use them. This costs little: options are set only
    // once or twice in a process.
    OPTIONS.publish(Box::into_raw(Box::new(options)));
}

/// The options in force.
pub(super) fn options() -> &'static Options {
    static DEFAULT: LazyLock<Options> = LazyLock::new(|| with_environment(Options::default()));
    // SAFETY: stored by `set`, never freed, never changed.
    unsafe { OPTIONS.observe().as_ref() }.unwrap_or_else(|| &DEFAULT)
}

/// The options with the queue folder that `LOGSPOOL_QUEUE_DIR` names, unless they name one. Relative paths are completed.
pub(super) fn with_environment(mut options: Options) -> Options {
    if options.queue_dir.is_none() {
        let named = std::env::var_os("LOGSPOOL_QUEUE_DIR").filter(|path| !path.is_empty());
        options.queue_dir = named.map(PathBuf::from);
    }
    options.with_absolute_folders()
}

/// Longest time that the end of the process waits, and that `flush()` and `close()` of handlers wait.
pub fn shutdown_timeout() -> Duration {
    options().shutdown_timeout
}

/// Folder of this process's segment, whether it exists or not.
pub(super) fn queue_folder() -> PathBuf {
    options().queue_dir.clone().unwrap_or_else(folder::default_path)
}
