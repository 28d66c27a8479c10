//! Intervals as bars.

use std::fmt::Write;

use chrono::SecondsFormat;

use crate::clock::rfc3339;

/// Columns of the longest bar at least, however narrow the terminal.
const MIN_BAR: usize = 10;

/// And at most.
const MAX_BAR: usize = 400;

/// Eighths of a column, from one to seven.
const PARTS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// Appends a line for each interval: when it begins, its count, and a bar; the longest one ends at the last column.
pub(super) fn draw(intervals: &[(i64, u64)], columns: usize, to: &mut String) {
    let largest = intervals.iter().map(|(_, count)| *count).max().unwrap_or_default();
    let digits = largest.to_string().len();
    for (begins, count) in intervals {
        let time = rfc3339(*begins, SecondsFormat::AutoSi);
        let longest = columns.saturating_sub(time.len() + digits + 2).clamp(MIN_BAR, MAX_BAR);
        // Writing to a string cannot fail.
        let _ = write!(to, "{time} {count:>digits$}");
        if *count > 0 {
            to.push(' ');
            bar(*count, largest, longest, to);
        }
        to.push('\n');
    }
}

fn bar(count: u64, largest: u64, longest: usize, to: &mut String) {
    // What is there is seen: an eighth of a column at least.
    let eighths = (u128::from(count) * longest as u128 * 8 / u128::from(largest.max(1))).max(1);
    to.extend(std::iter::repeat_n('█', (eighths / 8) as usize));
    if let Some(part) = ((eighths % 8) as usize).checked_sub(1) {
        to.push(PARTS[part]);
    }
}
