use proptest::prelude::*;

use super::*;

fn fault(text: &str) -> JsonFault {
    scan_object(text.as_bytes(), &[], MAX_DEPTH).expect_err(text)
}

#[test]
fn finds_wanted_members_and_their_kinds() {
    let body =
        br#" {"model" : "a\u002fb", "n":12, "stream":true, "messages":[1,[2,3],{"model":"no"}], "x":null, "o":{}} "#;
    let wanted = ["model", "stream", "messages", "x", "o", "n", "absent"];
    let scan = scan_object(body, &wanted, MAX_DEPTH).expect("valid");

    let get = |name: &str| scan.get(name).expect("present");
    assert_eq!(Some("a/b"), as_str(body, get("model")).as_deref());
    assert_eq!(Some(true), get("stream").as_bool());
    assert_eq!((Kind::Array, 3), (get("messages").kind, get("messages").elements));
    assert!(get("x").is_null());
    assert_eq!((Kind::Object, 0), (get("o").kind, get("o").elements));
    assert_eq!(Some(12), as_u64(body, get("n")));
    assert_eq!(None, scan.get("absent"));
    assert_eq!(b'}', body[scan.close()]);
    assert_eq!(6, scan.object.elements);
}

#[test]
fn an_empty_object_is_empty() {
    let scan = scan_object(b" { } ", &["a"], MAX_DEPTH).expect("valid");

    assert!(scan.is_empty());
    assert_eq!(3, scan.close());
}

#[test]
fn a_fault_names_place_member_and_rule() {
    let faulty = fault(r#"{"a":1,"messages":[{"content":nope}]}"#);

    assert_eq!((FaultKind::Syntax, 30, "messages"), (faulty.kind, faulty.offset, &*faulty.field));
    assert_eq!(r#"expected a value at byte 30, in member "messages""#, faulty.to_string());
}

#[test]
fn a_key_that_comes_twice_is_a_fault_however_it_is_written() {
    for text in [r#"{"a":1,"a":2}"#, r#"{"a":1,"\u0061":2}"#, r#"{"":1,"":1}"#] {
        assert_eq!(FaultKind::Duplicate, fault(text).kind, "{text}");
    }
    let nested = br#"{"a":{"b":1,"b":2}}"#;
    assert!(scan_object(nested, &[], MAX_DEPTH).is_ok());
}

#[test]
fn many_keys_are_compared_in_linear_time() {
    let members: Vec<String> = (0..100_000).map(|n| format!("\"k{n}\":{n}")).collect();
    let text = format!("{{{}}}", members.join(","));
    let twice = format!("{{{},\"k7\":0}}", members.join(","));

    assert!(scan_object(text.as_bytes(), &[], MAX_DEPTH).is_ok());
    assert_eq!(FaultKind::Duplicate, fault(&twice).kind);
}

#[test]
fn depth_is_held_to_the_limit_and_not_below() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));

    assert!(validate(nested(MAX_DEPTH).as_bytes(), MAX_DEPTH).is_ok());
    let deep = validate(nested(MAX_DEPTH + 1).as_bytes(), usize::MAX).expect_err("too deep");
    assert_eq!((FaultKind::TooDeep, MAX_DEPTH), (deep.kind, deep.offset));
    assert!(scan_object(br#"{"a":[[1]]}"#, &[], 3).is_ok());
    assert_eq!(FaultKind::TooDeep, fault(&format!("{{\"a\":{}}}", nested(MAX_DEPTH))).kind);
    let bomb = "[".repeat(1_000_000);
    assert_eq!(FaultKind::TooDeep, validate(bomb.as_bytes(), MAX_DEPTH).expect_err("bomb").kind);
}

#[test]
fn refuses_what_is_not_json() {
    let texts = [
        "",
        " ",
        "{",
        "{}}",
        "{} x",
        "{,}",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        r#"{"a":[1,]}"#,
        r#"{"a":NaN}"#,
        r#"{"a":Infinity}"#,
        r#"{"a":01}"#,
        r#"{"a":-}"#,
        r#"{"a":1.}"#,
        r#"{"a":.5}"#,
        r#"{"a":1e}"#,
        r#"{"a":+1}"#,
        r#"{"a":tru}"#,
        r#"{"a":truex}"#,
        "{a:1}",
        "{'a':1}",
        r#"{"a":"\x"}"#,
        r#"{"a":"\u12g4"}"#,
        r#"{"a":"\u12"#,
        r#"{"a":"\ud800"}"#,
        r#"{"a":"\udc00"}"#,
        r#"{"a":"\ud800\u0041"}"#,
        r#"{"a":"\ud800\ud800"}"#,
        r#"{"a":"x"#,
        r#"{"a":"x\"#,
        "{\"a\":\"\n\"}",
        "{\"a\":\"1234567890\u{1}\"}",
        "{\"a\":1 /* no */}",
        "\u{feff}{}",
        r#"{"a":[}]}"#,
        r#"{"a":{"b"]}"#,
    ];
    for text in texts {
        assert_eq!(FaultKind::Syntax, fault(text).kind, "{text}");
    }
    assert_eq!(FaultKind::NotAnObject, fault("[1]").kind);
    assert_eq!(FaultKind::NumberRange, fault(r#"{"a":1e400}"#).kind);
    assert_eq!(FaultKind::NumberRange, fault(&format!("{{\"a\":{}}}", "9".repeat(400))).kind);
    let cut = scan_object(b"{\"a\":\"\xf0\x9f\"}", &[], MAX_DEPTH).expect_err("utf-8");
    assert_eq!((FaultKind::NotUtf8, 6), (cut.kind, cut.offset));
}

#[test]
fn accepts_what_is_json() {
    let texts = [
        r#"{"a":-0.0e-5,"b":1E+3,"c":0e999999,"d":123456789012345678901234567890}"#,
        r#"{"a":"\ud83d\ude00 \u0000 \/ \b\f\n\r\t\\\"","":""}"#,
        "{\"a\":\"\u{7f}\u{e9}\u{1F600}\"}",
        "\t\r\n {\"a\" :\t[ ] , \"b\":{ } }\n",
    ];
    for text in texts {
        assert!(scan_object(text.as_bytes(), &[], MAX_DEPTH).is_ok(), "{text}");
    }
}

/// Any JSON value, a few levels deep.
fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
            prop::collection::btree_map("[a-c\"\\\\]{0,2}", inner, 0..5)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

/// An object's text with some bytes changed, dropped or doubled.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let edits = prop::collection::vec(
        (any::<prop::sample::Index>(), 0..3_u8, prop::sample::select(b"{}[]\",:\\u0123dDeE.- \nntf\xff".to_vec())),
        0..4,
    );
    (prop::collection::btree_map("[a-c]{0,2}", value(), 1..4), edits).prop_map(|(members, edits)| {
        let mut text = serde_json::to_vec(&members).expect("serialises");
        for (offset, edit, byte) in edits {
            let offset = offset.index(text.len());
            match edit {
                0 => text[offset] = byte,
                1 => text.insert(offset, byte),
                _ => drop(text.remove(offset)),
            }
            if text.is_empty() {
                break;
            }
        }
        text
    })
}

/// The verdict of the reference parser, and whether a top-level key is duplicated.
fn reference(text: &[u8]) -> Option<bool> {
    struct Twice(bool);
    impl<'de> serde::Deserialize<'de> for Twice {
        fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            struct Members;
            impl<'de> serde::de::Visitor<'de> for Members {
                type Value = Twice;
                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Twice, A::Error> {
                    let mut seen = std::collections::HashSet::new();
                    let mut twice = false;
                    while let Some((key, _)) = map.next_entry::<String, serde_json::Value>()? {
                        twice |= !seen.insert(key);
                    }
                    Ok(Twice(twice))
                }
            }
            from.deserialize_map(Members)
        }
    }
    serde_json::from_slice::<Twice>(text).ok().map(|twice| twice.0)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_the_reference_parser_on_mutated_objects(text in mutated()) {
        let ours = scan_object(&text, &["a", "b"], MAX_DEPTH);
        match reference(&text) {
            None => prop_assert!(ours.is_err()),
            Some(true) => prop_assert_eq!(FaultKind::Duplicate, ours.expect_err("twice").kind),
            Some(false) => {
                let scan = ours.expect("valid");
                let tree: serde_json::Value = serde_json::from_slice(&text).expect("valid");
                for name in ["a", "b"] {
                    let found = scan.get(name).map(|value| {
                        serde_json::from_slice::<serde_json::Value>(&text[value.span()]).expect("a value")
                    });
                    prop_assert_eq!(tree.get(name), found.as_ref());
                }
                prop_assert_eq!(tree.as_object().map(serde_json::Map::len), Some(scan.object.elements));
            }
        }
    }

    #[test]
    fn agrees_with_the_reference_parser_on_any_bytes(text in prop::collection::vec(any::<u8>(), 0..64)) {
        prop_assert_eq!(
            serde_json::from_slice::<serde_json::Value>(&text).is_ok(),
            validate(&text, MAX_DEPTH).is_ok()
        );
    }

    #[test]
    fn agrees_with_the_reference_parser_on_bytes_of_the_grammar(text in "[\\[\\]{}\",:0-9eE.+\\-ntfu\\\\ ]{0,12}") {
        prop_assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).is_ok(),
            validate(text.as_bytes(), MAX_DEPTH).is_ok()
        );
    }

    #[test]
    fn reads_every_string_back(text in any::<String>()) {
        let quoted = serde_json::to_vec(&text).expect("serialises");
        let value = validate(&quoted, MAX_DEPTH).expect("valid");
        let read = as_str(&quoted, value).expect("a string");
        prop_assert_eq!(text.as_str(), &*read);
    }
}

/// Objects in which the same name appears in several spellings, nested and duplicated.
fn spelled() -> impl Strategy<Value = Vec<u8>> {
    let key = prop::sample::select(vec![
        "\"a\"",
        "\"b\"",
        "\"\\u0061\"",
        "\"\\u0041\"",
        "\"A\"",
        "\"\"",
        "\"model\"",
        "\"a\\/\"",
    ]);
    let value = prop_oneof![
        Just("1".to_owned()),
        Just("-0.0e+5".to_owned()),
        Just("1e999".to_owned()),
        Just("{\"a\":[{\"a\":1}]}".to_owned()),
        Just("\"\\ud83d\\ude00\"".to_owned()),
        Just("\"\\ud83d\"".to_owned()),
        Just("[]".to_owned()),
        any::<String>().prop_map(|text| serde_json::Value::from(text).to_string()),
        "[ -~]{0,8}",
    ];
    let member =
        (key, value, "[ \t\r\n]{0,2}").prop_map(|(key, value, blank)| format!("{blank}{key}{blank}:{value}{blank}"));
    let object =
        prop::collection::vec(member, 0..5).prop_map(|members| format!("{{{}}}", members.join(",")).into_bytes());
    let cut = (object, any::<prop::sample::Index>(), any::<Option<u8>>()).prop_map(|(mut text, at, byte)| {
        if let Some(byte) = byte {
            let at = at.index(text.len());
            text[at] = byte;
        }
        text
    });
    prop_oneof![4 => cut, 1 => mutated(), 1 => prop::collection::vec(any::<u8>(), 0..64)]
}

#[test]
fn fuzz_json() {
    crate::fuzz::check(&spelled(), |text| {
        let ours = scan_object(&text, &["a", "b", "A", "model", ""], MAX_DEPTH);
        match reference(&text) {
            None => prop_assert!(ours.is_err()),
            Some(true) => prop_assert_eq!(FaultKind::Duplicate, ours.expect_err("twice").kind),
            Some(false) => {
                let scan = ours.expect("valid");
                let tree: serde_json::Value = serde_json::from_slice(&text).expect("valid");
                for name in ["a", "b", "A", "model", ""] {
                    let found = scan.get(name);
                    let value = found.map(|value| serde_json::from_slice(&text[value.span()]).expect("a value"));
                    prop_assert_eq!(tree.get(name), value.as_ref());
                    let read = found.and_then(|value| as_str(&text, value));
                    prop_assert_eq!(tree.get(name).and_then(serde_json::Value::as_str), read.as_deref());
                }
                prop_assert_eq!(tree.as_object().map(serde_json::Map::len), Some(scan.object.elements));
            }
        }
        prop_assert_eq!(serde_json::from_slice::<serde_json::Value>(&text).is_ok(), validate(&text, MAX_DEPTH).is_ok());
        Ok(())
    });
}
