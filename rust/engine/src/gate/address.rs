//! The address of a caller: the peer of the socket, or the address that the operator's proxies report.

use crate::clock;
use crate::gate::inbound::Inbound;
use crate::shared::Shared;
use fairlead_core::{Error, ErrorKind};
use std::net::{IpAddr, SocketAddr};

/// Returns the caller's address; `None` on a Unix socket. With `trusted_proxies` it is the entry at that position from
/// the right of `X-Forwarded-For`. Without such an entry the peer is the caller.
pub fn caller_address(inbound: &Inbound<'_>, trusted_proxies: usize) -> Option<IpAddr> {
    let forwarded = if trusted_proxies == 0 { None } else { forwarded(inbound, trusted_proxies) };
    forwarded.or(inbound.peer).map(|address| address.to_canonical())
}

/// Checks whether requests from this address are allowed at all, for any caller.
pub fn admit_address(shared: &Shared, address: Option<IpAddr>) -> Result<(), Error> {
    if shared.active.load().snapshot.ip_filter.admits(address, clock::unix_ms()) {
        return Ok(());
    }
    Err(Error::client(ErrorKind::Forbidden, "This address may not call the gateway."))
}

fn forwarded(inbound: &Inbound<'_>, trusted_proxies: usize) -> Option<IpAddr> {
    let lines = inbound.headers.iter().filter(|(name, _)| *name == b"x-forwarded-for");
    let hops: Vec<&[u8]> = lines.flat_map(|(_, value)| value.split(|&byte| byte == b',')).collect();
    let hop = hops.get(hops.len().saturating_sub(trusted_proxies))?;
    let text = std::str::from_utf8(hop).ok()?.trim();
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|socket| socket.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(lines: &[&str], trusted_proxies: usize) -> String {
        let headers: Vec<(&[u8], &[u8])> =
            lines.iter().map(|line| (&b"x-forwarded-for"[..], line.as_bytes())).collect();
        let inbound = Inbound {
            method: "GET",
            path: "/",
            query: b"",
            headers: &headers,
            authority: None,
            peer: "::ffff:192.0.2.1".parse().ok(),
            is_tls: false,
            is_http2: false,
        };
        caller_address(&inbound, trusted_proxies).expect("an address").to_string()
    }

    #[test]
    fn only_proxies_of_ours_speak_for_others() {
        for (lines, trusted_proxies, expected) in [
            (&["203.0.113.7"][..], 0, "192.0.2.1"),
            (&["203.0.113.7"][..], 1, "203.0.113.7"),
            (&["198.51.100.1, 203.0.113.7"][..], 1, "203.0.113.7"),
            (&["198.51.100.1, 203.0.113.7"][..], 2, "198.51.100.1"),
            (&["198.51.100.1", "203.0.113.7:4711"][..], 1, "203.0.113.7"),
            (&["[2001:db8::1]"][..], 1, "2001:db8::1"),
            (&["[2001:db8::1]:80"][..], 1, "2001:db8::1"),
            (&["203.0.113.7"][..], 5, "203.0.113.7"),
            (&["nonsense"][..], 1, "192.0.2.1"),
            (&[][..], 1, "192.0.2.1"),
        ] {
            assert_eq!(address(lines, trusted_proxies), expected, "{lines:?} {trusted_proxies}");
        }
    }
}
