//! The paths of Azure OpenAI's API with versions. The version is a parameter of every URL. The URLs of most calls
//! contain the deployment that serves the model.

use crate::upstream::cloud_path::push_segment;

/// The calls whose URL contains the deployment. Other calls name it in the body.
const OF_DEPLOYMENT: &[&str] = &[
    "/chat/completions",
    "/completions",
    "/embeddings",
    "/images/generations",
    "/images/edits",
    "/audio/speech",
    "/audio/transcriptions",
    "/audio/translations",
];
/// The first version with the responses API. Only previews have it; later versions without `-preview` do not.
const FIRST_WITH_RESPONSES: &str = "2025-03-01-preview";

/// Returns the path and query of a call below `/openai`, by the path of the API without versions.
pub fn of(version: &str, path: &str, deployment: &str) -> String {
    let mut out = String::with_capacity(path.len() + deployment.len() + version.len() + 32);
    if OF_DEPLOYMENT.contains(&path) {
        out.push_str("/deployments/");
        push_segment(&mut out, deployment, b"");
    }
    out.push_str(path);
    out.push_str("?api-version=");
    push_segment(&mut out, version, b"");
    if path == "/realtime" {
        out.push_str("&deployment=");
        push_segment(&mut out, deployment, b"");
    }
    out
}

/// Whether this version has the responses API. The names of versions are dates, so texts compare as dates do.
pub fn has_responses(version: &str) -> bool {
    version.ends_with("-preview") && version >= FIRST_WITH_RESPONSES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_contains_the_deployment_and_the_version() {
        for (path, expected) in [
            ("/chat/completions", "/deployments/my-gpt/chat/completions?api-version=2024-10-21"),
            ("/audio/transcriptions", "/deployments/my-gpt/audio/transcriptions?api-version=2024-10-21"),
            ("/responses", "/responses?api-version=2024-10-21"),
            ("/realtime", "/realtime?api-version=2024-10-21&deployment=my-gpt"),
        ] {
            assert_eq!(of("2024-10-21", path, "my-gpt"), expected);
        }
    }

    #[test]
    fn a_name_stays_one_segment() {
        let path = of("2024-10-21", "/embeddings", "../a b?c");
        assert_eq!(path, "/deployments/..%2Fa%20b%3Fc/embeddings?api-version=2024-10-21");
    }

    #[test]
    fn only_later_previews_have_the_responses_api() {
        for (version, has) in [
            ("2024-10-21", false),
            ("2025-02-01-preview", false),
            ("2025-03-01-preview", true),
            ("2025-04-01-preview", true),
            ("2026-01-01", false),
        ] {
            assert_eq!(has_responses(version), has, "{version}");
        }
    }
}
