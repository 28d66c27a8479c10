//! The error for a record whose values do not fit its template.

/// Marks the place in the text where a record has no value, or a value that the directive cannot show.
pub const MARKER: &str = "<?>";

/// The values of a record do not fit its template; the rendered text contains the marker `<?>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;
