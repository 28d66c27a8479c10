//! The output formats, and the style of text.

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For a terminal: one line for each record, tracebacks below it; a table for counts; bars for histograms. The
    /// origin of a record in its program (file, line, process, thread) is left out.
    Text,
    /// One JSON object per line.
    Ndjson,
    /// Comma-separated values (RFC 4180) with a header line.
    Csv,
}

/// Says whether text is coloured by level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Text has ANSI colour sequences.
    On,
    /// Text has no colour.
    Off,
}

/// The style of the text format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextStyle {
    /// Says whether the text is coloured.
    pub colour: Colour,
    /// Width of a histogram in columns.
    pub columns: usize,
}
