//! Which addresses may call the gateway: sets of networks, the operator's lists, and temporary bans. The filter runs
//! before anything else is known about the caller, so a lookup is a binary search.

use serde::{Deserialize, Deserializer};
use std::net::{IpAddr, Ipv6Addr};

/// Networks as sorted ranges of addresses, with IPv4 in its IPv6 form (`::ffff:a.b.c.d`). Adjacent ranges are merged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressSet(Vec<(u128, u128)>);

/// The text is not an address or a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no address and no network such as 10.1.0.0/16 or 2001:db8::/32, without bits behind its prefix")]
pub struct NoNetwork(String);

impl AddressSet {
    /// Parses addresses and networks in CIDR notation.
    pub fn parse<T: AsRef<str>>(texts: &[T]) -> Result<Self, NoNetwork> {
        let ranges = texts.iter().map(|text| range(text.as_ref()).ok_or_else(|| NoNetwork(text.as_ref().to_owned())));
        let mut ranges = ranges.collect::<Result<Vec<_>, _>>()?;
        ranges.sort_unstable();
        let mut merged: Vec<(u128, u128)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match merged.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = (*end).max(last),
                _ => merged.push((first, last)),
            }
        }
        Ok(Self(merged))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        let number = number(address);
        let after = self.0.partition_point(|(first, _)| *first <= number);
        after > 0 && self.0[after - 1].1 >= number
    }
}

impl<'de> Deserialize<'de> for AddressSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&Vec::<String>::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().into(),
        IpAddr::V6(v6) => v6.into(),
    }
}

fn range(text: &str) -> Option<(u128, u128)> {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) if prefix.bytes().all(|byte| byte.is_ascii_digit()) => {
            (address.parse::<IpAddr>().ok()?, Some(prefix.parse::<u32>().ok()?))
        }
        Some(_) => return None,
        None => (text.parse().ok()?, None),
    };
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let free = bits - prefix.unwrap_or(bits).min(bits);
    if prefix.is_some_and(|prefix| prefix > bits) {
        return None;
    }
    let host = 1_u128.checked_shl(free).map_or(u128::MAX, |size| size - 1);
    let first = number(address);
    (first & host == 0).then_some((first, first | host))
}

/// Which of the two lists applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ListMode {
    /// Neither list applies.
    #[default]
    Off,
    Blacklist,
    Whitelist,
}

/// A temporary ban.
#[derive(Debug, Clone, Deserialize)]
struct Ban {
    networks: AddressSet,
    /// The end of the ban, in milliseconds since 1970.
    until_ms: u64,
}

/// Which addresses may call the gateway. This machine is always allowed.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct IpFilter {
    mode: ListMode,
    blacklist: AddressSet,
    whitelist: AddressSet,
    bans: Vec<Ban>,
}

impl IpFilter {
    /// Whether this address may call at this time (UTC). An unknown address is that of a Unix socket.
    pub fn admits(&self, address: Option<IpAddr>, now_ms: u64) -> bool {
        let Some(address) = address.map(|address| address.to_canonical()) else { return true };
        if address.is_loopback() {
            return true;
        }
        let is_listed = match self.mode {
            ListMode::Off => true,
            ListMode::Blacklist => !self.blacklist.contains(address),
            ListMode::Whitelist => self.whitelist.contains(address),
        };
        is_listed && !self.bans.iter().any(|ban| now_ms < ban.until_ms && ban.networks.contains(address))
    }
}

/// The address to use for a caller on a Unix socket: this machine.
pub const HERE: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_set_has_what_its_networks_have() {
        let set =
            AddressSet::parse(&["10.0.0.0/9", "10.128.0.0/9", "192.0.2.7", "2001:db8::/33", "::1"]).expect("read");
        assert_eq!(set.0.len(), 4, "neighbours are one range");
        for (text, expected) in [
            ("10.0.0.0", true),
            ("10.255.255.255", true),
            ("11.0.0.0", false),
            ("9.255.255.255", false),
            ("::ffff:10.1.2.3", true),
            ("192.0.2.7", true),
            ("192.0.2.6", false),
            ("192.0.2.8", false),
            ("2001:db8:7fff::1", true),
            ("2001:db8:8000::", false),
            ("::1", true),
        ] {
            assert_eq!(set.contains(address(text)), expected, "{text}");
        }
        let all = AddressSet::parse(&["0.0.0.0/0", "::/0"]).expect("read");
        assert!(all.contains(address("255.255.255.255")) && all.contains(address("ffff::")));
        assert!(!AddressSet::default().contains(address("10.0.0.1")));
    }

    #[test]
    fn what_is_no_network_is_told() {
        for text in ["", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8", "x", "2001:db8::/129", "10.0.0"] {
            assert_eq!(AddressSet::parse(&[text]), Err(NoNetwork(text.to_owned())), "{text}");
        }
    }

    fn filter(mode: &str) -> IpFilter {
        let json = format!(
            r#"{{"mode": "{mode}", "blacklist": ["203.0.113.0/24"], "whitelist": ["198.51.100.0/24"],
                "bans": [{{"networks": ["198.51.100.9"], "until_ms": 10}}]}}"#
        );
        serde_json::from_str(&json).expect("a filter")
    }

    #[test]
    fn lists_and_bans_decide_and_this_machine_always_may() {
        for (mode, caller, now_ms, expected) in [
            ("off", "203.0.113.5", 0, true),
            ("blacklist", "203.0.113.5", 0, false),
            ("blacklist", "::ffff:203.0.113.5", 0, false),
            ("blacklist", "192.0.2.1", 0, true),
            ("whitelist", "192.0.2.1", 0, false),
            ("whitelist", "198.51.100.1", 0, true),
            ("whitelist", "198.51.100.9", 9, false),
            ("whitelist", "198.51.100.9", 10, true),
            ("off", "198.51.100.9", 9, false),
            ("whitelist", "127.0.0.1", 0, true),
            ("whitelist", "::1", 0, true),
            ("whitelist", "::ffff:127.0.0.1", 0, true),
        ] {
            assert_eq!(filter(mode).admits(Some(address(caller)), now_ms), expected, "{mode} {caller} {now_ms}");
        }
        assert!(filter("whitelist").admits(None, 0) && IpFilter::default().admits(Some(address("192.0.2.1")), 0));
    }
}
