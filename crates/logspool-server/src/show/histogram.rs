//! Draws a histogram as a bar chart.

use std::fmt::Write;

use chrono::SecondsFormat;

use crate::clock::rfc3339;

/// Minimum width of the longest bar in columns, even on a narrow terminal.
const MIN_BAR: usize = 10;

/// Maximum width of the longest bar in columns.
const MAX_BAR: usize = 400;

/// The characters that fill one to seven eighths of a column.
const PARTS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// Appends a line for each interval: start time, count and bar. The longest bar ends at the last column.
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
    // Draw at least an eighth of a column, so that a count above 0 is always visible.
    let eighths = (u128::from(count) * longest as u128 * 8 / u128::from(largest.max(1))).max(1);
    to.extend(std::iter::repeat_n('█', (eighths / 8) as usize));
    if let Some(part) = ((eighths % 8) as usize).checked_sub(1) {
        to.push(PARTS[part]);
    }
}
