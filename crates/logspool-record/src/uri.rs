//! Percent-encoding of values in addresses and in the names of sinks (RFC 3986, 2.1).

/// Appends `value`, with `%XX` for each byte that could end the value.
pub fn push_escaped(text: &mut String, value: &str) {
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' | b':' => text.push(byte.into()),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
}

/// Decodes `%XX`. `None` if a `%` has no two hexadecimal digits after it, or the result is not UTF-8.
pub fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let (byte, left) = match (first, after) {
            (b'%', [high, low, left @ ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                ((digit(high)? * 16 + digit(low)?) as u8, left)
            }
            (b'%', _) => return None,
            (byte, left) => (*byte, left),
        };
        bytes.push(byte);
        rest = left;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escaped_value_is_read_back_and_broken_ones_are_refused() {
        let value = "a b&c=d%é/.-_~:";
        let mut text = String::new();
        push_escaped(&mut text, value);

        assert_eq!("a%20b%26c%3Dd%25%C3%A9/.-_~:", text);
        assert_eq!(Some(value), unescaped(&text).as_deref());
        for broken in ["%", "%4", "%zz", "%FF"] {
            assert_eq!(None, unescaped(broken), "{broken}");
        }
    }
}
