//! Inspects a complete chat answer.

use fairlead_core::json::{self, JsonFault, Kind};
use fairlead_core::Usage;

use super::error;
pub use super::error::{error_fields, UpstreamError};
use super::usage;

/// The relevant data of a provider's response body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// As reported by the provider. `None` if the body has no usage object.
    pub usage: Option<Usage>,
    /// The body reports an error, independent of its HTTP status.
    pub error: Option<UpstreamError>,
    /// `choices` is present and an array.
    pub has_choices: bool,
}

/// Inspects a body. Fails if the body is not a single JSON object.
pub fn inspect(body: &[u8]) -> Result<Inspection, JsonFault> {
    let scan = json::scan_object(body, &["usage", "error", "choices", "service_tier"], json::MAX_DEPTH)?;
    let error = scan.get("error").filter(|member| error::is_error(*member));
    let used = scan.get("usage").filter(|used| used.kind == Kind::Object);
    let service = usage::service_of(body, scan.get("service_tier"));
    Ok(Inspection {
        usage: used.and_then(|used| Some(Usage { service, ..usage::read(body.get(used.span())?)? })),
        error: error.map(|member| error::read(body, member)),
        has_choices: scan.get("choices").is_some_and(|choices| choices.kind == Kind::Array),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_core::ServiceTier;

    #[test]
    fn an_answer_has_choices_and_usage() {
        let body =
            br#"{"id":"c","choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#;

        let inspection = inspect(body).expect("an object");
        assert_eq!(Some(Usage { input: 3, output: 1, ..Usage::default() }), inspection.usage);
        assert!(inspection.has_choices);
        assert_eq!(None, inspection.error);
    }

    #[test]
    fn an_answer_says_in_which_tier_it_was_served() {
        for (name, tier) in [
            (r#""flex""#, ServiceTier::Flex),
            (r#""priority""#, ServiceTier::Priority),
            (r#""default""#, ServiceTier::Standard),
            ("null", ServiceTier::Standard),
            ("[7]", ServiceTier::Standard),
        ] {
            let body = format!(r#"{{"choices":[],"service_tier":{name},"usage":{{"prompt_tokens":3}}}}"#);
            let usage = inspect(body.as_bytes()).expect("an object").usage.expect("it is told");
            assert_eq!((usage.input, usage.service), (3, tier), "{name}");
        }
    }

    #[test]
    fn an_error_under_status_200_is_seen() {
        let inspection = inspect(br#"{"error":{"message":"no quota"},"usage":null}"#).expect("an object");

        assert_eq!("no quota", inspection.error.expect("an error").message);
        assert!(!inspection.has_choices);
        assert_eq!(None, inspection.usage);
        let fine = inspect(br#"{"error":null,"choices":[]}"#).expect("an object");
        assert_eq!(None, fine.error);
        assert!(fine.has_choices);
    }

    #[test]
    fn what_is_no_object_is_a_fault() {
        for body in ["", "<html></html>", "[]", "{", "null"] {
            assert!(inspect(body.as_bytes()).is_err(), "{body}");
        }
    }
}
