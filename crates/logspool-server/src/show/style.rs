//! Output formats and their look.

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

/// Whether text is coloured by level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// With ANSI colour sequences.
    On,
    /// Without colour.
    Off,
}

/// How text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextStyle {
    /// Whether it is coloured.
    pub colour: Colour,
    /// Width of a histogram in columns.
    pub columns: usize,
}
