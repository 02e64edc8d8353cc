//! Which addresses an outgoing connection may use. Providers, scraping and webhooks share one policy function. The
//! connector checks every address that a name resolves to, right before it dials that address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Who chose the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EgressPolicy {
    /// An operator entered it. Loopback and private networks are allowed, because local models run there.
    Operator,
    /// A page, a caller or a third party supplied it. Only the public internet is allowed.
    Public,
}

impl EgressPolicy {
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "operator" => Some(Self::Operator),
            "public" => Some(Self::Public),
            _ => None,
        }
    }

    /// Whether the policy allows the address. Link-local and metadata addresses, multicast, broadcast and "this host"
    /// are never allowed.
    pub fn allows(self, address: IpAddr) -> bool {
        let hidden = || carried(address).into_iter().flatten().map(IpAddr::V4);
        let own = unmapped(address);
        if is_never(own) || hidden().any(is_never) {
            return false;
        }
        self == Self::Operator || !(is_internal(own) || hidden().any(is_internal))
    }

    /// Whether the policy allows the address when the operator has opened `networks`. An opened network counts as
    /// public. Addresses that are never allowed stay forbidden.
    pub fn allows_with(self, address: IpAddr, networks: &Networks) -> bool {
        self.allows(address) || (Self::Operator.allows(address) && networks.contains(address))
    }
}

/// The private networks that an operator opened: a comma-separated list of CIDRs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks(Vec<(IpAddr, u8)>);

/// The part of a list that is not a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a network such as 10.1.0.0/16 or fd00::/8, without bits behind its prefix")]
pub struct NotANetwork(String);

impl Networks {
    /// Parses a list such as `10.0.0.0/8, 127.0.0.1/32`. Empty text gives no networks.
    pub fn parse(list: &str) -> Result<Self, NotANetwork> {
        let parts = list.split(',').map(str::trim);
        if list.trim().is_empty() {
            return Ok(Self::default());
        }
        parts.map(|part| network(part).ok_or_else(|| NotANetwork(part.to_owned()))).collect::<Result<_, _>>().map(Self)
    }

    fn contains(&self, address: IpAddr) -> bool {
        let address = unmapped(address);
        self.0.iter().any(|(base, prefix)| base.is_ipv4() == address.is_ipv4() && masked(address, *prefix) == *base)
    }
}

fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, prefix) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    if !prefix.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let prefix: u8 = prefix.parse().ok()?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    // Rejects an IPv4 address in an IPv6 form, because it would never match: addresses are compared as IPv4.
    (prefix <= bits && masked(address, prefix) == address && unmapped(address) == address).then_some((address, prefix))
}

fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    let prefix = u32::from(prefix);
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(prefix)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from(u32::from(v4) & mask))
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(prefix)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from(u128::from(v6) & mask))
        }
    }
}

/// Converts an IPv6 address that represents exactly one IPv4 address (mapped, compatible, translated, NAT64, 6to4), so
/// that no spelling bypasses the policy.
fn unmapped(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let segments = v6.segments();
    let v4 = match segments {
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(joined(high, low)),
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 || low > 1 => Some(joined(high, low)),
        _ => None,
    };
    v4.map_or(address, IpAddr::V4)
}

fn joined(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from((u32::from(high) << 16) | u32::from(low))
}

/// The IPv4 addresses that a tunnel or translator may extract from an IPv6 address with more than one reading: NAT64
/// with a network-specific prefix (RFC 8215, in the positions of RFC 6052), Teredo (RFC 4380) and ISATAP (RFC 5214).
fn carried(address: IpAddr) -> [Option<Ipv4Addr>; 4] {
    let IpAddr::V6(v6) = address else { return [None; 4] };
    let s = v6.segments();
    match s {
        // RFC 6052 puts eight zero bits in the middle of an address that begins before them.
        [0x64, 0xff9b, 1, ..] => [
            Some(joined(s[6], s[7])),
            Some(joined(s[3], (s[4] << 8) | (s[5] >> 8))),
            Some(joined((s[3] << 8) | (s[4] & 0xff), s[5])),
            Some(joined((s[4] << 8) | (s[5] >> 8), (s[5] << 8) | (s[6] >> 8))),
        ],
        [0x2001, 0, ..] => [Some(joined(s[2], s[3])), Some(joined(!s[6], !s[7])), None, None],
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => [Some(joined(high, low)), None, None, None],
        _ => [None; 4],
    }
}

/// Addresses of one network or one machine, and the metadata services of clouds, which return credentials to any client
/// on one of their machines.
fn is_never(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            a == 0
                || (a == 169 && b == 254)
                // Alibaba, Oracle, Azure.
                || v4 == Ipv4Addr::new(100, 100, 100, 200)
                || v4 == Ipv4Addr::new(192, 0, 0, 192)
                || v4 == Ipv4Addr::new(168, 63, 129, 16)
                || a >= 224
        }
        IpAddr::V6(v6) => {
            v6.is_unspecified()
                || v6.is_multicast()
                || (v6.segments()[0] & 0xffc0) == 0xfe80
                // Amazon, Google, Oracle.
                || v6 == Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254)
                || v6 == Ipv6Addr::new(0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254)
                || v6 == Ipv6Addr::new(0xfd00, 0x00c1, 0, 0, 0, 0, 0xa9fe, 0xa9fe)
        }
    }
}

/// Addresses that IANA's special-purpose registries do not list as globally reachable, and every IPv6 address that is
/// not global unicast.
fn is_internal(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            v4.is_loopback()
                || v4.is_private()
                || (a == 100 && (64..128).contains(&b))
                || (a == 192 && b == 0 && (c == 0 || c == 2))
                || (a == 192 && b == 88 && c == 99)
                || (a == 198 && (b == 18 || b == 19))
                || (a == 198 && b == 51 && c == 100)
                || (a == 203 && b == 0 && c == 113)
        }
        IpAddr::V6(v6) => {
            let [first, second, ..] = v6.segments();
            (first & 0xe000) != 0x2000
                // IETF protocol assignments, including Teredo, and both documentation blocks.
                || (first == 0x2001 && second < 0x200)
                || (first == 0x2001 && second == 0xdb8)
                || (first == 0x3fff && second < 0x1000)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(policy: EgressPolicy, text: &str) -> bool {
        policy.allows(text.parse().expect("an address"))
    }

    #[test]
    fn metadata_and_link_local_are_never_reached() {
        for text in [
            "169.254.169.254",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::",
            "fe80::1",
            "fd00:ec2::254",
            "0.0.0.0",
            "::",
            "224.0.0.1",
            "255.255.255.255",
            "ff02::1",
            "100.100.100.200",
            "::a9fe:a9fe",
            "168.63.129.16",
            "::ffff:168.63.129.16",
            "192.0.0.192",
            "fd20:ce::254",
            "fd00:c1::a9fe:a9fe",
            "::ffff:0:a9fe:a9fe",
            "64:ff9b:1::a9fe:a9fe",
            "64:ff9b:1:a9fe:a9:fe00::",
            "64:ff9b:1:12a9:fe:a9fe::",
            "64:ff9b:1:1234:a9:fea9:fe00:0",
            "2001:0:a9fe:a9fe::",
            "2001:0:808:808:0:ffff:5601:5601",
            "2001:db8::5efe:a9fe:a9fe",
            "2600::200:5efe:a9fe:a9fe",
            "fe80::5efe:7f00:1",
            "240.0.0.1",
            "0.1.2.3",
        ] {
            assert!(!allows(EgressPolicy::Operator, text), "{text}");
            assert!(!allows(EgressPolicy::Public, text), "{text}");
        }
    }

    #[test]
    fn private_networks_are_for_operators() {
        for text in
            ["127.0.0.1", "::1", "10.0.0.5", "192.168.1.1", "172.16.0.1", "fc00::1", "100.64.0.1", "::ffff:10.0.0.1"]
        {
            assert!(allows(EgressPolicy::Operator, text), "{text}");
            assert!(!allows(EgressPolicy::Public, text), "{text}");
        }
    }

    /// One address in each block of IANA's two special-purpose registries that is not globally reachable, and the edges
    /// of the blocks.
    #[test]
    fn special_purpose_addresses_are_not_the_internet() {
        for text in [
            "0.0.0.1",
            "10.255.255.255",
            "100.64.0.0",
            "100.127.255.255",
            "127.255.255.255",
            "169.254.0.1",
            "172.16.0.0",
            "172.31.255.255",
            "192.0.0.0",
            "192.0.0.255",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.0",
            "198.18.0.0",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.7",
            "240.0.0.0",
            "255.255.255.254",
            "::",
            "::1",
            "::2",
            "::ffff:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::",
            "64:ff9b:1:ffff::808:808",
            "100::",
            "100::1",
            "100:0:0:1::1",
            "2001::1",
            "2001:0:808:808::1",
            "2001:2::1",
            "2001:10::1",
            "2001:1ff:ffff::1",
            "2001:db8::1",
            "2002:a00:1::",
            "2002:7f00:1::1",
            "3fff::1",
            "3fff:fff:ffff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd00::1",
            "fdff:ffff::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "feff::1",
            "ff00::1",
            "2600::5efe:10.0.0.1",
        ] {
            assert!(!allows(EgressPolicy::Public, text), "{text}");
        }
        for text in [
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.15",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "191.255.255.255",
            "192.0.1.0",
            "192.0.3.0",
            "192.31.196.1",
            "192.52.193.1",
            "192.88.98.1",
            "192.88.100.1",
            "192.167.255.255",
            "192.169.0.0",
            "192.175.48.1",
            "198.17.255.255",
            "198.20.0.0",
            "198.51.99.1",
            "198.51.101.1",
            "203.0.112.1",
            "203.0.114.1",
            "223.255.255.255",
            "64:ff9b::8.8.8.8",
            "::ffff:8.8.8.8",
            "2000::1",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2001:db7::1",
            "2001:db9::1",
            "2002:808:808::1",
            "2620:4f:8000::1",
            "2a00::1",
            "3ffe::1",
            "3fff:1000::1",
        ] {
            assert!(allows(EgressPolicy::Public, text), "{text}");
        }
    }

    #[test]
    fn the_internet_is_for_all() {
        for text in ["1.1.1.1", "2606:4700::1111", "8.8.8.8"] {
            assert!(allows(EgressPolicy::Public, text) && allows(EgressPolicy::Operator, text), "{text}");
        }
    }

    #[test]
    fn a_named_network_is_reached_and_nothing_beside_it() {
        let networks = Networks::parse("127.0.0.0/8, 10.1.2.0/24,fd12::/16 , ::1/128").expect("networks");
        for (text, allowed) in [
            ("127.0.0.1", true),
            ("::ffff:127.0.0.1", true),
            ("10.1.2.255", true),
            ("10.1.3.0", false),
            ("192.168.0.1", false),
            ("::1", true),
            ("fd12::7", true),
            ("fd13::7", false),
            ("1.1.1.1", true),
        ] {
            assert_eq!(
                EgressPolicy::Public.allows_with(text.parse().expect("an address"), &networks),
                allowed,
                "{text}"
            );
        }
    }

    #[test]
    fn no_network_opens_what_is_never_reached() {
        let networks = Networks::parse("0.0.0.0/0,::/0").expect("networks");
        for text in ["169.254.169.254", "::ffff:169.254.169.254", "fd00:ec2::254", "0.0.0.0", "224.0.0.1", "fe80::1"] {
            assert!(!EgressPolicy::Public.allows_with(text.parse().expect("an address"), &networks), "{text}");
        }
        assert!(EgressPolicy::Public.allows_with("10.0.0.1".parse().expect("an address"), &networks));
    }

    #[test]
    fn a_list_of_networks_has_a_form() {
        assert_eq!(Networks::parse(" "), Ok(Networks::default()));
        for list in
            ["10.0.0.1", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/+8", "10.0.0.0/8,", "x/8", "::ffff:10.0.0.0/104"]
        {
            assert!(Networks::parse(list).is_err(), "{list}");
        }
    }
}
