//! Failures of a child at a step of an append: it dies, dies with half of the bytes written, or hangs.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use logspool::sidecar::steps::{self, AppendStep};

/// A failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// SIGKILL at the step.
    Die(AppendStep),
    /// Half of the bytes of an append are written, then SIGKILL.
    DieHalfway,
    /// The thread never returns from the step.
    Hang,
}

/// A failure, and at which time of reaching its step it happens; 1 is the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    pub deed: Deed,
    pub time: u32,
}

/// Every failure that ends a process that compresses backups.
pub const DEATHS_OF_COMPRESSION: [Deed; 4] = [
    Deed::Die(AppendStep::Compressing),
    Deed::Die(AppendStep::Compressed),
    Deed::Die(AppendStep::Placed),
    Deed::Die(AppendStep::Removed),
];

/// Every failure that ends a writer or a recoverer.
pub const DEATHS: [Deed; 8] = [
    Deed::Die(AppendStep::Entered),
    Deed::Die(AppendStep::Intended),
    Deed::DieHalfway,
    Deed::Die(AppendStep::Appended),
    Deed::Die(AppendStep::Noted),
    Deed::Die(AppendStep::Cleared),
    Deed::Die(AppendStep::Repaired),
    Deed::Die(AppendStep::Renamed),
];

impl fmt::Display for Order {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} {}", self.deed, self.time)
    }
}

static ORDER: OnceLock<Order> = OnceLock::new();
static TIMES: AtomicU32 = AtomicU32::new(0);
static HALF: AtomicBool = AtomicBool::new(false);

/// Reads an order and obeys it; an empty text is no order.
pub fn obey(text: &str) {
    let Some((deed, time)) = text.rsplit_once(' ') else { return };
    let known = DEATHS.into_iter().chain(DEATHS_OF_COMPRESSION).chain([Deed::Hang]);
    let deed = known.into_iter().find(|known| format!("{known:?}") == deed).expect("a deed");
    ORDER.set(Order { deed, time: time.parse().unwrap() }).unwrap();
    steps::watch(watch);
}

fn is_time() -> bool {
    TIMES.fetch_add(1, Ordering::Relaxed) + 1 == ORDER.get().unwrap().time
}

fn die() {
    // SAFETY: ends this process.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    loop {
        std::thread::park();
    }
}

/// Called at each step. `bytes` is 0 except before an append.
fn watch(step: AppendStep, bytes: usize) -> usize {
    match ORDER.get().unwrap().deed {
        Deed::Die(wanted) if bytes == 0 && step == wanted && is_time() => die(),
        Deed::DieHalfway if bytes > 1 && is_time() => {
            HALF.store(true, Ordering::Relaxed);
            return bytes / 2;
        }
        Deed::DieHalfway if step == AppendStep::Appended && HALF.load(Ordering::Relaxed) => die(),
        Deed::Hang if bytes == 0 && step == AppendStep::Intended && is_time() => loop {
            std::thread::park();
        },
        _ => {}
    }
    bytes
}
