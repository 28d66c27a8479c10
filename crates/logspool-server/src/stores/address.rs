//! The address of a store, as the command line and the configuration write it.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};

use super::ALL;
use super::kind::{StoreKind, StoreLocation};
use logspool::nearest::nearest;

/// The address of a store. `Display` and `Debug` do not show its password.
#[derive(Clone)]
pub struct StoreAddress {
    text: String,
    kind: &'static StoreKind,
    location: Arc<dyn StoreLocation>,
}

impl StoreAddress {
    /// The kind of store.
    pub fn kind(&self) -> &'static StoreKind {
        self.kind
    }

    /// The location of the store. A caller may keep the location to open the store later.
    pub fn location(&self) -> Arc<dyn StoreLocation> {
        self.location.clone()
    }
}

impl Deref for StoreAddress {
    type Target = dyn StoreLocation;

    fn deref(&self) -> &Self::Target {
        &*self.location
    }
}

impl FromStr for StoreAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
        let schemes = || ALL.iter().flat_map(|kind| kind.schemes.iter().map(move |scheme| (*scheme, *kind)));
        if let Some((_, kind)) = schemes().find(|(known, _)| *known == scheme) {
            return Ok(Self { text: text.to_owned(), kind, location: (kind.parse)(text)? });
        }
        let near = nearest(scheme, schemes().map(|(known, _)| known));
        let near = near.map(|near| format!(" (did you mean {near}:?)")).unwrap_or_default();
        let forms: Vec<_> = ALL.iter().map(|kind| kind.form).collect();
        Err(format!("{text:?} is not a store{near}: write {}", forms.join(" or ")))
    }
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.location.fmt(to)
    }
}

impl fmt::Debug for StoreAddress {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.location.fmt(to)
    }
}

impl PartialEq for StoreAddress {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for StoreAddress {}

impl<'de> Deserialize<'de> for StoreAddress {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_shown_without_a_password() {
        for (shown, text) in [
            ("sqlite:a/b", "sqlite:a/b"),
            ("sqlite:/a", "sqlite:///a"),
            ("postgres://db:5432/logs", "postgres://me:pass@db:5432/logs"),
            ("postgres://db:5432/logs", "postgresql://me:pass@db:5432/logs"),
        ] {
            let address: StoreAddress = text.parse().unwrap();
            assert_eq!((shown.to_owned(), shown.to_owned()), (address.to_string(), format!("{address:?}")));
        }
        let one = |password: &str| format!("postgres://me:{password}@db/logs").parse::<StoreAddress>().unwrap();
        assert_ne!(one("old"), one("new"));
    }

    #[test]
    fn an_invalid_address_is_refused_with_the_nearest_scheme_and_all_forms() {
        let refused = |text: &str| text.parse::<StoreAddress>().unwrap_err();

        assert!(refused("mysql://x").contains("write sqlite:FOLDER or postgres://"));
        assert!(refused("sqlit:x").contains("did you mean sqlite:?"));
        assert!(refused("postgre://x").contains("did you mean postgres:?"));
        assert!(refused("sqlite:").contains("folder"));
    }

    #[test]
    fn every_scheme_belongs_to_one_kind() {
        let mut schemes: Vec<_> = ALL.iter().flat_map(|kind| kind.schemes).collect();
        let count = schemes.len();
        schemes.sort_unstable();
        schemes.dedup();
        assert_eq!(count, schemes.len());
    }
}
