//! Options of a sink as one text: `kind:name=value&name=value`. Definitions in shared memory use it as recovery
//! address.
//!
//! The name of an absent value is omitted, too. Characters that could end a value are written as `%XX`.

use logspool_record::uri::{push_escaped, unescaped};

/// Encodes options as text.
pub fn encode<'a>(kind: &str, parts: impl Iterator<Item = (&'a str, String)>) -> String {
    let mut text = format!("{kind}:");
    for (index, (name, value)) in parts.enumerate() {
        if index > 0 {
            text.push('&');
        }
        text.push_str(name);
        text.push('=');
        push_escaped(&mut text, &value);
    }
    text
}

/// Decodes the options in a text that [`encode`] returned for `kind`. `None`: `text` is not such a text.
pub fn decode(kind: &str, text: &str) -> Option<Vec<(String, String)>> {
    let rest = text.strip_prefix(kind)?.strip_prefix(':')?;
    let parts = rest.split('&').filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (name, value) = part.split_once('=')?;
            Some((name.to_owned(), unescaped(value)?))
        })
        .collect()
}

/// A text that [`encode`] returned, less the options of these names.
pub fn without(text: &str, names: &[&str]) -> String {
    let Some((kind, rest)) = text.split_once(':') else { return text.to_owned() };
    let is_kept = |part: &&str| !names.contains(&part.split_once('=').map_or(*part, |(name, _)| name));
    let kept: Vec<_> = rest.split('&').filter(is_kept).collect();
    format!("{kind}:{}", kept.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_with_secrets_can_be_left_out() {
        assert_eq!("loki:address=http://a&line=json", without("loki:address=http://a&token=t&line=json", &["token"]));
        assert_eq!("loki:", without("loki:token=t", &["token"]));
        assert_eq!("/var/log/a", without("/var/log/a", &["token"]));
    }

    #[test]
    fn options_are_decoded_unchanged() {
        let parts = [("address", "udp://[::1]:514"), ("app_name", "a&b=%ü"), ("facility", "local0")];
        let text = encode("syslog", parts.iter().map(|(name, value)| (*name, (*value).to_owned())));

        assert_eq!("syslog:address=udp://%5B::1%5D:514&app_name=a%26b%3D%25%C3%BC&facility=local0", text);
        let expected = parts.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        assert_eq!(Some(expected), decode("syslog", &text));
        assert_eq!(Some(Vec::new()), decode("null", "null:"));
        for text in ["syslog", "syslog:address", "syslog:a=%4", "syslog:a=%ff", "/var/log/syslog", ""] {
            assert_eq!(None, decode("syslog", text), "{text}");
        }
    }
}
