//! Tests of the lists: order, visibility for keys, pages, tags.

use super::*;

fn lists_of(document: &serde_json::Value) -> Lists {
    let snapshot = Snapshot::parse(document.to_string().as_bytes()).expect("a snapshot");
    Lists::build(&snapshot, ["auto", "auto/cheap"].into_iter())
}

fn lists() -> Lists {
    let models = ["b/two", "a/one", "a/one"].map(|id| serde_json::json!({"id": id, "provider": "p"}));
    let snapshot = serde_json::json!({
        "version": 1,
        "models": models,
        "combos": [{"id": "i", "name": "fast", "steps": []}],
        "aliases": {"uno": "a/one", "one": "a/one", "quick": "combo/fast"},
    });
    let snapshot = Snapshot::parse(snapshot.to_string().as_bytes()).expect("a snapshot");
    Lists::build(&snapshot, std::iter::empty())
}

fn text(document: &Document) -> Vec<u8> {
    document.parts.concat()
}

fn ids_of(document: &Document) -> Vec<String> {
    let document: serde_json::Value = serde_json::from_slice(&text(document)).expect("JSON");
    let ids = document["data"].as_array().expect("a list").iter();
    ids.map(|entry| entry["id"].as_str().expect("an id").to_owned()).collect()
}

fn key(fields: &serde_json::Value) -> Key {
    let mut record = serde_json::json!({"id": "k", "hash": "0".repeat(64), "is_active": true});
    record.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
    serde_json::from_value(record).expect("a key")
}

#[test]
fn a_list_is_sorted_and_each_model_stands_once() {
    let lists = lists();
    let document: serde_json::Value = serde_json::from_slice(&text(&lists.for_key(None))).expect("JSON");
    let ids: Vec<_> = document["data"].as_array().expect("a list").iter().map(|entry| entry["id"].clone()).collect();
    assert_eq!(ids, ["a/one", "b/two", "fast"]);
    assert_eq!(document["data"][2]["owned_by"], "combo");
}

#[test]
fn a_key_sees_what_it_may_call_under_a_tag_of_its_own() {
    let lists = lists();
    let narrow = key(&serde_json::json!({"blocked_models": ["b/*"]}));
    let own = lists.for_key(Some(&narrow));
    assert!(!text(&own).windows(5).any(|window| window == b"b/two"));
    assert_ne!(own.etag, lists.for_key(None).etag);
    assert_eq!(own.etag, lists.for_key(Some(&narrow)).etag);
    assert!(lists.one("b/two", Some(&narrow), ListDialect::OpenAi).is_none());
    assert!(lists.one("b/two", None, ListDialect::OpenAi).is_some());
    let ids = |scope: &str| {
        let key = key(&serde_json::json!({"id": scope, "catalog_scope": scope}));
        let document: serde_json::Value = serde_json::from_slice(&text(&lists.for_key(Some(&key)))).expect("JSON");
        let ids = document["data"].as_array().expect("a list").iter();
        ids.map(|entry| entry["id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids("combos"), ["fast"]);
    assert_eq!(ids("models"), ["a/one", "b/two"]);
    assert!(lists.one("fast", Some(&narrow), ListDialect::OpenAi).is_some());
    assert!(lists
        .one("fast", Some(&key(&serde_json::json!({"allowed_combos": ["slow"]}))), ListDialect::OpenAi)
        .is_none());
}

#[test]
fn pages_go_forth_and_back_over_what_a_key_sees() {
    let lists = lists();
    let ids = |key: Option<&Key>, cursor: &Cursor, limit| {
        let page = lists.page(key, ListDialect::Anthropic, cursor, limit);
        (page.entries.iter().map(|(id, _)| (*id).to_owned()).collect::<Vec<_>>().join(" "), page.has_more)
    };
    let page = |text: &str, has_more| (text.to_owned(), has_more);
    assert_eq!(ids(None, &Cursor::Start, 2), page("a/one b/two", true));
    assert_eq!(ids(None, &Cursor::After("b/two".to_owned()), 2), page("fast", false));
    assert_eq!(ids(None, &Cursor::After("b/tw".to_owned()), 1), page("b/two", true));
    assert_eq!(ids(None, &Cursor::Before("fast".to_owned()), 1), page("b/two", true));
    assert_eq!(ids(None, &Cursor::Before("b/two".to_owned()), 5), page("a/one", false));
    let narrow = key(&serde_json::json!({"blocked_models": ["b/*"]}));
    let between = |after: &str, before: &str| Cursor::Between(after.to_owned(), before.to_owned());
    assert_eq!(ids(None, &between("a/one", "fast"), 5), page("b/two", false));
    assert_eq!(ids(None, &between("a", "z"), 1), page("a/one", true));
    assert_eq!(ids(None, &between("z", "a"), 1), page("", false));
    assert_eq!(ids(Some(&narrow), &Cursor::Start, 5), page("a/one fast", false));
    assert_eq!(ids(Some(&narrow), &Cursor::Before("fast".to_owned()), 1), page("a/one", false));
}

#[test]
fn an_entry_says_what_the_model_is() {
    let models = serde_json::json!([
        {"id": "a/talks", "provider": "a", "mode": "chat", "capabilities": ["tools", "vision", "documents"]},
        {"id": "a/hears", "provider": "a", "mode": "transcription", "capabilities": []},
        {"id": "a/draws", "provider": "a", "mode": "image"},
        {"id": "a/speaks", "provider": "a", "mode": "realtime", "capabilities": ["audio_input", "audio_output"]},
        {"id": "a/other", "provider": "a"},
    ]);
    let lists = lists_of(
        &serde_json::json!({"version": 1, "models": models, "aliases": {"x": "a/talks", "b": "a/talks", "y": "gone"}}),
    );
    let entry = |id: &str| -> serde_json::Value {
        serde_json::from_slice(&lists.one(id, None, ListDialect::OpenAi).expect("it is listed")).expect("JSON")
    };
    let talks = entry("a/talks");
    assert_eq!(talks["type"], "chat");
    assert_eq!(talks["input_modalities"], serde_json::json!(["text", "image", "file"]));
    assert_eq!(talks["output_modalities"], serde_json::json!(["text"]));
    assert_eq!(talks["capabilities"], serde_json::json!(["tools", "vision", "documents"]));
    assert_eq!(talks["aliases"], serde_json::json!(["b", "x"]));
    assert_eq!(entry("a/hears")["input_modalities"], serde_json::json!(["audio"]));
    assert_eq!(entry("a/hears")["capabilities"], serde_json::json!([]), "it is known to have none");
    assert_eq!(entry("a/draws")["output_modalities"], serde_json::json!(["image"]));
    assert_eq!(entry("a/speaks")["output_modalities"], serde_json::json!(["text", "audio"]));
    let other = entry("a/other");
    assert_eq!((&other["type"], other.get("capabilities")), (&"chat".into(), None), "nobody said what it can do");
    assert_eq!(other.get("aliases"), None);
    assert_eq!(entry("auto/cheap")["owned_by"], "auto");
    assert_eq!(entry("auto/cheap").get("input_modalities"), None);
}

#[test]
fn channels_of_auto_are_listed_with_combos_and_to_those_who_may_call_them() {
    let lists = lists_of(&serde_json::json!({
        "version": 1,
        "models": [{"id": "a/one", "provider": "a"}],
        "combos": [{"id": "i", "name": "auto/cheap", "steps": []}],
    }));
    assert_eq!(ids_of(&lists.for_key(None)), ["a/one", "auto", "auto/cheap"]);
    let cheap: serde_json::Value =
        serde_json::from_slice(&lists.one("auto/cheap", None, ListDialect::OpenAi).expect("listed")).expect("JSON");
    assert_eq!(cheap["owned_by"], "combo", "an operator's combo goes before a channel");
    for (number, (fields, expected)) in [
        (serde_json::json!({"catalog_scope": "combos"}), &["auto", "auto/cheap"][..]),
        (serde_json::json!({"catalog_scope": "models"}), &["a/one"]),
        (serde_json::json!({"allow_auto_combos": false}), &["a/one", "auto/cheap"]),
        (serde_json::json!({"blocked_models": ["auto"]}), &["a/one", "auto/cheap"]),
    ]
    .into_iter()
    .enumerate()
    {
        let mut fields = fields;
        fields["id"] = format!("k{number}").into();
        assert_eq!(ids_of(&lists.for_key(Some(&key(&fields)))), expected, "{fields}");
    }
}

#[test]
fn keys_of_the_same_rules_share_a_document() {
    let lists = lists();
    let of = |id: &str, blocked: &str| {
        lists.for_key(Some(&key(&serde_json::json!({"id": id, "blocked_models": [blocked]}))))
    };
    let (one, same, other) = (of("k1", "b/*"), of("k2", "b/*"), of("k3", "a/*"));
    assert_eq!(one.parts.as_ptr(), same.parts.as_ptr());
    assert_eq!(one.etag, same.etag);
    assert_ne!(one.etag, other.etag);
}

#[test]
fn a_key_that_sees_some_gets_them_out_of_the_whole_document() {
    let names = ["a/1", "a/2", "a/3", "b/1", "b/2", "b/3", "c/1-mini", "c/2", "c/3-mini", "bare"];
    let models = names.map(|id| serde_json::json!({"id": id, "provider": "p"}));
    let lists = lists_of(&serde_json::json!({
        "version": 1,
        "models": models,
        "combos": [{"id": "i", "name": "fast", "steps": []}, {"id": "j", "name": "a/2c", "steps": []}],
    }));
    for (number, rules) in [
        serde_json::json!({"blocked_models": ["a/*"]}),
        serde_json::json!({"blocked_models": ["A/*", "*-MINI"]}),
        serde_json::json!({"blocked_models": ["*/2", "bare", "auto*"]}),
        serde_json::json!({"blocked_models": ["*"]}),
        serde_json::json!({"blocked_models": ["a/1", "fast"]}),
        serde_json::json!({"blocked_models": ["combo/*"]}),
        serde_json::json!({"blocked_models": ["nothing"]}),
        serde_json::json!({"model_access_mode": "restricted", "allowed_models": ["c/*", "a/2", "b*3"]}),
        serde_json::json!({"model_access_mode": "restricted", "allowed_models": ["c/*"], "blocked_models": ["*-mini"]}),
        serde_json::json!({"model_access_mode": "restricted", "allowed_models": ["*"], "catalog_scope": "models"}),
        serde_json::json!({"model_access_mode": "restricted", "allowed_models": []}),
        serde_json::json!({"catalog_scope": "combos"}),
    ]
    .into_iter()
    .enumerate()
    {
        let mut own = key(&rules);
        own.id = format!("k{number}");
        let mut expected: Vec<&str> =
            lists.entries.iter().filter(|entry| entry.is_shown_to(&own)).map(|entry| entry.id.as_str()).collect();
        expected.sort_unstable();
        assert_eq!(ids_of(&lists.for_key(Some(&own))), expected, "{rules}");
    }
    let mut own = key(&serde_json::json!({"blocked_models": ["a/*"]}));
    let group = serde_json::json!({"id": "g", "blocked_models": ["c/*"]});
    own.groups = vec![Arc::new(serde_json::from_value(group).expect("a group"))];
    assert_eq!(ids_of(&lists.for_key(Some(&own))), ["auto", "auto/cheap", "b/1", "b/2", "b/3", "bare", "fast"]);
}

#[test]
fn a_page_has_a_tag_of_its_own_and_says_where_it_ends() {
    let lists = lists();
    let page = |query: &str| {
        let (cursor, limit) = range(query.as_bytes()).expect("a query").expect("a page");
        lists.page_for_key(None, &cursor, limit)
    };
    let first: serde_json::Value = serde_json::from_slice(&text(&page("limit=2"))).expect("JSON");
    assert_eq!((&first["object"], &first["has_more"]), (&"list".into(), &true.into()));
    assert_eq!((&first["first_id"], &first["last_id"]), (&"a/one".into(), &"b/two".into()));
    assert_eq!(ids_of(&page("limit=2&after=b%2Ftwo")), ["fast"]);
    assert_eq!(ids_of(&page("after=fast")), [""; 0]);
    assert_eq!(page("limit=2").etag, page("limit=2").etag);
    let tags = [page("limit=1").etag, page("limit=2").etag, page("limit=2&after=a").etag, lists.all.etag.clone()];
    assert_eq!(tags.iter().collect::<std::collections::HashSet<_>>().len(), tags.len());
    let narrow = key(&serde_json::json!({"blocked_models": ["b/*"]}));
    assert_ne!(lists.page_for_key(Some(&narrow), &Cursor::Start, 2).etag, page("limit=2").etag);
    assert!(matches!(range(b"x=1"), Ok(None)));
    for (wrong, field) in [("limit=0", "limit"), ("limit=1001", "limit"), ("limit=x", "limit"), ("after=", "after")] {
        let fault = range(wrong.as_bytes()).expect_err(wrong);
        assert_eq!(fault.param.as_deref(), Some(field));
    }
}

#[test]
fn lists_stay_until_something_of_them_changes() {
    let document = |version: u64, more: &serde_json::Value| {
        let mut document = serde_json::json!({
            "version": version,
            "models": [{"id": "a/one", "provider": "p"}, {"id": "b/two", "provider": "p"}],
            "combos": [{"id": "i", "name": "fast", "steps": []}],
            "aliases": {"uno": "a/one"},
        });
        document.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        Snapshot::parse(document.to_string().as_bytes()).expect("a snapshot")
    };
    let first = document(1, &serde_json::json!({}));
    let lists = Lists::follow((&Snapshot::default(), &Lists::default()), &first, ["auto"].into_iter());
    let narrow = key(&serde_json::json!({"blocked_models": ["b/*"]}));
    let own = lists.for_key(Some(&narrow));
    let hash = "0".repeat(64);
    let keys = serde_json::json!({"keys": [{"id": "k", "hash": hash, "is_active": true}]});
    let second = document(2, &keys);
    let with_key = Lists::follow((&first, &lists), &second, ["auto"].into_iter());
    assert!(Arc::ptr_eq(&lists.entries, &with_key.entries), "another key changes no list");
    assert_eq!(with_key.for_key(Some(&narrow)).parts.as_ptr(), own.parts.as_ptr(), "nor what was made for rules");
    // A new snapshot gives the same key other rules, and so another list.
    let changed = Lists::follow((&second, &with_key), &document(3, &keys), ["auto"].into_iter());
    let wider = key(&serde_json::json!({"blocked_models": ["a/*"]}));
    assert!(ids_of(&changed.for_key(Some(&wider))).contains(&"b/two".to_owned()));
    for (change, is_listed) in [
        (serde_json::json!({"models": [{"id": "c/new", "provider": "p"}]}), "c/new"),
        (serde_json::json!({"combos": [{"id": "i", "name": "slow", "steps": []}]}), "slow"),
    ] {
        let changed = Lists::follow((&first, &lists), &document(2, &change), ["auto"].into_iter());
        assert!(ids_of(&changed.for_key(None)).contains(&is_listed.to_owned()));
        assert_ne!(changed.for_key(None).etag, lists.for_key(None).etag);
    }
    let connection = serde_json::json!({"connections": [{
        "id": "c", "provider": "p", "prefixes": ["a"], "dialect": "gemini", "base_url": "http://h.example", "auth": "none",
    }]});
    let served = Lists::follow((&first, &lists), &document(2, &connection), ["auto"].into_iter());
    assert!(!Arc::ptr_eq(&served.entries, &lists.entries), "what it takes follows from who serves it");
    let renamed = Lists::follow(
        (&first, &lists),
        &document(2, &serde_json::json!({"aliases": {"one": "a/one"}})),
        ["auto"].into_iter(),
    );
    assert!(!Arc::ptr_eq(&lists.entries, &renamed.entries));
    let channels = Lists::follow((&first, &lists), &document(2, &serde_json::json!({})), ["auto/cheap"].into_iter());
    assert!(ids_of(&channels.for_key(None)).contains(&"auto/cheap".to_owned()));
}
