//! What the macros find out about their text while the program is compiled.

/// Whether a text names a variable inside its braces that is not among `given`, the names of the call's arguments:
/// `"{name}"`, or `"{:width$}"`. Only the caller can make such a text.
///
/// The text is valid: the compiler has checked it by `format_args!`.
pub const fn has_captures(text: &str, given: &[&str]) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some((start, end)) = placeholder(bytes, at) {
        let start = skip_spaces(bytes, start);
        let mut word = start;
        let mut index = start;
        // The argument comes first. The width and the precision may be names too, each followed by `$`.
        let mut is_first = true;
        while index <= end {
            let is_end_of_name = index == end || !is_of_name(bytes[index]);
            if is_end_of_name {
                let is_name = is_first || index < end && bytes[index] == b'$';
                if is_name && is_capture(bytes, word, index, given) {
                    return true;
                }
                is_first = false;
                word = index + 1;
            }
            index += 1;
        }
        at = end + 1;
    }
    false
}

/// The start and the end of what the braces of the next placeholder have between them. `None`: there is no further one.
const fn placeholder(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    while at + 1 < bytes.len() {
        if bytes[at] != b'{' {
            at += 1;
        } else if bytes[at + 1] == b'{' {
            at += 2;
        } else {
            let start = at + 1;
            let mut end = start;
            while end < bytes.len() && bytes[end] != b'}' {
                end += 1;
            }
            return Some((start, end));
        }
    }
    None
}

const fn skip_spaces(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && bytes[at] == b' ' {
        at += 1;
    }
    at
}

const fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Whether `bytes[start..end]` is a name, not a number, and none of the given ones.
const fn is_capture(bytes: &[u8], mut start: usize, end: usize, given: &[&str]) -> bool {
    // In `{:08width$}` the zero is a flag.
    while start < end && bytes[start] == b'0' && end - start > 1 {
        start += 1;
    }
    if start == end || bytes[start].is_ascii_digit() {
        return false;
    }
    let mut index = 0;
    while index < given.len() {
        if is_same(bytes, start, end, given[index].as_bytes()) {
            return false;
        }
        index += 1;
    }
    true
}

const fn is_same(bytes: &[u8], start: usize, end: usize, name: &[u8]) -> bool {
    if end - start != name.len() {
        return false;
    }
    let mut index = 0;
    while index < name.len() {
        if bytes[start + index] != name[index] {
            return false;
        }
        index += 1;
    }
    true
}

/// Whether a placeholder of the text has a type, such as `{:x}` or `{:#?}`.
pub const fn has_types(text: &str) -> bool {
    has_type_of(text, b"?xXob")
}

/// Whether a placeholder shows an address: `{:p}`. The queue has the value of a reference and not its address.
pub const fn has_addresses(text: &str) -> bool {
    has_type_of(text, b"p")
}

/// Whether the type of a placeholder ends with one of `letters`. The text is valid.
const fn has_type_of(text: &str, letters: &[u8]) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some((start, end)) = placeholder(bytes, at) {
        // The type is the last character before the closing brace that is no space.
        let (mut has_spec, mut last) = (false, b' ');
        let mut index = start;
        while index < end {
            has_spec |= bytes[index] == b':';
            last = if bytes[index] == b' ' { last } else { bytes[index] };
            index += 1;
        }
        let mut index = 0;
        while index < letters.len() {
            if has_spec && last == letters[index] {
                return true;
            }
            index += 1;
        }
        at = end + 1;
    }
    false
}

/// Whether any of the arguments has a name. Their names are not in a record, so the caller makes the text.
pub const fn has_names(given: &[&str]) -> bool {
    let mut index = 0;
    while index < given.len() {
        if !given[index].is_empty() {
            return true;
        }
        index += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captured_names_are_found() {
        for text in ["{name}", "a {} { name }", "{name:?}", "{:width$}", "{:.precision$}", "{0:>0width$.3}", "{ä}"] {
            assert!(has_captures(text, &["", "other"]), "{text}");
        }
    }

    #[test]
    fn types_of_placeholders_are_found() {
        for text in ["{:x}", "a {0:#?}", "{:04X }", "{{{:?}", "{:x?}", "{:#010b}", "{:>8o}"] {
            assert!(has_types(text), "{text}");
        }
        for text in ["", "x", "{}", "{0}", "{{:x}}", "{:>8.3}", "{:e}", "{x}"] {
            assert!(!has_types(text), "{text}");
        }
        assert!(has_addresses("{:p}") && has_addresses("{:#p}") && !has_addresses("{p} {:5}"));
    }

    #[test]
    fn arguments_and_escapes_are_not_captures() {
        for text in [
            "", "{}", "{0}", "{{name}}", "{:>8.3}", "{:08x}", "{:?}", "{:#010b}", "{x}", "{:x$}", "{:1$}", "{:.*}",
            "{", "{:é>8}",
        ] {
            assert!(!has_captures(text, &["", "x"]), "{text}");
        }
    }
}
