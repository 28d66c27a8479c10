//! The compiled rules, and their decision about one record.

use std::sync::Arc;
use std::time::Duration;

use logspool_record::format::{ParsedRecord, RecordView};
use logspool_record::{Values, flags};

use crate::counters;
use crate::offered::OfferedRecord;
use crate::redaction::Redaction;
use crate::rewrite::{self, RewriteRules};
use crate::sampling::SamplingRule;
use crate::windows::{self, Reason, Summary, WindowVerdict, Windows};
use logspool_record::format::control::LineEndRule;

/// The rules as the user gives them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleOptions {
    /// Names of fields whose values are replaced.
    pub redact_keys: Vec<String>,
    /// Regular expressions of texts that are replaced.
    pub redact_patterns: Vec<String>,
    /// Whether control characters in messages and fields are escaped.
    pub escape_control: bool,
    /// Records that equal an earlier one are left out for this long; zero keeps them.
    pub deduplicate: Duration,
    /// Records per second that one place in the program may log; zero sets no limit.
    pub rate_limit: u32,
    /// Sampling rules, each as text; see `docs/how-to/keep-logs-clean.md`.
    pub sample: Vec<String>,
}

/// Compiled rules.
#[derive(Debug)]
pub struct Rules {
    redaction: Option<Arc<Redaction>>,
    escape_control: bool,
    sampling: Arc<[SamplingRule]>,
    repeats: Option<Windows>,
    rate: Option<Windows>,
}

/// What to do with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Queue the record as it is.
    Keep,
    /// Queue the values in [`RuleState::values`] instead.
    Replace,
    /// Do not queue the record. It is counted.
    LeaveOut,
}

/// Memory that a thread uses again for each record.
#[derive(Debug, Default)]
pub struct RuleState {
    /// The new values of a record, after [`Verdict::Replace`].
    pub values: Vec<u8>,
    message: Vec<u8>,
    text: Vec<u8>,
    /// State of the random numbers of sampling.
    random: u64,
}

impl Rules {
    /// Compiles the rules. `None` if the options have no rule.
    ///
    /// # Errors
    ///
    /// The text names the option, its value, what is wrong and how to mend it.
    pub fn compile(options: &RuleOptions) -> Result<Option<Self>, String> {
        if *options == RuleOptions::default() {
            return Ok(None);
        }
        let sampling = options.sample.iter().map(|text| SamplingRule::parse(text)).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(Self {
            redaction: Redaction::compile(&options.redact_keys, &options.redact_patterns)?.map(Arc::new),
            escape_control: options.escape_control,
            sampling: sampling.into(),
            repeats: (!options.deduplicate.is_zero()).then(|| Windows::new(Reason::Repeated, options.deduplicate, 1)),
            rate: (options.rate_limit > 0)
                .then(|| Windows::new(Reason::OverRate, Duration::from_secs(1), options.rate_limit)),
        }))
    }

    /// The same rules with no window open. For a forked child: threads that the child does not have may hold the locks
    /// of the windows.
    pub fn renewed(&self) -> Self {
        Self {
            redaction: self.redaction.clone(),
            escape_control: self.escape_control,
            sampling: self.sampling.clone(),
            repeats: self.repeats.as_ref().map(Windows::renewed),
            rate: self.rate.as_ref().map(Windows::renewed),
        }
    }

    /// Whether a rule has to know the logger and the place of a finished line.
    pub fn limits(&self) -> bool {
        !self.sampling.is_empty() || self.repeats.is_some() || self.rate.is_some()
    }

    /// Whether the rules replace secrets.
    pub fn redacts(&self) -> bool {
        self.redaction.is_some()
    }

    /// A text with its secrets replaced; `None` if it has none. It is not counted.
    pub fn redacted(&self, text: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        self.redaction.as_ref().is_some_and(|redaction| redaction.replace(text, &mut out)).then_some(out)
    }

    /// Whether the value of a field with this name is a secret.
    pub fn is_secret(&self, name: &str) -> bool {
        self.redaction.as_ref().is_some_and(|redaction| redaction.has_key(name))
    }

    /// The text of a record's part with its secrets replaced and its control characters escaped; `None` if it has none.
    /// The part is named as in an entry: line ends of an `exception` and a `stack` stay.
    pub fn cleaned(&self, part: &str, text: &str) -> Option<String> {
        let line_ends = if matches!(part, "exception" | "stack") { LineEndRule::Keep } else { LineEndRule::Escape };
        let rewriter = RewriteRules { redaction: self.redaction.as_deref(), escape_control: self.escape_control };
        let cleaned = rewriter.changed(text, line_ends, &mut Vec::new());
        (cleaned != text).then(|| {
            counters::count_rewritten();
            cleaned
        })
    }

    /// Decides what happens to a record. Never waits longer than for a short critical section.
    pub fn apply(&self, record: &OfferedRecord<'_>, buffers: &mut RuleState) -> Verdict {
        if record.head.flags & flags::TEXT != 0 {
            return self.apply_to_line(record, buffers);
        }
        let parsed = &ParsedRecord::new(&RecordView {
            time_ns: 0,
            level: record.head.level,
            logger: record.logger,
            site: record.site,
            values: Values::new(record.values),
        });
        let record = &OfferedRecord { site: parsed.site(), ..*record };
        if let Some(rule) = self.sampling.iter().find(|rule| rule.concerns(record, parsed))
            && !rule.keeps(record, parsed, &mut buffers.random)
        {
            counters::count_sampled();
            return Verdict::LeaveOut;
        }
        if self.redaction.is_none() && !self.escape_control && self.repeats.is_none() && self.rate.is_none() {
            return Verdict::Keep;
        }
        buffers.message.clear();
        // A message that is malformed is shown as far as possible, with a marker.
        let _ = parsed.push_message(&mut buffers.message);
        let rewriter = RewriteRules { redaction: self.redaction.as_deref(), escape_control: self.escape_control };
        let is_changed = rewriter.rewrite(record.values, &buffers.message, &mut buffers.text, &mut buffers.values);
        let exception = parsed.exception().unwrap_or_default();
        self.limited(record, &buffers.message, exception, is_changed, &buffers.values)
    }

    /// Applies the rules to a finished line, whose parts are unknown.
    fn apply_to_line(&self, record: &OfferedRecord<'_>, buffers: &mut RuleState) -> Verdict {
        if let Some(rule) = self.sampling.iter().find(|rule| rule.concerns_line(record))
            && !rule.keeps_line(record, &mut buffers.random)
        {
            counters::count_sampled();
            return Verdict::LeaveOut;
        }
        let Some(line) = rewrite::line_of(record.values) else { return Verdict::Keep };
        let is_changed = match &self.redaction {
            Some(redaction) if !record.is_opaque && redaction.replace(line, &mut buffers.text) => {
                rewrite::push_line(&buffers.text, &mut buffers.values);
                true
            }
            _ => false,
        };
        self.limited(record, line, "", is_changed, &buffers.values)
    }

    /// The verdict about a record that sampling keeps. `values` are its new values if it `is_changed`.
    fn limited(
        &self,
        record: &OfferedRecord<'_>,
        message: &[u8],
        exception: &str,
        is_changed: bool,
        values: &[u8],
    ) -> Verdict {
        let shown = if is_changed { values } else { record.values };
        if !self.is_within_limits(record, message, exception, shown) {
            return Verdict::LeaveOut;
        }
        if !is_changed {
            return Verdict::Keep;
        }
        counters::count_rewritten();
        Verdict::Replace
    }

    /// Whether neither the rate limit nor the rule for repetitions leaves the record out. `shown` are the values that
    /// would be queued.
    fn is_within_limits(&self, record: &OfferedRecord<'_>, message: &[u8], exception: &str, shown: &[u8]) -> bool {
        if self.repeats.is_none() && self.rate.is_none() {
            return true;
        }
        let place = windows::place_key(record);
        if let Some(repeats) = &self.repeats
            && repeats.offer(windows::message_key(place, message, exception), record, shown, message)
                == WindowVerdict::Beyond
        {
            counters::count_repeated();
            return false;
        }
        if let Some(rate) = &self.rate
            && record.head.level < ALWAYS_WITHIN_RATE
            && rate.offer(place, record, shown, message) == WindowVerdict::Beyond
        {
            counters::count_over_rate();
            return false;
        }
        true
    }

    /// The summaries of windows that have ended. Nearly always there are none, and the call only compares a time.
    #[inline]
    pub fn due_summaries(&self, now_ns: u64, epoch: u64) -> Vec<Summary> {
        let due = |windows: &Option<Windows>| windows.as_ref().map_or_else(Vec::new, |all| all.due(now_ns, epoch));
        let mut summaries = due(&self.repeats);
        summaries.extend(due(&self.rate));
        summaries
    }

    /// The summaries of all windows, at the end of the program or when the rules change.
    pub fn all_summaries(&self, epoch: u64) -> Vec<Summary> {
        self.due_summaries(u64::MAX, epoch)
    }
}

/// The rate limit never leaves out records of this level and above: ERROR.
const ALWAYS_WITHIN_RATE: u16 = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use logspool_record::Head;
    use logspool_record::definition::{Grammar, SiteDefinition};
    use logspool_record::format::CompiledSite;
    use logspool_record::{Encoder, tag};

    const SECOND: u64 = 1_000_000_000;

    fn rules(change: impl FnOnce(&mut RuleOptions)) -> Rules {
        let mut options = RuleOptions::default();
        change(&mut options);
        Rules::compile(&options).unwrap().unwrap()
    }

    fn site(template: &str) -> CompiledSite {
        let line = template.len() as u32;
        CompiledSite::new(SiteDefinition {
            file: "/app.py".to_owned(),
            line,
            function: "run".to_owned(),
            template: Some(template.to_owned()),
            grammar: Grammar::Percent,
        })
    }

    fn record<'a>(site: &'a CompiledSite, values: &'a Encoder, now_ns: u64) -> OfferedRecord<'a> {
        let head = Head { len: 0, site: 3, route: 1, level: 20, flags: 0, ticks: 0 };
        OfferedRecord {
            head,
            logger: "shop.pay",
            sinks: 1,
            site: Some(site),
            place: 0,
            is_opaque: false,
            values: &values.bytes,
            epoch: 1,
            now_ns,
        }
    }

    fn message(site: &CompiledSite, values: &[u8]) -> String {
        let view =
            RecordView { time_ns: 0, level: 20, logger: "shop.pay", site: Some(site), values: Values::new(values) };
        let mut text = Vec::new();
        ParsedRecord::new(&view).push_message(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_secret_is_replaced_in_the_message_the_fields_and_the_traceback() {
        let rules = rules(|options| {
            options.redact_keys = vec!["password".to_owned()];
            options.redact_patterns = vec![r"\d{4}-\d{4}".to_owned()];
        });
        let site = site("user %s has password=%s");
        let mut values = Encoder::new();
        values.field("db_password").str("hunter2");
        values.field("note").str("call 1234-5678");
        values.field("count").int(7);
        values.context_str(tag::EXCEPTION, "ValueError: 1234-5678");
        values.str("anna").str("hunter2");
        let mut buffers = RuleState::default();

        assert_eq!(Verdict::Replace, rules.apply(&record(&site, &values, 1), &mut buffers));
        assert_eq!("user anna has password=[REDACTED]", message(&site, &buffers.values));
        let text = String::from_utf8_lossy(&buffers.values);
        assert!(!text.contains("hunter2") && !text.contains("1234"), "{text}");
        let view = RecordView { time_ns: 0, level: 20, logger: "", site: None, values: Values::new(&buffers.values) };
        let parsed = ParsedRecord::new(&view);
        assert_eq!(Some(logspool_record::Value::Str("[REDACTED]")), parsed.field("db_password"));
        assert_eq!(Some(logspool_record::Value::Str("call [REDACTED]")), parsed.field("note"));
        assert_eq!(Some(logspool_record::Value::Int(7)), parsed.field("count"));
        assert_eq!(Some("ValueError: [REDACTED]"), parsed.exception());
    }

    #[test]
    fn a_record_without_secrets_is_unchanged() {
        let rules = rules(|options| options.redact_keys = vec!["default".to_owned()]);
        let (site, mut values) = (site("%s of %d"), Encoder::new());
        values.str("one").int(2);

        assert_eq!(Verdict::Keep, rules.apply(&record(&site, &values, 1), &mut RuleState::default()));
    }

    #[test]
    fn control_characters_of_arguments_are_escaped() {
        let rules = rules(|options| options.escape_control = true);
        let (site, mut values) = (site("user %s"), Encoder::new());
        values.str("eve\nINFO root: forged\u{1b}[2J");
        let mut buffers = RuleState::default();

        assert_eq!(Verdict::Replace, rules.apply(&record(&site, &values, 1), &mut buffers));
        assert_eq!("user eve\\nINFO root: forged\\x1b[2J", message(&site, &buffers.values));
    }

    #[test]
    fn repetitions_are_dropped_and_summarised() {
        let rules = rules(|options| options.deduplicate = Duration::from_secs(10));
        let (site, mut full, mut other) = (site("disk %s full"), Encoder::new(), Encoder::new());
        full.str("sda");
        other.str("sdb");
        let mut buffers = RuleState::default();
        let mut verdicts = Vec::new();
        for (values, time) in [(&full, 1), (&full, 2), (&other, 2), (&full, 3), (&full, 4)] {
            verdicts.push(rules.apply(&record(&site, values, time * SECOND), &mut buffers));
        }
        assert!(rules.due_summaries(10 * SECOND, 1).is_empty());
        let due = rules.due_summaries(11 * SECOND, 1);

        let (keep, out) = (Verdict::Keep, Verdict::LeaveOut);
        assert_eq!(vec![keep, out, keep, out, out], verdicts);
        assert_eq!(1, due.len());
        assert_eq!("disk sda full [repeated 3 times in 10 s]", message(&site, &due[0].values));
        assert_eq!((1, 20), (due[0].head.route, due[0].head.level));
        assert!(rules.due_summaries(u64::MAX, 1).is_empty());
        assert_eq!(keep, rules.apply(&record(&site, &full, 11 * SECOND), &mut buffers));
    }

    #[test]
    fn a_rate_limit_counts_by_call_site_and_spares_errors() {
        let rules = rules(|options| options.rate_limit = 3);
        let (first, second, mut values) = (site("a %d"), site("and b %d"), Encoder::new());
        values.int(1);
        let mut buffers = RuleState::default();
        let mut kept = |site, level, from: u64| {
            let mut kept = 0;
            for step in 0..10 {
                let mut offered = record(site, &values, from + step);
                offered.head.level = level;
                kept += u32::from(rules.apply(&offered, &mut buffers) == Verdict::Keep);
            }
            kept
        };

        assert_eq!((3, 10), (kept(&first, 20, 1), kept(&first, 40, 1)));
        assert_eq!(10, kept(&second, 40, 1));
        let due = rules.all_summaries(1);
        assert_eq!(1, due.len());
        assert_eq!(
            "a 1 [7 more from this place left out: the rate limit is 3 a second]",
            message(&first, &due[0].values)
        );
        assert_eq!(3, kept(&first, 20, 2 * SECOND));
        assert!(rules.all_summaries(2).is_empty(), "a summary of another id epoch was given");
    }

    #[test]
    fn sampling_keeps_a_share_and_every_failure() {
        let rules = rules(|options| options.sample = vec!["0.1 logger=shop keep=status>=400".to_owned()]);
        let site = site("GET %s");
        let mut buffers = RuleState::default();
        let mut kept = |status: i64, logger| {
            let mut values = Encoder::new();
            values.field("status").int(status).str("/");
            let times = 0..10_000;
            times
                .filter(|time| {
                    let offered = OfferedRecord { logger, ..record(&site, &values, *time + 1) };
                    rules.apply(&offered, &mut buffers) == Verdict::Keep
                })
                .count()
        };

        // The standard deviation is 30 records.
        assert!((800..1200).contains(&kept(200, "shop.pay")));
        assert_eq!(10_000, kept(500, "shop.pay"));
        assert_eq!(10_000, kept(200, "shopping"));
    }

    #[test]
    fn records_of_one_request_are_kept_or_dropped_together() {
        let rules = rules(|options| options.sample = vec!["0.5 by=request_id".to_owned()]);
        let site = site("step %d");
        let mut buffers = RuleState::default();
        let mut kept = 0;
        for request in 0..200 {
            let mut verdicts = Vec::new();
            for step in 0..5 {
                let mut values = Encoder::new();
                values.field("request_id").str(&format!("r{request}")).int(step);
                verdicts.push(rules.apply(&record(&site, &values, 1), &mut buffers));
            }
            assert!(verdicts.iter().all(|verdict| *verdict == verdicts[0]));
            kept += usize::from(verdicts[0] == Verdict::Keep);
        }

        assert!((60..140).contains(&kept), "{kept}");
    }

    #[test]
    fn a_finished_line_is_redacted_and_limited() {
        let rules = rules(|options| {
            options.redact_keys = vec!["token".to_owned()];
            options.deduplicate = Duration::from_secs(1);
        });
        let mut values = Encoder::new();
        values.raw_bytes(b"INFO token=abc done\n");
        let head = Head { len: 0, site: 0, route: 1, level: 20, flags: flags::TEXT, ticks: 0 };
        let offered = OfferedRecord {
            head,
            sinks: 1,
            logger: "",
            site: None,
            place: 9,
            is_opaque: false,
            values: &values.bytes,
            epoch: 1,
            now_ns: 1,
        };
        let mut buffers = RuleState::default();

        assert_eq!(Verdict::Replace, rules.apply(&offered, &mut buffers));
        assert_eq!(Some(&b"INFO token=[REDACTED] done\n"[..]), rewrite::line_of(&buffers.values));
        assert_eq!(Verdict::LeaveOut, rules.apply(&offered, &mut buffers));
        let due = rules.all_summaries(1);
        let line = rewrite::line_of(&due[0].values).unwrap();
        assert_eq!("INFO token=[REDACTED] done [repeated 1 time in 1 s]\n", String::from_utf8_lossy(line));
    }
}
