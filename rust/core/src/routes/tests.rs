use super::*;
use proptest::prelude::*;

fn path_of(method: &str, path: &str) -> Option<&'static str> {
    match find(method, path) {
        Match::Found { route, .. } => Some(route.path),
        _ => None,
    }
}

#[test]
fn a_path_tells_in_which_form_its_errors_are() {
    assert_eq!(surface_at("/api/crawl/x/errors"), Some(Surface::Scraping));
    assert_eq!(surface_at("/api/keys"), Some(Surface::Management));
    assert_eq!(surface_at("/api/crawler"), None);
}

#[test]
fn every_route_finds_itself() {
    for route in all() {
        let example = route.path.replace("{*id}", "openai/gpt-4o").replace("{id}", "abc-1").replace("{slug}", "abc");
        let example = example.replace("{operation}", "abc2").replace("{name}", "abc").replace("{*tool}", "abc");
        let example = example.replace("{provider}", "openai").replace("{key_id}", "k-1").replace("{user_id}", "u-1");
        let example = example.replace("{item}", "i-1");
        assert_eq!(path_of(route.method, &example), Some(route.path));
    }
}

#[test]
fn a_path_that_is_not_served_says_what_is() {
    for path in ["/v1/vector_stores", "/v1/vector_stores/vs_1/files", "/api/v1/assistants", "/ollama/api/pull"] {
        assert!(unserved(path).is_some(), "{path}");
        assert!(matches!(find("POST", path), Match::None), "{path}");
    }
    for path in ["/v1/vector", "/v1/vector_storesx", "/nothing"] {
        assert_eq!(unserved(path), None, "{path}");
    }
}

#[test]
fn paths_below_the_scraping_api_have_its_error_format() {
    for path in
        ["/api/crawl/a%00b", "/api/crawl/a%2fb/errors", "/api/sites/ ", "/v2/crawl/\u{e9}", "/v2/batch/scrape/%"]
    {
        assert_eq!(surface_below(path), Some(Surface::Scraping), "{path}");
    }
    for path in ["/v2/agent", "/v2/monitor/m/checks", "/v2/search/research", "/v2/scrape/s/interact"] {
        assert_eq!(surface_below(path), Some(Surface::Scraping), "{path}");
    }
    for path in ["/api/crawler/x", "/api/keys/a%00b", "/v2/chat", "/v2/embed", "/v1/vector_stores"] {
        assert_eq!(surface_below(path), None, "{path}");
    }
}

#[test]
fn a_literal_wins_over_a_pattern() {
    assert_eq!(path_of("POST", "/api/providers/validate"), Some("/api/providers/validate"));
    assert_eq!(path_of("GET", "/api/providers/validate"), Some("/api/providers/{id}"));
}

#[test]
fn a_path_may_name_a_thing_of_a_thing() {
    let pattern = "/api/me/groups/{id}/keys/{key_id}/regenerate";
    let Match::Found { route, tail } = find("POST", "/api/me/groups/g/keys/k/regenerate") else { panic!("not found") };
    assert_eq!((route.path, &*tail), (pattern, "g"));
    assert_eq!(path_of("PATCH", "/api/me/groups/g/keys/k"), Some("/api/me/groups/{id}/keys/{key_id}"));
    assert_eq!(path_of("DELETE", "/api/groups/g/members/u"), Some("/api/groups/{id}/members/{user_id}"));
    for path in
        ["/api/me/groups//keys/k", "/api/me/groups/g/keys/", "/api/me/groups/g/keys/..", "/api/groups/g/members/u/x"]
    {
        assert!(!matches!(find("DELETE", path), Match::Found { .. }), "{path}");
    }
}

/// Additional paths, with the path in the table that each is rewritten to.
const OTHER_PATHS: &[(&str, &str, &str)] = &[
    ("POST", "/chat/completions", "/v1/chat/completions"),
    ("POST", "/completions", "/v1/completions"),
    ("POST", "/responses", "/v1/responses"),
    ("GET", "/responses/resp_1", "/v1/responses/resp_1"),
    ("POST", "/embeddings", "/v1/embeddings"),
    ("GET", "/models", "/v1/models"),
    ("GET", "/models/openai/gpt-4o", "/v1/models/openai/gpt-4o"),
    ("POST", "/messages", "/v1/messages"),
    ("POST", "/messages/count_tokens", "/v1/messages/count_tokens"),
    ("POST", "/images/generations", "/v1/images/generations"),
    ("POST", "/audio/transcriptions", "/v1/audio/transcriptions"),
    ("POST", "/moderations", "/v1/moderations"),
    ("POST", "/rerank", "/v1/rerank"),
    ("POST", "/v2/rerank", "/v1/rerank"),
    ("GET", "/files", "/v1/files"),
    ("GET", "/batches/b1", "/v1/batches/b1"),
    ("GET", "/realtime", "/v1/realtime"),
    ("POST", "/v1/v1/chat/completions", "/v1/chat/completions"),
    ("POST", "/v1/v1/messages", "/v1/messages"),
    ("GET", "/v1/v1/models/a%2Fb", "/v1/models/a%2Fb"),
    ("POST", "/openai/v1/responses", "/v1/responses"),
    ("POST", "/openai/chat/completions", "/v1/chat/completions"),
    ("POST", "/anthropic/v1/messages", "/v1/messages"),
    ("POST", "/anthropic/messages", "/v1/messages"),
    ("POST", "/ollama/v1/chat/completions", "/v1/chat/completions"),
    ("POST", "/v1beta/openai/chat/completions", "/v1/chat/completions"),
    ("GET", "/v1beta/openai/models", "/v1/models"),
    ("POST", "/v1beta/openai/embeddings", "/v1/embeddings"),
    ("POST", "/v1/v1beta/models/g/m:generateContent", "/v1beta/models/g/m:generateContent"),
    ("POST", "/v1beta/v1beta/models/g/m:countTokens", "/v1beta/models/g/m:countTokens"),
    ("POST", "/gemini/v1beta/models/g/m:embedContent", "/v1beta/models/g/m:embedContent"),
    ("POST", "/models/g/m:generateContent", "/v1/models/g/m:generateContent"),
    ("POST", "/v1beta/g/m:generateContent", "/v1beta/models/g/m:generateContent"),
    ("POST", "/v1beta/g%2Fm:streamGenerateContent", "/v1beta/models/g%2Fm:streamGenerateContent"),
    ("POST", "/v1beta/openai/gpt-4o:generateContent", "/v1beta/models/openai/gpt-4o:generateContent"),
    ("POST", "/v1/g/m:countTokens", "/v1/models/g/m:countTokens"),
    ("POST", "/v1beta/g/m:batchGenerateContent", "/v1beta/models/g/m:batchGenerateContent"),
    ("POST", "/v1beta/g/m:predictLongRunning", "/v1beta/models/g/m:predictLongRunning"),
    ("POST", "/api/chat", "/ollama/api/chat"),
    ("POST", "/api/generate", "/ollama/api/generate"),
    ("GET", "/api/tags", "/ollama/api/tags"),
    ("POST", "/api/show", "/ollama/api/show"),
    ("GET", "/api/version", "/ollama/api/version"),
];

#[test]
fn an_other_path_is_the_same_route_with_the_same_rules() {
    for &(method, other, own) in OTHER_PATHS {
        let (Match::Found { route, tail }, Match::Found { route: canonical, tail: same }) =
            (find(method, other), find(method, own))
        else {
            panic!("{method} {other}")
        };
        assert!(std::ptr::eq(route, canonical), "{other} is {}", route.path);
        assert_eq!((&tail, &*route.own_path(other)), (&same, own), "{other}");
        assert_eq!((surface_at(other), tier_at(other)), (surface_at(own), tier_at(own)), "{other}");
        let Match::OtherMethod(methods) = find("TRACE", other) else { panic!("{other} has methods") };
        assert!(methods.contains(&method), "{other}");
    }
}

/// Only routes for callers with keys answer under a path that is not their own: an additional path never leads to
/// management, sign-in or a page.
#[test]
fn other_paths_lead_to_no_route_but_those_of_clients() {
    for route in all() {
        let example = route.path.replace(['{', '}', '*'], "");
        for folder in ["/api", "/v1", "/v1beta", "/openai", "/anthropic", "/google", "/gemini", "/ollama", "/v2"] {
            for other in
                [format!("{folder}{example}"), example.replacen("/v1/", "/", 1), example.replacen("/api/", "/", 1)]
            {
                if let Match::Found { route: found, .. } = find(route.method, &other) {
                    let is_own = matches(found.path, &other).is_some();
                    assert!(is_own || matches!(found.tier, Tier::Inference | Tier::Key), "{other}: {}", found.path);
                }
            }
        }
    }
    for path in
        ["/keys", "/v1/keys", "/openai/keys", "/api/api/keys", "/v1/api/keys", "/openai/v1", "/v2/embed", "/search"]
    {
        assert!(matches!(find("GET", path), Match::None), "{path}");
    }
    // A path is rewritten once, not twice.
    assert!(matches!(find("GET", "/api/v1/v1/models"), Match::None));
    // A percent-encoded folder is not another spelling of the name.
    assert!(matches!(find("POST", "/v1beta/models%2Fg%2Fm:generateContent"), Match::None));
}

#[test]
fn routes_under_v1_have_a_second_name() {
    let Match::Found { route, tail } = find("GET", "/api/v1/models/a%2Fb") else { panic!("not found") };
    assert_eq!((route.path, &*tail), ("/v1/models/{*id}", "a/b"));
    assert_eq!(&*route.own_path("/api/v1/models/a%2Fb"), "/v1/models/a%2Fb");
    assert_eq!(&*route.own_path("/v1/models/api/v1/x"), "/v1/models/api/v1/x");
    assert_eq!(path_of("POST", "/api/v1/messages"), Some("/v1/messages"));
    assert_eq!(surface_at("/api/v1/messages"), Some(Surface::Anthropic));
    assert!(matches!(find("DELETE", "/api/v1/models"), Match::OtherMethod(_)));
    for path in ["/api/api/v1/models", "/api/v1", "/api/v1/", "/api/v1/keys", "/api/healthz", "/api/V1/models"] {
        assert_eq!(path_of("GET", path), None, "{path}");
    }
    // A route with exactly this path keeps it.
    let Match::Found { route, .. } = find("GET", "/api/keys") else { panic!("not found") };
    assert_eq!(&*route.own_path("/api/keys"), "/api/keys");
}

#[test]
fn other_spellings_are_other_paths() {
    for path in [
        "/V1/models",
        "//v1/models",
        "/v1//models",
        "/v1/./models",
        "/v1%2fmodels",
        "/v1/models/",
        "/v1/models/..",
        "/v1/models/%2e%2e",
        "/v1/models/a%2F%2e%2e%2fb",
        "/v1/models/a%2F",
        "/v1/models/a%252Fb",
        "/v1/models/a%2",
        "/v1/models/%ff",
        "/v1/models;x",
        "/v1/models/a%00b",
        "/v1\\models",
        "v1/models",
        "/api/keys/a/b",
        "/api/keys/a%2fb",
        "/api/keys/",
        "",
        "*",
    ] {
        assert!(!matches!(find("GET", path), Match::Found { .. }), "{path}");
    }
}

#[test]
fn an_operation_stands_behind_a_models_name() {
    let Match::Found { route, tail } = find("GET", "/v1beta/models/google%2Fveo/operations/a1") else {
        panic!("not found")
    };
    assert_eq!((route.path, &*tail), ("/v1beta/models/{*id}/operations/{operation}", "google/veo"));
    for path in [
        "/v1beta/models/veo/operations",
        "/v1beta/models/veo/operations/",
        "/v1beta/models//operations/a1",
        "/v1beta/models/veo%2Foperations%2Fa1",
        "/v1beta/models/operations/a1",
    ] {
        assert_ne!(path_of("GET", path), Some(route.path), "{path}");
    }
    assert_eq!(path_of("GET", "/v1beta/models/veo/operations/a%2Fb"), Some("/v1beta/models/{*id}"));
    // Decoded, these are the path of the operation. Encoded, they match neither the operation nor a model.
    for path in ["/v1beta/models/veo%2Foperations%2Fa1", "/v1beta/models/veo/operations/%2ea1"] {
        assert_eq!(path_of("GET", path), None, "{path}");
    }
}

#[test]
fn a_wrong_method_names_the_right_ones() {
    let Match::OtherMethod(methods) = find("DELETE", "/v1/models") else { panic!("no methods") };
    assert_eq!(methods, ["GET", "HEAD"]);
    assert!(matches!(find("HEAD", "/v1/models"), Match::Found { .. }));
    assert!(matches!(find("get", "/v1/models"), Match::OtherMethod(_)));
}

/// Normalizes a path as servers in front of or behind a gateway may do.
fn folded(path: &str) -> String {
    let decoded = decode(path).map_or_else(|| path.to_owned(), Cow::into_owned);
    let mut segments: Vec<&str> = Vec::new();
    for segment in decoded.split(['/', '\\']) {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}

#[test]
fn fuzz_routes() {
    let paths: Vec<&'static str> = all().map(|route| route.path).collect();
    let spelling = prop::sample::select(vec![
        "/",
        "//",
        "/./",
        "/../",
        "%2F",
        "%2f",
        "%2e",
        "%2E%2e",
        "\\",
        ";x",
        "%00",
        "%25",
        "?",
        "#",
        " ",
        "models",
        "/api",
        "/v1",
        ":generateContent",
        "%6D",
        "\u{e9}",
        "\u{ff0f}",
    ]);
    let piece = prop_oneof![3 => spelling.prop_map(str::to_owned), 1 => any::<String>(), 1 => "[ -~]{0,4}"];
    let path = (
        prop::sample::select(paths),
        prop::collection::vec((piece, any::<prop::sample::Index>()), 0..4),
        any::<bool>(),
    );
    let path = path.prop_map(|(pattern, pieces, aliased)| {
        let mut path = format!("{}{}", if aliased { "/api" } else { "" }, pattern.replace(['{', '}', '*'], ""));
        for (piece, at) in pieces {
            let mut at = at.index(path.len() + 1);
            while !path.is_char_boundary(at) {
                at -= 1;
            }
            path.insert_str(at, &piece);
        }
        path
    });
    let methods = prop::sample::select(vec!["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "get", "", "TRACE"]);
    crate::fuzz::check(&(methods, path), |(method, path)| {
        let Match::Found { route, tail } = find(method, &path) else { return Ok(()) };
        prop_assert_eq!(route.method, if method == "HEAD" { "GET" } else { method });
        prop_assert!(
            path.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#;\\\"<>^`{|}".contains(&byte)),
            "{}",
            path
        );
        prop_assert!(tail.is_empty() || tail.split('/').all(is_plain_segment), "{}", tail);
        prop_assert!(!path.contains("//") && path.split('/').all(|segment| segment != "." && segment != ".."));
        // However the path is normalized on its way, it leads to this route.
        let canonical = folded(&path);
        prop_assert_eq!(&canonical, &folded(&canonical));
        if let Match::Found { route: again, tail: same } = find(method, &canonical) {
            // Some routes have a second one of the same tier, with a trailing slash.
            let (own, again_path) = (route.path.trim_end_matches('/'), again.path.trim_end_matches('/'));
            prop_assert_eq!((again_path, &*same, again.tier), (own, &*tail, route.tier), "{}", path);
        } else {
            prop_assert!(false, "{} is a route and {} is none", path, canonical);
        }
        Ok(())
    });
}

#[test]
fn the_tail_of_a_model_keeps_its_slashes() {
    let Match::Found { tail, .. } = find("GET", "/v1/models/openrouter/meta/llama-3:free") else { panic!("not found") };
    assert_eq!(tail, "openrouter/meta/llama-3:free");
    let Match::Found { tail, .. } = find("GET", "/v1/models/openrouter%2Fmeta%2fllama-3%3Afree") else {
        panic!("not found")
    };
    assert_eq!(tail, "openrouter/meta/llama-3:free");
}
