//! Available memory, as reported by the kernel.

use std::path::Path;

use super::opening::read_text;

/// Bytes of memory that this process can take without swapping: the minimum of the machine's available memory and the
/// room left in the process's control group. `u64::MAX` if neither number is known.
pub fn available_memory() -> u64 {
    let machine = read_text("/proc/meminfo").ok().and_then(|text| available_in_machine(&text));
    let group = read_text("/proc/self/cgroup").ok().and_then(|text| available_in_cgroup(&text));
    machine.unwrap_or(u64::MAX).min(group.unwrap_or(u64::MAX))
}

fn available_in_machine(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Bytes left in a control group of version 2. A container sees its own group.
fn available_in_cgroup(cgroup: &str) -> Option<u64> {
    let own = cgroup.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let folder = Path::new("/sys/fs/cgroup").join(own);
    // If the group has no limit, the file contains "max".
    let number = |name: &str| read_text(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    Some(number("memory.max")?.saturating_sub(number("memory.current")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_available_memory_of_the_machine_is_read() {
        let text = "MemTotal:       16384 kB\nMemFree:          100 kB\nMemAvailable:    4096 kB\n";
        assert_eq!(Some(4096 * 1024), available_in_machine(text));
        assert_eq!(None, available_in_machine("MemTotal: 1 kB\n"));
        assert_eq!(None, available_in_cgroup("12:memory:/a\n"));
        assert!(available_memory() > 0);
    }
}
