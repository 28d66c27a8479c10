//! Reports at the end of a process how many records it did not write.

use std::io::Write;
use std::sync::Once;
use std::time::Duration;

use super::room::Refusal;
use super::snapshot::snapshot;
use crate::sinks::{self, Place};
use crate::stats::{DROP_REASONS, DropReason, QueuePlace, REFUSAL_REASONS, SinkSnapshot};

/// Reports on stderr, once, how many records this process did not write before its end. `left` records are still in the
/// queue; other records were dropped because a sink accepted no records within `timeout`, or earlier for another
/// reason: in the last second, too few batches may follow for a message at the sinks about a full queue. `recovery` is
/// the command that writes records that are kept.
pub fn report_unwritten(left: u64, timeout: Duration, recovery: &str) {
    static REPORTED: Once = Once::new();
    let Some(snapshot) = snapshot() else { return };
    let dropped = |reason: DropReason| -> u64 {
        // Records that a service did not confirm in time were reported when its handler was closed.
        let is_told = |sink: &SinkSnapshot| reason == DropReason::Deadline && !sinks::traits(&sink.definition).is_local;
        let sinks = snapshot.sinks.iter().filter(|sink| !is_told(sink));
        sinks.map(|sink| sink.counts.dropped[reason as usize].iter().sum::<u64>()).sum()
    };
    let late = dropped(DropReason::Deadline);
    // The records in a queue that does not survive the process count as dropped.
    let unnamed: u64 = snapshot.sinks.iter().filter(|sink| !can_be_named(sink)).map(|sink| sink.counts.waiting()).sum();
    let kept_not = if snapshot.survives { unnamed.min(left) } else { left };
    let (left, late) = (left - kept_not, late + kept_not);
    let earlier = EARLIER_DROPS.map(|reason| (DROP_REASONS[reason as usize], dropped(reason)));
    let refused = [(QUEUE_FULL, snapshot.untold_refusals)];
    let before: Vec<_> = refused.into_iter().chain(earlier).collect();
    if left + late + before.iter().map(|(_, count)| count).sum::<u64>() == 0 {
        return;
    }
    let kept = match snapshot.place {
        QueuePlace::Memfd => "they are kept, the keeper of this process writes them".to_owned(),
        _ => format!("they are kept, `{recovery}` or the next start writes them"),
    };
    // If writing to stderr fails, the error cannot be reported anywhere else.
    REPORTED.call_once(|| {
        let text = unwritten(left, late, &before, timeout, &kept);
        let _ = writeln!(std::io::stderr(), "logspool: {text}{}", full_devices(&snapshot.sinks));
    });
}

/// Whether a later process can open what the sink writes to. A pipe, a terminal and a device that the program has
/// opened have no name.
fn can_be_named(sink: &SinkSnapshot) -> bool {
    !matches!(sinks::place(&sink.definition), Place::Descriptor(_)) || sink.definition.lasting.is_some()
}

/// Names the sinks whose device is full.
fn full_devices(sinks: &[SinkSnapshot]) -> String {
    let is_full = |sink: &&SinkSnapshot| {
        let full = [libc::ENOSPC, libc::EDQUOT].map(|number| std::io::Error::from_raw_os_error(number).to_string());
        sink.counts.waiting() > 0 && full.iter().any(|error| sink.error.contains(error))
    };
    let names: Vec<_> = sinks.iter().filter(is_full).map(|sink| &*sink.definition.name).collect();
    if names.is_empty() { String::new() } else { format!(" (the device is full: {})", names.join(", ")) }
}

/// Reasons for drops before the end. A destination that is gone is not among them: a reader that stops to read, as
/// `head`, wants no more lines and no message.
const EARLIER_DROPS: [DropReason; 4] =
    [DropReason::Rejected, DropReason::OverflowFull, DropReason::Unrenderable, DropReason::Unreadable];

/// The reason of calls that found no room.
const QUEUE_FULL: &str = REFUSAL_REASONS[Refusal::QueueFull as usize];

/// The message about all records that are not written.
fn unwritten(left: u64, late: u64, before: &[(&str, u64)], timeout: Duration, kept: &str) -> String {
    let seconds = timeout.as_secs_f64();
    let reasons: Vec<_> = before.iter().filter(|(_, count)| *count > 0).collect();
    let dropped: u64 = late + reasons.iter().map(|(_, count)| count).sum::<u64>();
    let mut text = match (dropped, reasons.is_empty()) {
        (0, _) => return format!("{left} records were not written within {seconds} s; {kept}"),
        (_, true) => format!("{dropped} records were not written within {seconds} s and are dropped"),
        (_, false) => {
            let mut parts: Vec<_> = reasons.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
            parts.extend((late > 0).then(|| format!("not written within {seconds} s {late}")));
            format!("{dropped} records were not written and are dropped ({})", parts.join(", "))
        }
    };
    if left > 0 {
        let within = if reasons.is_empty() { String::new() } else { format!(" written within {seconds} s") };
        text.push_str(&format!(", {left} more were not{within}; {kept}"));
    }
    text
}
