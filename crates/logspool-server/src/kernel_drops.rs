//! Reads from `/proc/net` how many datagrams the kernel dropped because the service did not read them in time.

/// Number of datagrams that the kernel dropped because the buffer of the socket at this port was full.
pub fn lost_in_kernel(port: u16) -> u64 {
    let tables = ["/proc/net/udp", "/proc/net/udp6"].map(|table| std::fs::read_to_string(table).unwrap_or_default());
    tables.iter().flat_map(|table| table.lines().skip(1)).filter_map(|line| drops_at(line, port)).sum()
}

/// The number in the last column of a line (`drops`), if the local address in the second column has this port.
fn drops_at(line: &str, port: u16) -> Option<u64> {
    let mut columns = line.split_ascii_whitespace();
    let (_, local) = columns.nth(1)?.rsplit_once(':')?;
    (u16::from_str_radix(local, 16) == Ok(port)).then(|| columns.last()?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_dropped_by_the_kernel_are_read_from_its_table() {
        let line = "  77: 0100007F:233D 00000000:0000 07 00000000:00000000 00:00000000 00000000  0  0 123 2 0000 42";
        assert_eq!((Some(42), None), (drops_at(line, 9021), drops_at(line, 9020)));
        assert_eq!(None, drops_at("", 9021));
        assert_eq!(0, lost_in_kernel(0));
    }
}
