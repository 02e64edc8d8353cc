use super::*;
use crate::fuzz;
use proptest::prelude::*;

#[test]
fn googles_folder_is_no_part_of_a_name() {
    for (spelled, name) in [
        ("g/gemini-3-pro", "g/gemini-3-pro"),
        ("g/models/gemini-3-pro", "g/gemini-3-pro"),
        ("g/Models/models/gemini-3-pro", "g/gemini-3-pro"),
        ("g/models", "g/models"),
        ("g/tunedModels/x", "g/tunedModels/x"),
        ("fast", "fast"),
        ("models/x", "models/x"),
        ("openrouter/meta-llama/llama-3:free", "openrouter/meta-llama/llama-3:free"),
        ("n/@cf/meta/llama", "n/@cf/meta/llama"),
        ("n/accounts/a/models/m#accounts/a/deployments/d", "n/accounts/a/models/m#accounts/a/deployments/d"),
        ("n/Mein Modell é", "n/Mein Modell é"),
        // No model has such a name; the lookup reports that.
        ("/m", "/m"),
        ("n/", "n/"),
    ] {
        assert_eq!(canonical(spelled).as_deref(), Ok(name), "{spelled}");
    }
}

#[test]
fn a_spelling_that_could_be_two_names_is_refused() {
    for (spelled, reason) in [
        ("p/g-1 ", "white space"),
        (" p/g-1", "white space"),
        ("p/ g-1", "white space"),
        ("p/g-1\t", "white space"),
        ("p/g-1\u{a0}", "white space"),
        ("p/g\u{2003}1", "invisible"),
        ("p/g-1\u{200b}", "invisible"),
        ("p/g\0", "control"),
        ("p/g\n1", "control"),
        ("p//g-1", "empty segment"),
        ("p/g-1/", "empty segment"),
        ("p/./g-1", "dots"),
        ("p/x/../g-1", "dots"),
        ("p/...", "dots"),
        ("p/x\\..\\g-1", "backslash"),
        ("p/x\u{ff0f}g-1", "backslash"),
        ("p/x\u{2044}g-1", "backslash"),
        ("p/x\u{2215}g-1", "backslash"),
        ("p/\u{ff47}-1", "ASCII"),
        ("p/x%2Fg-1", "percent"),
        ("p/%2e%2E/g-1", "percent"),
        ("p/g-1%00", "percent"),
    ] {
        let fault = canonical(spelled).expect_err(spelled);
        assert!(fault.0.contains(reason), "{spelled:?}: {fault}");
    }
}

#[test]
fn an_address_has_a_folder_of_the_few() {
    for (model, path) in [
        ("gemini-3-pro", "models/gemini-3-pro"),
        ("models/gemini-3-pro", "models/gemini-3-pro"),
        ("tunedModels/a b", "tunedModels/a%20b"),
        ("endpoints/123", "endpoints/123"),
        ("publishers/google/models/gemini@001", "publishers/google/models/gemini@001"),
        ("llama3:8b", "models/llama3%3A8b"),
    ] {
        assert_eq!(address(model).as_deref(), Ok(path), "{model}");
    }
    for model in [
        "",
        ".",
        "..",
        "a/b",
        "g-1/../../../admin",
        "TunedModels/x",
        "tunedModels/..",
        "tunedModels/x/y",
        "publishers/../models/x",
        "publishers/google/x",
        "projects/p/locations/l/publishers/google/models/x",
        "x?alt=sse",
        "x#y",
        "x;y",
        "x%2Fy",
        "x%",
        "x\\y",
        "x\0",
        " x",
        "x ",
        "é",
    ] {
        assert!(address(model).is_err(), "{model:?}");
    }
}

#[test]
fn a_pattern_speaks_of_a_model_in_every_spelling() {
    let block = |pattern, model| is_named(pattern, model, Case::Ignored);
    for pattern in ["p/g-1", "p/models/g-1", "p/*", "*g-1", "p/models/*", "P/G-1", "*/models/g*"] {
        assert!(block(pattern, "p/g-1") && block(pattern, "p/models/g-1"), "{pattern}");
    }
    for pattern in ["p/g-2", "p/tunedModels/g-1", "q/models/g-1", "p/models"] {
        assert!(!block(pattern, "p/g-1"), "{pattern}");
    }
    assert!(!is_named("P/G-1", "p/g-1", Case::Exact), "what is allowed is allowed as it is spelled");
    assert!(!is_named("p/models/*", "p/tunedModels/x", Case::Exact), "another folder is another thing");
}

#[test]
fn what_tells_names_apart_early_leaves_out_none_that_matches() {
    let pieces = ["", "*", "p", "P", "/", "m", "models", "m/", "-x", "tunedModels", "é"];
    let mut texts = Vec::new();
    for (a, b, c) in pieces.iter().flat_map(|a| pieces.iter().flat_map(move |b| pieces.map(|c| (a, b, c)))) {
        texts.push(format!("{a}{b}{c}"));
    }
    for case in [Case::Exact, Case::Ignored] {
        for model in texts.iter().filter(|text| !text.contains('*')).map(|text| format!("p/{text}")) {
            for pattern in texts.iter().flat_map(|text| [text.clone(), format!("p/{text}"), format!("*{text}")]) {
                let is_match = matches(pattern.as_bytes(), model.as_bytes(), case);
                assert!(!is_match || is_named(&pattern, &model, case), "{case:?} {pattern} {model}");
                assert!(
                    !is_named(&pattern, &model, case) || may_begin(&pattern, "p/", case),
                    "{case:?} {pattern} {model}"
                );
                assert!(!covers(&pattern, "p/", case) || is_match, "{case:?} {pattern} {model}");
            }
        }
    }
}

/// Normalizes a path as servers may do: percent-decodes it, accepts both slashes, and resolves dot segments.
fn segments_after(path: &str) -> Vec<String> {
    let mut bytes = Vec::new();
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| char::from(byte.unwrap_or(b'0')).to_digit(16).unwrap_or(0) as u8;
        bytes.push(if byte == b'%' { digit(rest.next()) * 16 + digit(rest.next()) } else { byte });
    }
    let text = String::from_utf8_lossy(&bytes).replace('\\', "/");
    let mut segments: Vec<String> = Vec::new();
    for segment in text.split('/') {
        match segment {
            ".." => drop(segments.pop()),
            "." | "" => {}
            segment => segments.push(segment.to_owned()),
        }
    }
    segments
}

fn any_name() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("models/".to_owned()),
        Just("Models/".to_owned()),
        Just("tunedModels/".to_owned()),
        Just("publishers/google/models/".to_owned()),
        Just("..".to_owned()),
        Just("/".to_owned()),
        Just("%2F".to_owned()),
        Just("%2e".to_owned()),
        Just("g-1".to_owned()),
        Just(":countTokens".to_owned()),
        Just("?x#y;z".to_owned()),
        Just(" ".to_owned()),
        any::<String>(),
        "[ -~]{0,6}",
    ];
    proptest::collection::vec(piece, 0..7).prop_map(|pieces| pieces.concat())
}

#[test]
fn fuzz_model_name() {
    fuzz::check(&any_name(), |model| {
        let spelling = format!("p/{model}");
        if let Ok(name) = canonical(&spelling) {
            let again = canonical(&name);
            prop_assert_eq!(again.as_deref(), Ok(&*name), "a canonical name is its own");
            let own = name.split_once('/').map(|(_, own)| own).unwrap_or_default();
            prop_assert_eq!(without_folder(own), own);
            if let Ok(path) = address(own) {
                // The called model is the one that was checked, whatever a server normalizes.
                let segments = segments_after(&format!("v1beta/{path}"));
                let bare = !own.contains('/');
                let expected = if bare { format!("v1beta/models/{own}") } else { format!("v1beta/{own}") };
                prop_assert_eq!(&segments, &expected.split('/').map(str::to_owned).collect::<Vec<_>>());
                prop_assert!(!segments.iter().any(|segment| segment.contains(['?', '#', ';', '%', '\0'])));
                let action = path.rsplit('/').next().unwrap_or_default();
                prop_assert!(!action.contains(':'), "{}", path);
            }
            prop_assert!(is_named(&spelling, &name, Case::Ignored) || spelling.contains('*') || spelling != *name);
            if !name.contains('*') {
                prop_assert!(is_named(&name, &name, Case::Exact));
            }
        }
        if let Ok(path) = address(&model) {
            let last = without_folder(&model).rsplit('/').next().unwrap_or_default().to_owned();
            let segments = segments_after(&path);
            prop_assert_eq!(segments.last(), Some(&last));
            prop_assert!(segments.len() == 2 || segments.len() == 4);
        }
        Ok(())
    });
}

#[test]
fn a_date_behind_a_name_is_told_apart() {
    for (name, undated) in [
        ("claude-sonnet-4-5-20250929", Some("claude-sonnet-4-5")),
        ("gpt-4o-2024-08-06", Some("gpt-4o")),
        ("org/m-20240101", Some("org/m")),
        ("gpt-4o", None),
        ("gpt-4-0613", None),
        ("m-12345678", None),
        ("-20250929", None),
        ("m-2024-8-06", None),
        ("", None),
    ] {
        assert_eq!(without_date(name), undated, "{name}");
    }
}
