//! Reads the shared key of Forward.

use crate::limits::parts::SharedKey;

/// The shared key that senders of Forward need.
#[derive(Clone)]
pub struct ForwardKey {
    /// The name of the service in the handshake.
    pub hostname: String,
    /// The shared key itself.
    pub shared_key: String,
}

impl std::fmt::Debug for ForwardKey {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Key")
    }
}

impl ForwardKey {
    /// Reads the key file.
    ///
    /// # Errors
    ///
    /// The file cannot be read or has no valid key. The text names the file and the reason.
    pub fn read(config: &SharedKey) -> Result<Self, String> {
        let path = config.key_file.display();
        let text = std::fs::read_to_string(&config.key_file)
            .map_err(|error| format!("cannot read the shared key {path}: {error}"))?;
        let shared_key = text.trim().to_owned();
        if shared_key.is_empty() {
            return Err(format!("the shared key {path} is empty"));
        }
        let hostname = config.hostname.clone().unwrap_or_else(|| {
            let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
            name.trim().to_owned()
        });
        Ok(Self { hostname, shared_key })
    }
}
