//! Reads a connection's base URL: the origin that is dialled, and the path of its chat endpoint.

use crate::upstream::auth::Unusable;
use crate::upstream::connector::Origin;
use fairlead_core::{Connection, Dialect, Protocol};
use http::Uri;

/// Returns the origin of a base URL.
pub fn origin_of(base: &Uri) -> Result<Origin, Unusable> {
    let tls = match base.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        _ => return Err(Unusable::BaseUrl),
    };
    let authority = base.authority().ok_or(Unusable::BaseUrl)?;
    let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
    // An IPv6 literal has brackets in a URL and nowhere else.
    let host = authority.host();
    let host = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    Ok(Origin::Tcp { host: host.into(), port, tls, proxy: None })
}

/// Returns the path and query of the chat endpoint. For Gemini's dialect it is the part before the model.
pub fn chat_uri(connection: &Connection, base: &Uri) -> Result<Uri, Unusable> {
    let usual_path = match connection.dialect {
        _ if connection.protocol == Protocol::CohereChat => "/chat",
        // The path contains the model.
        _ if connection.protocol != Protocol::Own => "",
        Dialect::Openai => "/chat/completions",
        Dialect::OpenaiResponses => "/responses",
        Dialect::Anthropic => "/messages",
        // The model is appended.
        Dialect::Gemini => "",
    };
    let path = connection.chat_path.as_deref().unwrap_or(usual_path);
    let separator = if path.starts_with('/') || path.is_empty() { "" } else { "/" };
    let text = format!("{}{separator}{path}", base.path().trim_end_matches('/'));
    let text = if text.is_empty() { "/" } else { &text };
    text.parse().map_err(|_| Unusable::BaseUrl)
}
