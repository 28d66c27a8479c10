//! What happens to a record before it is queued: secrets are replaced, control characters are escaped, and records are
//! left out by sampling, by a rate limit, or because they repeat an earlier one.
//!
//! Pipeline stage: between capture and queue (see ARCHITECTURE.md). A record comes as its head and its encoded values.
//! [`Rules::apply`] decides what happens to it. Every record that is left out is counted ([`counts`]). After a time
//! window with records that were left out by the rate limit or as repetitions, a summary record says how many
//! ([`Rules::due_summaries`]).
//!
//! The rules work in time that is linear in the length of a record: the regular expressions are those of the crate
//! `regex`, which has no backtracking.

mod condition;
mod counters;
mod defaults;
mod found_values;
mod offered;
mod redaction;
mod rewrite;
mod rules;
mod sampling;
mod windows;

pub use counters::{RuleCounts, counts, note_once, note_rewritten, reset_counts};
pub use defaults::{DEFAULT_KEYS, DEFAULT_PATTERNS, REPLACEMENT};
pub use offered::OfferedRecord;
pub use rules::{RuleOptions, RuleState, Rules, Verdict};
pub use windows::Summary;
