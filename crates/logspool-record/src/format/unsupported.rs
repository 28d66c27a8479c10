//! Why a Formatter is refused.

/// Why a Formatter stays on the stock path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsupported {
    /// The format string has a syntax error, a positional field, or a construction that is not reproduced here.
    Syntax,
    /// An attribute whose value never leaves the program: `msg`, `args`, `exc_info`, `exc_text`, `stack_info`.
    Attribute,
    /// A directive that does not take the attribute's type, or `repr` of text, which needs the interpreter's tables.
    Conversion,
    /// A `datefmt` or default format that is not reproduced here.
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
