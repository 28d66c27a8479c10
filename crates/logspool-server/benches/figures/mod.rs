//! Results of a bench: lines for people, or with `--json` one object for programs.

use serde_json::{Map, Value, json};

/// The results of a bench; see the file head.
pub struct Figures {
    found: Option<Map<String, Value>>,
}

impl Figures {
    /// Creates results in the format that the program's arguments ask for.
    pub fn from_arguments() -> Self {
        Self { found: std::env::args().any(|argument| argument == "--json").then(Map::new) }
    }

    /// Reports the figures of one question, or prints the line with the same content.
    pub fn tell(&mut self, what: &str, figures: &[(&str, f64)], line: &str) {
        match &mut self.found {
            None => println!("{line}"),
            Some(found) => {
                let figures: Map<_, _> =
                    figures.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
                found.insert(what.to_owned(), Value::Object(figures));
            }
        }
    }
}

impl Drop for Figures {
    fn drop(&mut self) {
        if let Some(found) = self.found.take().filter(|_| !std::thread::panicking()) {
            println!("{}", Value::Object(found));
        }
    }
}
