//! Sampling: of the records that a rule concerns, only a share is kept.
//!
//! A rule is a text: `0.1 logger=uvicorn.access below=ERROR keep=status>=400 by=request_id template=GET %s`. The share
//! comes first; every other part may be missing, and `template` is the last one, because it may contain spaces. The
//! first rule that concerns a record decides.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use logspool_record::format::ParsedRecord;

use crate::condition::{Condition, text_of};
use crate::offered::OfferedRecord;

/// One rule.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplingRule {
    /// Part of the records that is kept, 0 to 1.
    share: f64,
    /// The logger and the loggers below it; empty: all.
    logger: String,
    /// The rule concerns only records below this level.
    below: u16,
    /// Records with such a field are always kept.
    keep: Vec<Condition>,
    /// Records with the same value of this field are kept or left out together.
    by: Option<String>,
    /// The rule concerns only records of this message template.
    template: Option<String>,
}

/// Names of levels, as users write them.
const LEVELS: [(&str, u16); 5] = [("DEBUG", 10), ("INFO", 20), ("WARNING", 30), ("ERROR", 40), ("CRITICAL", 50)];

const FORM: &str = "it must be SHARE [logger=NAME] [below=LEVEL] [keep=FIELD>=VALUE] [by=FIELD] [template=TEXT], \
                    for example \"0.1 logger=uvicorn.access keep=status>=400\"";

impl SamplingRule {
    /// Reads a rule.
    ///
    /// # Errors
    ///
    /// The text names the part that cannot be read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let refused = |why: String| Err(format!("sample: {text:?}: {why} (fix: {FORM})"));
        let (parts, template) = match text.find("template=") {
            Some(at) if at == 0 || text.as_bytes()[at - 1] == b' ' => {
                (&text[..at], Some(text[at + "template=".len()..].to_owned()))
            }
            _ => (text, None),
        };
        let mut words = parts.split_whitespace();
        let Some(share) = words.next() else { return refused("there is no share".to_owned()) };
        let Some(share) = share.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share)) else {
            return refused(format!("the share {share:?} is no number from 0 to 1"));
        };
        let mut rule = Self { share, logger: String::new(), below: 30, keep: Vec::new(), by: None, template };
        for word in words {
            let Some((name, value)) = word.split_once('=').filter(|(_, value)| !value.is_empty()) else {
                return refused(format!("{word:?} is no part of a rule"));
            };
            match name {
                "logger" => rule.logger = value.to_owned(),
                "by" => rule.by = Some(value.to_owned()),
                "below" => match LEVELS.iter().find(|(known, _)| value.eq_ignore_ascii_case(known)) {
                    Some((_, number)) => rule.below = *number,
                    None => match value.parse() {
                        Ok(number) => rule.below = number,
                        Err(_) => return refused(format!("no level is named {value:?}")),
                    },
                },
                "keep" => match Condition::parse(value) {
                    Some(condition) => rule.keep.push(condition),
                    None => return refused(format!("{value:?} is no condition")),
                },
                _ => return refused(format!("{name:?} is no part of a rule")),
            }
        }
        Ok(rule)
    }

    /// Whether the rule concerns a record.
    pub fn concerns(&self, record: &OfferedRecord<'_>, parsed: &ParsedRecord<'_>) -> bool {
        if !self.concerns_logger(record) {
            return false;
        }
        let Some(wanted) = &self.template else { return true };
        match record.site.and_then(|site| site.definition().template.as_ref()) {
            Some(template) => template == wanted,
            None => {
                let mut message = Vec::new();
                let _ = parsed.push_message(&mut message);
                message == wanted.as_bytes()
            }
        }
    }

    /// Whether the rule concerns a finished line. Its template and its fields are unknown.
    pub fn concerns_line(&self, record: &OfferedRecord<'_>) -> bool {
        self.concerns_logger(record) && self.template.is_none() && self.keep.is_empty() && self.by.is_none()
    }

    fn concerns_logger(&self, record: &OfferedRecord<'_>) -> bool {
        let is_below = || {
            record
                .logger
                .strip_prefix(self.logger.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        record.head.level < self.below && (self.logger.is_empty() || is_below())
    }

    /// Whether a record that the rule concerns is kept. A record with an exception is always kept.
    pub fn keeps(&self, record: &OfferedRecord<'_>, parsed: &ParsedRecord<'_>, random: &mut u64) -> bool {
        if parsed.exception().is_some_and(|text| !text.is_empty()) {
            return true;
        }
        let holds = |condition: &Condition| parsed.field(&condition.field).is_some_and(|value| condition.holds(value));
        if self.keep.iter().any(holds) {
            return true;
        }
        if let Some(value) = self.by.as_ref().and_then(|name| parsed.field(name)) {
            return self.is_within(hash(text_of(value).as_bytes()));
        }
        // Several handlers may get the same record one after the other. They see the same time.
        match parsed.time_ns() {
            0 => self.is_within(next(record, random)),
            time_ns => self.is_within(mixed(time_ns as u64)),
        }
    }

    /// Whether a finished line that the rule concerns is kept.
    pub fn keeps_line(&self, record: &OfferedRecord<'_>, random: &mut u64) -> bool {
        self.is_within(next(record, random))
    }

    fn is_within(&self, number: u64) -> bool {
        self.share >= 1.0 || (number as f64) < self.share * u64::MAX as f64
    }
}

/// The next random number of a thread.
fn next(record: &OfferedRecord<'_>, random: &mut u64) -> u64 {
    if *random == 0 {
        *random = mixed(record.now_ns ^ std::ptr::from_mut(random) as u64) | 1;
    }
    *random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed(*random)
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
fn mixed(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// A hash that is the same in all processes, so that they decide alike.
fn hash(bytes: &[u8]) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_read_from_text() {
        let rule =
            SamplingRule::parse("0.25 logger=a.b below=error keep=s>=4 keep=x=y by=id template=GET %s 0.1").unwrap();

        assert_eq!((0.25, "a.b", 40), (rule.share, rule.logger.as_str(), rule.below));
        assert_eq!(2, rule.keep.len());
        assert_eq!((Some("id"), Some("GET %s 0.1")), (rule.by.as_deref(), rule.template.as_deref()));
        assert_eq!(30, SamplingRule::parse("1").unwrap().below);
    }

    #[test]
    fn the_error_for_an_invalid_rule_names_the_part_and_the_valid_form() {
        for (text, part) in [
            ("", "there is no share"),
            ("ten logger=a", "the share \"ten\" is no number from 0 to 1"),
            ("1.5", "the share \"1.5\" is no number from 0 to 1"),
            ("0.5 loger=a", "\"loger\" is no part of a rule"),
            ("0.5 below=LOUD", "no level is named \"LOUD\""),
            ("0.5 keep=status", "\"status\" is no condition"),
            ("0.5 logger=", "\"logger=\" is no part of a rule"),
        ] {
            let why = SamplingRule::parse(text).unwrap_err();
            assert!(why.starts_with("sample: ") && why.contains(part) && why.contains(FORM), "{why}");
        }
    }
}
