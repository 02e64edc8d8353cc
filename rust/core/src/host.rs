//! What a `Host` header says of who calls.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Whether a `Host` is a name of this machine alone: `localhost` or a loopback address, with any port. Another name may
/// lead here too, but then a stranger's name server or a proxy may have brought the caller.
#[must_use]
pub fn is_loopback(host: &str) -> bool {
    if let Some(rest) = host.strip_prefix('[') {
        return rest
            .split_once(']')
            .and_then(|(name, _)| name.parse::<Ipv6Addr>().ok())
            .is_some_and(|address| address.to_canonical().is_loopback());
    }
    let name = host.split(':').next().unwrap_or(host);
    name.eq_ignore_ascii_case("localhost") || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::is_loopback;

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
