//! Placeholder syntaxes of format strings.

/// Placeholder syntax of a text layout: `logging.Formatter(style=...)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Style {
    /// `%(message)s`.
    #[default]
    Percent,
    /// `{message}`.
    Brace,
    /// `$message` and `${message}`.
    Dollar,
}
