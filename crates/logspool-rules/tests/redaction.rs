//! The error rates of the default redaction, over a corpus of lines with secrets and one of harmless lines.
//!
//! In `secrets.txt`, a secret is between `‹` and `›`; `⏎` is a line end in both files.

use logspool_rules::{RuleOptions, Rules};

const SECRETS: &str = include_str!("corpus/secrets.txt");
const HARMLESS: &str = include_str!("corpus/harmless.txt");

/// Lines of each corpus.
const LEAST: usize = 300;

fn rules() -> Rules {
    let redact = vec!["default".to_owned()];
    let options = RuleOptions { redact_keys: redact.clone(), redact_patterns: redact, ..RuleOptions::default() };
    Rules::compile(&options).unwrap().unwrap()
}

fn redacted(rules: &Rules, line: &str) -> String {
    rules.redacted(line.as_bytes()).map_or_else(|| line.to_owned(), |text| String::from_utf8(text).unwrap())
}

/// A line as it is logged, and its secrets.
fn with_secrets(line: &str) -> (String, Vec<String>) {
    let line = line.replace('⏎', "\n");
    let secrets = line.split('‹').skip(1).map(|part| part.split('›').next().unwrap().to_owned()).collect();
    (line.replace(['‹', '›'], ""), secrets)
}

#[test]
fn the_default_rules_find_the_secrets_and_leave_other_lines() {
    let rules = rules();
    let mut missed = Vec::new();
    let mut number = 0;
    for line in SECRETS.lines() {
        let (line, secrets) = with_secrets(line);
        let shown = redacted(&rules, &line);
        assert!(!secrets.is_empty(), "{line}");
        number += 1;
        // Each word of a secret must be gone, not only the whole.
        let is_shown = |secret: &String| {
            secret.split_ascii_whitespace().any(|word| word.len() > 2 && shown.contains(word))
                || shown.contains(secret.as_str())
        };
        if secrets.iter().any(is_shown) {
            missed.push(format!("{line}  ->  {shown}"));
        }
        if shown != redacted(&rules, &shown) {
            missed.push(format!("{shown}  ->  {} in a second pass", redacted(&rules, &shown)));
        }
    }
    let harmless: Vec<String> = HARMLESS.lines().map(|line| line.replace('⏎', "\n")).collect();
    let alarms: Vec<_> = harmless.iter().filter(|line| redacted(&rules, line) != **line).collect();
    println!("{} of {number} secrets missed: {missed:#?}", missed.len());
    println!("{} of {} harmless lines changed: {alarms:#?}", alarms.len(), harmless.len());

    assert!(number >= LEAST && harmless.len() >= LEAST);
    assert!(missed.is_empty());
    assert!(alarms.len() * 100 <= harmless.len());
}
