//! The host names under which unknown callers may reach the gateway. After a page of another site has loaded, that site
//! can point its own name to this machine (DNS rebinding). Its requests then have the same origin as the gateway, and
//! only the name in `Host` identifies them. An address or `localhost` cannot be rebound.

use std::net::{Ipv4Addr, Ipv6Addr};

/// The name in a `Host` value, without the port and the final dot. An IPv6 address keeps its brackets.
pub fn name(host: &str) -> &str {
    let name = match host.strip_prefix('[').and_then(|rest| rest.find(']')) {
        Some(end) => &host[..end + 2],
        None => host.split(':').next().unwrap_or(host),
    };
    name.strip_suffix('.').unwrap_or(name)
}

/// Whether the host is `localhost`, a subdomain of it, or an address, which no other name server can point to this
/// machine.
pub fn is_unrebindable(host: &str) -> bool {
    let name = name(host);
    let is_local = name.rsplit('.').next().is_some_and(|last| last.eq_ignore_ascii_case("localhost"));
    is_local || name.starts_with('[') || name.parse::<Ipv4Addr>().is_ok()
}

/// Whether this `Host` belongs to the gateway: an address or `localhost`, or one of the operator's `names`.
pub fn is_own(host: &str, names: &[String]) -> bool {
    let called = name(host);
    is_unrebindable(host) || names.iter().any(|own| name(own).eq_ignore_ascii_case(called))
}

/// Whether a `Host` names only this machine: `localhost` or a loopback address, with any port. Other names may resolve
/// to this machine too, but through another name server or a proxy.
pub fn is_loopback(host: &str) -> bool {
    let name = name(host);
    if let Some(address) = name.strip_prefix('[') {
        let address = address.strip_suffix(']').and_then(|address| address.parse::<Ipv6Addr>().ok());
        return address.is_some_and(|address| address.to_canonical().is_loopback());
    }
    name.eq_ignore_ascii_case("localhost") || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_this_machine_need_no_list() {
        for host in [
            "localhost",
            "LocalHost:20128",
            "localhost.",
            "app.localhost:1",
            "127.0.0.1",
            "127.0.0.1:20128",
            "192.168.1.7:80",
            "[::1]",
            "[::1]:20128",
            "[fe80::1]:1",
        ] {
            assert!(is_own(host, &[]), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:20128",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "127.1",
            "xlocalhost",
            "",
            ".",
        ] {
            assert!(!is_own(host, &[]), "{host}");
        }
    }

    #[test]
    fn a_name_that_the_operator_gave_is_the_whole_name() {
        let names = ["gateway.example".to_owned(), "fairlead".to_owned()];
        for host in ["gateway.example", "Gateway.Example:443", "gateway.example.:443", "fairlead:20128"] {
            assert!(is_own(host, &names), "{host}");
        }
        for host in ["a.gateway.example", "gateway.example.evil", "fairlead.evil", "evil"] {
            assert!(!is_own(host, &names), "{host}");
        }
    }

    #[test]
    fn loopback_names_are_this_machine_and_no_others() {
        for own in
            ["localhost", "LOCALHOST:1", "127.0.0.1:20128", "127.9.9.9", "[::1]", "[::1]:1", "[::ffff:127.0.0.1]"]
        {
            assert!(is_loopback(own), "{own}");
        }
        for other in [
            "",
            "gw.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "192.168.0.2:1",
            "10.0.0.1",
            "[::2]",
            "[::1",
            "::1",
            "0.0.0.0",
        ] {
            assert!(!is_loopback(other), "{other}");
        }
    }
}
