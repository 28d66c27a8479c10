//! The error for a record whose values do not fit its template.

/// Marks a place in a line at which the record has no value, or a value that the directive cannot show.
pub const MARKER: &str = "<?>";

/// The values of a record do not fit its template. The rendered text contains the marker `<?>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;
