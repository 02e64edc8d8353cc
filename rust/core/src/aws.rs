//! AWS Signature Version 4: computes the headers that authenticate a request to an Amazon service (AWS General
//! Reference, "Signing AWS API requests"). The caller passes the time, so the function is pure.

use crate::secret::{hex, Secret};
use jiff::tz::TimeZone;
use jiff::Timestamp;
use ring::digest::{digest, SHA256};
use ring::hmac;
use serde::Deserialize;
use std::fmt::Write as _;

/// S3 has signing rules that differ from those of every other service.
const S3: &str = "s3";

/// An AWS access key. Temporary credentials also have a session token.
#[derive(Debug, Clone, Deserialize)]
pub struct Keys {
    pub access_key_id: String,
    secret_access_key: Secret,
    #[serde(default)]
    session_token: Option<Secret>,
}

impl Keys {
    /// Parses JSON with `access_key_id`, `secret_access_key` and an optional `session_token`.
    pub fn parse(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
    }

    /// The values that must not appear in a log or message: the secret key and the session token.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        std::iter::once(&self.secret_access_key).chain(self.session_token.as_ref())
    }
}

/// The region and service that a signature is valid for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SigningScope {
    pub region: String,
    pub service: String,
}

/// The request to sign. `path` and `query` are exactly as sent on the request line.
#[derive(Debug, Clone, Copy)]
pub struct Unsigned<'r> {
    pub method: &'r str,
    pub host: &'r str,
    pub path: &'r str,
    pub query: &'r str,
    /// SHA-256 of the body.
    pub body_hash: [u8; 32],
}

/// Returns the headers that sign the request, with names in lower case. `unix_s` must be within five minutes of the
/// service's clock.
pub fn sign(keys: &Keys, scope: &SigningScope, request: Unsigned<'_>, unix_s: i64) -> Vec<(&'static str, String)> {
    let moment = Timestamp::from_second(unix_s).unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(TimeZone::UTC);
    let at = moment.strftime("%Y%m%dT%H%M%SZ").to_string();
    let day = &at[..8];
    let token = keys.session_token.as_ref().map(Secret::expose);
    let hash = hex(&request.body_hash);
    let is_s3 = scope.service == S3;

    let mut headers = format!("host:{}\n", request.host);
    let mut signed = String::from("host");
    if is_s3 {
        headers.extend(["x-amz-content-sha256:", &hash, "\n"]);
        signed.push_str(";x-amz-content-sha256");
    }
    headers.extend(["x-amz-date:", &at, "\n"]);
    signed.push_str(";x-amz-date");
    if let Some(token) = token {
        headers.extend(["x-amz-security-token:", token, "\n"]);
        signed.push_str(";x-amz-security-token");
    }
    let canonical = format!(
        "{}\n{}\n{}\n{headers}\n{signed}\n{}",
        request.method,
        if is_s3 { request.path.to_owned() } else { encode_path(request.path) },
        sort_query(request.query),
        hash,
    );
    let about = format!("{day}/{}/{}/aws4_request", scope.region, scope.service);
    let text = format!("AWS4-HMAC-SHA256\n{at}\n{about}\n{}", hex(digest(&SHA256, canonical.as_bytes()).as_ref()));

    let first = format!("AWS4{}", keys.secret_access_key.expose());
    let key = [day, &scope.region, &scope.service, "aws4_request"]
        .iter()
        .fold(first.into_bytes(), |key, part| mac(&key, part.as_bytes()));
    let signature = hex(&mac(&key, text.as_bytes()));
    let proof = format!(
        "AWS4-HMAC-SHA256 Credential={}/{about}, SignedHeaders={signed}, Signature={signature}",
        keys.access_key_id
    );
    let mut out = vec![("x-amz-date", at), ("authorization", proof)];
    if is_s3 {
        out.push(("x-amz-content-sha256", hash));
    }
    if let Some(token) = token {
        out.push(("x-amz-security-token", token.to_owned()));
    }
    out
}

fn mac(key: &[u8], data: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), data).as_ref().to_vec()
}

/// Encodes the path a second time. Every service except S3 signs it that way.
fn encode_path(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in if path.is_empty() { "/" } else { path }.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _written = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Sorts the parameters by name and value. A parameter without a value gets an empty one.
fn sort_query(query: &str) -> String {
    let mut pairs: Vec<(&str, &str)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .collect();
    pairs.sort_unstable();
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(session_token: Option<&str>) -> Keys {
        Keys {
            access_key_id: "AKIDEXAMPLE".into(),
            secret_access_key: Secret::from("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned()),
            session_token: session_token.map(|token| Secret::from(token.to_owned())),
        }
    }

    fn signature(method: &str, path: &str, query: &str) -> String {
        let scope = SigningScope { region: "us-east-1".into(), service: "service".into() };
        let mut body_hash = [0; 32];
        body_hash.copy_from_slice(digest(&SHA256, b"").as_ref());
        let request = Unsigned { method, host: "example.amazonaws.com", path, query, body_hash };
        let headers = sign(&keys(None), &scope, request, 1_440_938_160);
        assert_eq!(headers[0], ("x-amz-date", "20150830T123600Z".to_owned()));
        headers[1].1.rsplit_once('=').expect("a signature").1.to_owned()
    }

    /// The expected signatures of AWS's published test suite, for 2015-08-30 12:36:00 UTC.
    #[test]
    fn the_published_cases_come_out() {
        for (method, path, query, wanted) in [
            ("GET", "/", "", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
            ("POST", "/", "", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
            (
                "GET",
                "/",
                "Param2=value2&Param1=value1",
                "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            ),
        ] {
            assert_eq!(signature(method, path, query), wanted, "{method} {path}?{query}");
        }
    }

    /// Signatures that botocore 1.43.11 computes for calls of Bedrock's models, for 2015-08-30 12:36:00 UTC.
    #[test]
    fn paths_with_encoded_names_are_signed_as_botocore_does() {
        let scope = SigningScope { region: "us-east-1".into(), service: "bedrock".into() };
        let mut body_hash = [0; 32];
        body_hash.copy_from_slice(digest(&SHA256, br#"{"anthropic_version":"bedrock-2023-05-31"}"#).as_ref());
        let host = "bedrock-runtime.us-east-1.amazonaws.com";
        for (path, token, wanted) in [
            (
                "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke",
                None,
                "e6b2151bb988eec6c98e901dd098baeac3dba5d6ff84f43f9d907a39fe7f6ade",
            ),
            (
                "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.amazon.nova-pro-v1%3A0/converse-stream",
                Some("a-session-token"),
                "ec1ecb6745ce85df0e528656fe543f8f081faf24d3be9a43aa064027dc1061ec",
            ),
        ] {
            let request = Unsigned { method: "POST", host, path, query: "", body_hash };
            let headers = sign(&keys(token), &scope, request, 1_440_938_160);
            assert!(headers[1].1.ends_with(wanted), "{path}: {headers:?}");
        }
    }

    #[test]
    fn a_session_is_named_and_signed() {
        let scope = SigningScope { region: "eu-west-1".into(), service: "bedrock".into() };
        let request = Unsigned { method: "POST", host: "h", path: "/a%3Ab", query: "", body_hash: [0; 32] };
        let headers = sign(&keys(Some("a-token")), &scope, request, 0);
        assert_eq!(headers[2], ("x-amz-security-token", "a-token".to_owned()));
        assert!(headers[1].1.contains("Credential=AKIDEXAMPLE/19700101/eu-west-1/bedrock/aws4_request"));
        assert!(headers[1].1.contains("SignedHeaders=host;x-amz-date;x-amz-security-token"));
        assert!(!format!("{:?}", keys(Some("a-token"))).contains("a-token"));
    }

    /// AWS's own example ("Signature Calculations for the Authorization Header", GET Bucket Lifecycle).
    #[test]
    fn s3_signs_the_body_hash_as_a_header_and_the_path_as_it_is() {
        let keys = Keys {
            access_key_id: "AKIAIOSFODNN7EXAMPLE".into(),
            secret_access_key: Secret::from("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned()),
            session_token: None,
        };
        let scope = SigningScope { region: "us-east-1".into(), service: S3.into() };
        let mut body_hash = [0; 32];
        body_hash.copy_from_slice(digest(&SHA256, b"").as_ref());
        let host = "examplebucket.s3.amazonaws.com";
        let request = Unsigned { method: "GET", host, path: "/", query: "lifecycle", body_hash };
        let headers = sign(&keys, &scope, request, 1_369_353_600);
        let wanted = "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543";
        assert!(headers[1].1.contains("SignedHeaders=host;x-amz-content-sha256;x-amz-date"), "{headers:?}");
        assert!(headers[1].1.ends_with(wanted), "{headers:?}");
        assert_eq!(headers[2].0, "x-amz-content-sha256");
    }

    #[test]
    fn paths_are_encoded_once_more() {
        assert_eq!(encode_path("/model/a%3Ab/x y"), "/model/a%253Ab/x%20y");
        assert_eq!(encode_path(""), "/");
        assert_eq!(sort_query("b=2&a&a=1"), "a=&a=1&b=2");
    }
}
