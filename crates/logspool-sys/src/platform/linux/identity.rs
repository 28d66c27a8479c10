//! The token that distinguishes a process from a later one with the same number.

/// Returns a hash of the 16 random bytes that the kernel gives each program image; 0 without such bytes.
pub fn program_token() -> u64 {
    // Miri has no auxiliary vector.
    if cfg!(miri) {
        return 0;
    }
    // SAFETY: getauxval has no preconditions.
    let address = unsafe { libc::getauxval(libc::AT_RANDOM) } as *const [u8; 16];
    if address.is_null() {
        return 0;
    }
    // SAFETY: AT_RANDOM points at 16 bytes that live as long as the program image.
    let bytes = unsafe { *address };
    // FNV-1a hash. The bytes seed the stack protector, so they must not be visible in a file name.
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
