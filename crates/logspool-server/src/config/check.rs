//! Checks for values that are valid alone, but cannot work together or are probably a mistake. The checks open no file
//! or socket; they only inspect paths.

use std::net::SocketAddr;

use super::Config;
use crate::address::{Endpoint, HttpAddress, ListenAddress};
use crate::resolved::resolved;
use crate::stores::private::Readers;

impl Config {
    /// Checks that the values can work together and are allowed.
    ///
    /// # Errors
    ///
    /// A value cannot work. The text has the problem and says how to fix it.
    pub fn check(&self) -> Result<(), String> {
        if self.listen.is_empty() && self.http == HttpAddress::Off {
            return Err("no address to listen on: set `listen` or `http`".to_owned());
        }
        if self.store.is_empty() && self.file.is_none() {
            return Err("no store for records: set `store` or `file`".to_owned());
        }
        for (name, least, value) in [
            ("frame_bytes", 1024, self.limits.frame_bytes),
            ("waiting_bytes", 1 << 20, self.limits.waiting_bytes),
            ("connections", 1, self.limits.connections),
            ("query_threads", 1, self.limits.query_threads),
            ("queries", 1, self.limits.queries),
            ("tails", 1, self.limits.tails),
        ] {
            if value < least {
                return Err(format!("limits.{name} is {value}: the minimum is {least}"));
            }
        }
        // PostgreSQL treats a timeout of 0 as no limit, and refuses a timeout of more than some weeks.
        if !(1..=86_400).contains(&self.limits.query_seconds) {
            return Err(format!(
                "limits.query_seconds is {}: it must be 1 to 86400 (a day)",
                self.limits.query_seconds
            ));
        }
        if self.limits.frame_bytes > self.limits.waiting_bytes {
            return Err(
                "limits.frame_bytes is more than limits.waiting_bytes: a frame of that size could never be accepted"
                    .to_owned(),
            );
        }
        if self.limits.frame_bytes > 16 << 20 {
            return Err(
                "limits.frame_bytes is more than 16 MiB: pickles could not be distinguished from other protocols"
                    .to_owned(),
            );
        }
        for token in &self.access.token_sha256 {
            if token.len() != 64 || !token.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err("access.token_sha256 must have 64 hex digits: printf %s TOKEN | sha256sum".to_owned());
            }
        }
        check_parts(self)?;
        self.check_listeners()
    }

    fn check_listeners(&self) -> Result<(), String> {
        for listen in &self.listen {
            if listen.is_tls() && self.tls.is_none() {
                return Err(format!("{listen} needs a certificate: set certificate and key in [tls]"));
            }
            if self.insecure || listen.is_local() || self.is_guarded(listen) {
                continue;
            }
            return Err(format!(
                "{listen} can be reached from other machines, and anyone there could write records: use tls:// with \
                 tls.client_authorities, or set insecure (--insecure) if the network is trusted"
            ));
        }
        match self.http {
            HttpAddress::On(address) if !self.insecure && !address.ip().is_loopback() => Err(format!(
                "http {address} can be reached from other machines without TLS: let it listen on 127.0.0.1 behind a \
                 proxy, add a tls:// listener (it accepts HTTP too), or set insecure (--insecure) if the \
                 network is trusted"
            )),
            _ => Ok(()),
        }
    }

    /// True if a listener authenticates its clients.
    fn is_guarded(&self, listen: &ListenAddress) -> bool {
        let asks_for_certificates = self.tls.as_ref().is_some_and(|tls| tls.client_authorities.is_some());
        let asks_for_tokens = listen.is_only_http() && !self.access.token_sha256.is_empty();
        let asks_for_keys = listen.is_only_forward() && self.forward.is_some();
        listen.is_tls() && (asks_for_certificates || asks_for_tokens || asks_for_keys)
    }
}

/// Checks the parts of a configuration one by one. An error text has the value and says how to fix it.
fn check_parts(config: &Config) -> Result<(), String> {
    check_listeners(config)?;
    check_stores(config)?;
    Readers::of(config.store_group.as_deref())?;
    check_retention(config)?;
    check_hosts(config)
}

fn check_listeners(config: &Config) -> Result<(), String> {
    for (at, listen) in config.listen.iter().enumerate() {
        if let Some(other) = config.listen[..at].iter().find(|other| is_same_place(&other.endpoint, &listen.endpoint)) {
            return Err(match other.to_string() == listen.to_string() {
                true => format!("listen has {listen} twice: remove one"),
                false => format!("listen has {other} and {listen}, which are the same address: use different ones"),
            });
        }
        if let HttpAddress::On(http) = config.http
            && is_same_place(&Endpoint::Tcp(http), &listen.endpoint)
        {
            return Err(format!(
                "http is {http}, where {listen} listens already: set http = \"off\" (that listener accepts HTTP \
                 too), or \
                 use another port"
            ));
        }
    }
    Ok(())
}

/// True if listeners cannot be opened at both addresses.
fn is_same_place(one: &Endpoint, other: &Endpoint) -> bool {
    match (one, other) {
        (Endpoint::Unix(one) | Endpoint::UnixDatagram(one), Endpoint::Unix(other) | Endpoint::UnixDatagram(other)) => {
            resolved(one) == resolved(other)
        }
        (Endpoint::Udp(one), Endpoint::Udp(other)) => is_same_port(*one, *other),
        (Endpoint::Tcp(one) | Endpoint::Tls(one), Endpoint::Tcp(other) | Endpoint::Tls(other)) => {
            is_same_port(*one, *other)
        }
        _ => false,
    }
}

fn is_same_port(one: SocketAddr, other: SocketAddr) -> bool {
    // Port 0 means a different free port for each listener.
    one.port() == other.port()
        && one.port() != 0
        && (one.ip() == other.ip() || one.ip().is_unspecified() || other.ip().is_unspecified())
}

fn check_stores(config: &Config) -> Result<(), String> {
    for (at, store) in config.store.iter().enumerate() {
        if let Some(other) = config.store[..at].iter().find(|other| other.identity() == store.identity()) {
            let name = if other.to_string() == store.to_string() {
                format!("{store} twice")
            } else {
                format!("{other} and {store}, which are the same folder")
            };
            return Err(format!("store has {name}: each record would be stored twice; remove one"));
        }
        store.check()?;
    }
    match &config.file {
        Some(file) if file.is_dir() => {
            let inside = file.join("logspool.log");
            Err(format!("file is {}, a folder: name a file in it, for example {}", file.display(), inside.display()))
        }
        _ => Ok(()),
    }
}

fn check_retention(config: &Config) -> Result<(), String> {
    let retention = &config.retention;
    if retention.days == Some(0) {
        return Err("retention.days is 0: all records but today's would be removed at once; set at least 1, or leave \
                    it out to keep them all"
            .to_owned());
    }
    if retention.bytes == Some(0) {
        return Err("retention.bytes is 0: all records but today's would be removed at once; set the bytes that may \
                    be kept, or leave it out to keep them all"
            .to_owned());
    }
    let has_sqlite = config.store.iter().any(|store| store.limits_bytes());
    if let Some(bytes) = retention.bytes.filter(|_| !has_sqlite) {
        return Err(format!(
            "retention.bytes is {bytes}, but it applies only to SQLite, and no store is SQLite: set \
             retention.days instead"
        ));
    }
    match retention.days {
        Some(days) if config.store.is_empty() => Err(format!(
            "retention.days is {days}, but there is no store that it applies to: set `store`, or remove it and let \
             logrotate keep `file` short"
        )),
        _ => Ok(()),
    }
}

fn check_hosts(config: &Config) -> Result<(), String> {
    for host in &config.access.hosts {
        // Remove the parts of a URL before and after the host name, to suggest the name alone.
        let (_, rest) = host.split_once("://").unwrap_or(("", host));
        let name = rest.split(['/', ':']).next().unwrap_or_default();
        if name.is_empty() && host.parse::<std::net::IpAddr>().is_err() {
            return Err(format!(
                "access.hosts has {host:?}, which has no host name: write only the name, \"logs.example\""
            ));
        }
        if name != host {
            return Err(match host.parse::<std::net::IpAddr>() {
                Ok(_) => format!("access.hosts has {host:?}: remove it, IP addresses are always accepted"),
                Err(_) => format!("access.hosts has {host:?}: write the name without a port or path, {name:?}"),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        Config::parse(text).expect("a configuration").check().expect_err(text)
    }

    #[test]
    fn an_unworkable_value_is_named_with_a_fix() {
        let folder = tempfile::tempdir().unwrap();
        let there = folder.path().display().to_string();
        for (text, parts) in [
            (
                r#"listen = ["tcp://127.0.0.1:9020", "udp://127.0.0.1:9020", "tcp://127.0.0.1:9020"]"#.to_owned(),
                ["tcp://127.0.0.1:9020 twice", "remove one"],
            ),
            (
                "insecure = true\nlisten = [\"tcp://0.0.0.0:9020\", \"tcp://127.0.0.1:9020?protocol=json\"]".to_owned(),
                ["tcp://0.0.0.0:9020 and tcp://127.0.0.1:9020?protocol=json", "the same address: use different ones"],
            ),
            (
                "listen = [\"unix:///run/a/../a/x\", \"unix:///run/a/./../a/x\"]".to_owned(),
                ["unix:///run/a/../a/x and unix:///run/a/./../a/x", "the same address"],
            ),
            (
                "listen = [\"tcp://127.0.0.1:9080\"]".to_owned(),
                ["http is 127.0.0.1:9080, where tcp://127.0.0.1:9080", "http = \"off\""],
            ),
            ("store = [\"sqlite:a\", \"sqlite:a\"]".to_owned(), ["sqlite:a twice", "remove one"]),
            ("store = [\"sqlite:a\", \"sqlite:./a\"]".to_owned(), ["sqlite:a and sqlite:./a", "remove one"]),
            (
                r#"store = ["postgres://me:x@db/logs", "postgres://you@db:5432/logs"]"#.to_owned(),
                ["postgres://db:5432/logs twice", "remove one"],
            ),
            ("retention.days = 0".to_owned(), ["retention.days is 0", "at least 1"]),
            ("retention.bytes = 0".to_owned(), ["retention.bytes is 0", "leave it out"]),
            (
                "store = [\"postgres://db/logs\"]\nretention.bytes = 5000".to_owned(),
                ["retention.bytes is 5000", "retention.days instead"],
            ),
            ("store = []\nfile = \"x\"\nretention.days = 5".to_owned(), ["retention.days is 5", "set `store`"]),
            ("access.hosts = [\"logs.example:9080\"]".to_owned(), ["\"logs.example:9080\"", "\"logs.example\""]),
            ("access.hosts = [\"http://logs.example/\"]".to_owned(), ["\"http://logs.example/\"", "\"logs.example\""]),
            ("access.hosts = [\"::1\"]".to_owned(), ["\"::1\"", "always accepted"]),
            ("access.hosts = [\"\"]".to_owned(), ["\"\"", "write only the name"]),
            ("store_group = \"no such group\"".to_owned(), ["\"no such group\"", "getent group"]),
            (format!("file = {there:?}"), ["a folder", "name a file in it"]),
        ] {
            let said = said(&text);
            assert!(parts.iter().all(|part| said.contains(part)), "{text}\n  {said}");
        }
    }

    #[test]
    fn similar_but_different_values_are_accepted() {
        for text in [
            "listen = [\"tcp://127.0.0.1:0\", \"tcp://127.0.0.1:0\"]",
            "listen = [\"tcp://127.0.0.1:9020\", \"udp://127.0.0.1:9020\", \"tcp://127.0.0.2:9020\"]",
            "store = [\"sqlite:a\", \"sqlite:b\", \"postgres://db/a\", \"postgres://db/b\"]",
            "store = [\"sqlite:a\", \"postgres://db/a\"]\nretention.bytes = 5000",
            "access.hosts = [\"logs.example\", \"logs\"]",
        ] {
            assert_eq!(Ok(()), Config::parse(text).unwrap().check(), "{text}");
        }
        let unix = |path: &str| Endpoint::Unix(path.into());
        assert!(!is_same_place(&unix("/a"), &unix("/b")) && is_same_place(&unix("/a"), &unix("/./a")));
    }

    #[test]
    fn the_time_of_a_query_has_bounds() {
        let check = |seconds: u64| Config::parse(&format!("limits.query_seconds = {seconds}")).unwrap().check();
        for seconds in [0, 86_401, 3_000_000] {
            assert!(check(seconds).unwrap_err().contains("limits.query_seconds"), "{seconds}");
        }
        assert_eq!((Ok(()), Ok(())), (check(1), check(86_400)));
    }
}
