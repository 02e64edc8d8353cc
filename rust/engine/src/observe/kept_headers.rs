//! The headers stored with captured bodies: the request headers that control the gateway, and the gateway's own
//! response headers. Credentials, cookies and all other headers are left out.

use http::header::{HeaderMap, HeaderName, CONTENT_TYPE, RETRY_AFTER};

/// Header names and values.
pub type HeaderLines = Vec<(String, String)>;

/// Longer values are truncated to this length.
pub const MAX_VALUE_CHARS: usize = 256;
/// The limit of stored headers per response. The gateway sets fewer.
const MAX_LINES: usize = 40;
const TOLD: &str = "x-gateway-";

/// The response headers that describe how the response was produced.
pub fn of_answer(headers: &HeaderMap) -> HeaderLines {
    let is_ours = |name: &HeaderName| name.as_str().starts_with(TOLD) || [CONTENT_TYPE, RETRY_AFTER].contains(name);
    let ours = headers.iter().filter(|(name, _)| is_ours(name)).take(MAX_LINES);
    lines(ours.map(|(name, value)| (name.as_str(), value.to_str().ok())))
}

/// The headers that have a value.
pub fn lines<'v>(headers: impl IntoIterator<Item = (&'v str, Option<&'v str>)>) -> HeaderLines {
    let cut = |value: &str| value.chars().take(MAX_VALUE_CHARS).collect();
    headers.into_iter().filter_map(|(name, value)| Some((name.to_owned(), cut(value?)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::{HeaderValue, SET_COOKIE};

    #[test]
    fn of_an_answer_what_the_gateway_told_is_kept_and_nothing_else() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("x-gateway-provider", "lab"), ("retry-after", "7"), ("x-request-cost", "1")] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers.insert(SET_COOKIE, HeaderValue::from_static("auth_token=secret"));
        let long = HeaderValue::from_str(&"é".repeat(3)).expect("bytes that are no ASCII are taken");
        headers.insert("x-gateway-model", long);
        headers.insert("x-gateway-decision", HeaderValue::from_str(&"d".repeat(999)).expect("visible"));
        let mut pairs = of_answer(&headers);
        pairs.sort();
        let names: Vec<&str> = pairs.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["retry-after", "x-gateway-decision", "x-gateway-provider"]);
        assert_eq!(pairs[1].1.len(), MAX_VALUE_CHARS);
    }
}
