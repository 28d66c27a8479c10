//! Reads the files of `corpus/`. Each line has a name, bytes in hex and their meaning in JSON, separated by tabs.

/// Name, bytes and meaning of each case.
pub fn cases(text: &str) -> impl Iterator<Item = (&str, Vec<u8>, serde_json::Value)> {
    text.lines().map(|line| {
        let mut parts = line.split('\t');
        let mut part = || parts.next().unwrap();
        (part(), bytes(part()), serde_json::from_str(part()).unwrap())
    })
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}
