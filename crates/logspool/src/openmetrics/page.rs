//! A page of OpenMetrics text under construction: families, each followed by its samples.

use std::fmt::Write;

use logspool_sys::histogram::HistogramCounts;

use crate::stats::SinkSnapshot;

/// A page under construction.
pub(super) struct MetricsPage {
    text: String,
}

impl MetricsPage {
    /// An empty page.
    pub(super) fn new() -> Self {
        Self { text: String::with_capacity(4096) }
    }

    /// The page with its end mark.
    pub(super) fn finish(mut self) -> String {
        self.text.push_str("# EOF\n");
        self.text
    }

    /// Begins a metric family.
    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "# TYPE logspool_{name} {kind}\n# HELP logspool_{name} {help}");
    }

    /// Adds a sample to the family that was begun last.
    pub(super) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let _ = write!(self.text, "logspool_{name}");
        for (index, (label, content)) in labels.iter().enumerate() {
            let open = if index == 0 { '{' } else { ',' };
            let content = content.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.text, "{open}{label}=\"{content}\"");
        }
        let _ = writeln!(self.text, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    pub(super) fn per_sink(&mut self, name: &str, sinks: &[SinkSnapshot], value: impl Fn(&SinkSnapshot) -> f64) {
        for sink in sinks {
            self.sample(name, &[("sink", &sink.definition.name)], value(sink));
        }
    }

    /// Adds the samples of a histogram.
    pub(super) fn histogram(&mut self, name: &str, label: (&str, &str), counts: &HistogramCounts) {
        for (bound, count) in &counts.cumulative {
            self.sample(&format!("{name}_bucket"), &[label, ("le", &bound.to_string())], count);
        }
        self.sample(&format!("{name}_bucket"), &[label, ("le", "+Inf")], counts.count);
        self.sample(&format!("{name}_sum"), &[label], counts.sum);
        self.sample(&format!("{name}_count"), &[label], counts.count);
    }
}
