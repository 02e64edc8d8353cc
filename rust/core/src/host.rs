//! By which names a gateway may be called by whom it does not know. A page of a stranger's site can have its own name point to
//! this machine after it was loaded (DNS rebinding): its requests are then of one origin with the gateway, and nothing but
//! the name in `Host` tells them apart. Nobody can do that to an address, nor to `localhost`.

use std::net::{Ipv4Addr, Ipv6Addr};

/// The name of a `Host` value, without its port and the dot of a whole name. An address of version 6 keeps its brackets.
pub fn name(host: &str) -> &str {
    let name = match host.strip_prefix('[').and_then(|rest| rest.find(']')) {
        Some(end) => &host[..end + 2],
        None => host.split(':').next().unwrap_or(host),
    };
    name.strip_suffix('.').unwrap_or(name)
}

/// `localhost`, what is beneath it, or an address: names that no stranger's name server can give to this machine.
pub fn is_unrebindable(host: &str) -> bool {
    let name = name(host);
    let is_local = name.rsplit('.').next().is_some_and(|last| last.eq_ignore_ascii_case("localhost"));
    is_local || name.starts_with('[') || name.parse::<Ipv4Addr>().is_ok()
}

/// Whether the gateway's operator or the machine itself stands for this `Host`. `names`: what the operator has named.
pub fn is_own(host: &str, names: &[String]) -> bool {
    let called = name(host);
    is_unrebindable(host) || names.iter().any(|own| name(own).eq_ignore_ascii_case(called))
}

/// Whether a `Host` is a name of this machine alone: `localhost` or a loopback address, with any port. Another name may
/// lead here too, but then a stranger's name server or a proxy may have brought the caller.
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
