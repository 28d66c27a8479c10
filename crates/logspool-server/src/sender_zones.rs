//! Zones of the clocks of single senders, by their addresses.

use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

use crate::decoders::zone::Zone;

/// The zone of the senders in one network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SenderZone {
    network: IpAddr,
    /// Number of bits of an address that name the network.
    bits: u32,
    zone: Zone,
}

/// The zone of the sender with this address. The smallest network counts.
pub fn zone_of(sender: IpAddr, zones: &[SenderZone]) -> Option<Zone> {
    let sender = sender.to_canonical();
    zones.iter().filter(|row| row.contains(sender)).max_by_key(|row| row.bits).map(|row| row.zone)
}

impl SenderZone {
    fn contains(&self, sender: IpAddr) -> bool {
        match (self.network, sender) {
            (IpAddr::V4(network), IpAddr::V4(sender)) => {
                (network.to_bits() ^ sender.to_bits()).checked_shr(32 - self.bits).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(sender)) => {
                (network.to_bits() ^ sender.to_bits()).checked_shr(128 - self.bits).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl FromStr for SenderZone {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("zones has {text:?}: {what}; write ADDRESS=ZONE or ADDRESS/BITS=ZONE");
        let (senders, name) = text.split_once('=').ok_or_else(|| wrong("it has no `=`"))?;
        let (address, bits) = senders.split_once('/').map_or((senders, None), |(address, bits)| (address, Some(bits)));
        let network: IpAddr = address.parse().map_err(|_| wrong(&format!("{address:?} is not an IP address")))?;
        let all = if network.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Some(all), |bits| bits.parse().ok()).filter(|bits| *bits <= all);
        let bits = bits.ok_or_else(|| wrong(&format!("the number of bits is 0 to {all}")))?;
        let zone = Zone::by_name(name)
            .ok_or_else(|| wrong(&format!("the zone {name:?} is unknown, Europe/Berlin or +02:00 is one")))?;
        Ok(Self { network, bits, zone })
    }
}

impl<'de> Deserialize<'de> for SenderZone {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_network_gives_the_zone() {
        let zones: Vec<SenderZone> =
            ["0.0.0.0/0=+01:00", "10.0.0.0/8=+02:00", "10.1.2.3=Europe/Berlin", "2001:db8::/32=+03:00"]
                .map(|text| text.parse().unwrap())
                .to_vec();
        for (sender, zone) in [
            ("192.0.2.1", Some("+01:00")),
            ("10.255.0.1", Some("+02:00")),
            ("10.1.2.3", Some("Europe/Berlin")),
            ("::ffff:10.1.2.3", Some("Europe/Berlin")),
            ("2001:db8:1::1", Some("+03:00")),
            ("2001:db9::1", None),
        ] {
            let found = zone_of(sender.parse().unwrap(), &zones).map(|zone| zone.name());
            assert_eq!(zone.map(str::to_owned), found, "{sender}");
        }
    }

    #[test]
    fn an_invalid_row_is_refused_with_a_fix() {
        for (text, part) in [
            ("10.0.0.1", "ADDRESS=ZONE"),
            ("web=UTC", "not an IP address"),
            ("10.0.0.0/33=UTC", "0 to 32"),
            ("10.0.0.1=Europe/Bielefeld", "Europe/Berlin"),
        ] {
            let error = text.parse::<SenderZone>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
