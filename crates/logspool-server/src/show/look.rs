//! How rows are written.

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For a terminal: a line for each record with what is said in it, tracebacks below; a table; bars. Where in a
    /// program a record comes from (file, line, process, thread) is left out.
    Text,
    /// One JSON object a line.
    Ndjson,
    /// Comma-separated values (RFC 4180), names in the first line.
    Csv,
}

/// Whether text is coloured by level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// With the sequences that terminals know.
    On,
    /// Plain.
    Off,
}

/// How text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Whether it is coloured.
    pub colour: Colour,
    /// Columns that a histogram may take.
    pub columns: usize,
}
