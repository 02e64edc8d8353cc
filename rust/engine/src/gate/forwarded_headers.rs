//! The headers of a request that control receives: all except those of the connection and of the caller's credentials.

use crate::gate::inbound::Inbound;
use http::{HeaderMap, HeaderName, HeaderValue};

/// Returns the headers to forward.
pub(super) fn forwarded_headers(inbound: &Inbound<'_>, with_authorization: bool) -> HeaderMap {
    let named: Vec<&[u8]> = inbound
        .headers
        .iter()
        .filter(|(name, _)| *name == b"connection")
        .flat_map(|(_, value)| value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii))
        .collect();
    let mut headers = HeaderMap::with_capacity(inbound.headers.len() + 6);
    for &(name, value) in inbound.headers {
        let is_named = named.iter().any(|other| other.eq_ignore_ascii_case(name));
        if is_named || (is_dropped(name) && !(with_authorization && name == b"authorization")) {
            continue;
        }
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
    }
    headers
}

fn is_dropped(name: &[u8]) -> bool {
    matches!(
        name,
        b"connection"
            | b"keep-alive"
            | b"proxy-connection"
            | b"proxy-authenticate"
            | b"proxy-authorization"
            | b"te"
            | b"trailer"
            | b"transfer-encoding"
            | b"upgrade"
            | b"content-length"
            | b"expect"
            | b"host"
            | b"authorization"
            | b"x-api-key"
            | b"x-goog-api-key"
            | b"x-gateway-cli-token"
    ) || name.starts_with(b"x-fairlead-")
        || name.contains(&b'_')
}
