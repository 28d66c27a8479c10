//! The reasons why a Formatter is refused.

/// Reason why a Formatter stays on the stock path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsupported {
    /// The format string has a syntax error, a positional field, or a construction that logspool does not reproduce.
    Syntax,
    /// The format shows an attribute that is never sent to the collector: `msg`, `args`, `exc_info`, `exc_text`,
    /// `stack_info`.
    Attribute,
    /// A directive does not accept the attribute's type, or is `repr` of text, which needs the interpreter's tables.
    Conversion,
    /// A `datefmt` or default format that logspool does not reproduce.
    DateFormat,
}

impl std::fmt::Display for Unsupported {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Syntax => "format string is not reproduced natively",
            Self::Attribute => "format shows an attribute that never leaves the program",
            Self::Conversion => "format shows an attribute in a way that is not reproduced natively",
            Self::DateFormat => "date format is not reproduced natively",
        })
    }
}

impl std::error::Error for Unsupported {}
