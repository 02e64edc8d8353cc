use super::*;

const DOCUMENT: &str = r#"{
    "version": 3, "compiled_at_ms": 1, "settings": {"require_login": true, "added_later": 1},
    "local_token_hash": null,
    "keys": [{"id": "k", "hash": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881", "is_active": true}],
    "connections": [
        {"id": "b", "provider": "n1", "prefixes": ["lab", "n1"], "dialect": "openai", "base_url": "http://x", "auth": "none", "priority": 9},
        {"id": "a", "provider": "n1", "prefixes": ["lab"], "dialect": "openai", "base_url": "http://y", "auth": "bearer", "priority": 1}
    ],
    "prices": [{"model": "lab/m", "input": 5, "output": 7}]
}"#;

#[test]
fn a_document_is_indexed_and_unknown_fields_are_let_be() {
    let snapshot = Snapshot::parse(DOCUMENT.as_bytes()).expect("a snapshot");
    assert_eq!(snapshot.version, 3);
    assert_eq!(snapshot.key(&SecretHash::of(b"x")).map(|key| key.id.as_str()), Some("k"));
    let ids: Vec<_> = snapshot.candidates("lab").iter().map(|&index| snapshot.connections[index].id.as_str()).collect();
    assert_eq!(ids, ["a", "b"]);
    assert_eq!(snapshot.candidates("none"), [] as [usize; 0]);
    assert_eq!(snapshot.price("lab/m").map(|price| price.output), Some(7));
}

#[test]
fn every_spelling_of_a_model_is_one_name() {
    let json = r#"{"version": 1,
        "models": [{"id": "g/models/pro", "provider": "g", "context_length": 7}, {"id": "v//srv/llama", "provider": "v"}],
        "prices": [{"model": "g/models/pro", "output": 3}, {"model": "v/Qwen/Big", "output": 5}],
        "aliases": {"best": "g/models/pro", "odd//one": "g/pro"}}"#;
    let snapshot = Snapshot::parse(json.as_bytes()).expect("a snapshot");
    let name = |spelling: &str| snapshot.name(spelling).map(Cow::into_owned).map_err(|error| error.kind);
    for spelling in ["g/pro", "g/models/pro", "g/models/Models/pro"] {
        assert_eq!(name(spelling), Ok("g/pro".to_owned()), "{spelling}");
    }
    assert_eq!(snapshot.model("g/pro").and_then(|model| model.context_length), Some(7));
    assert_eq!((snapshot.spelling("g/pro"), snapshot.alias("best")), (Some("models/pro"), Some("g/pro")));
    assert_eq!(snapshot.price("g/pro").map(|price| price.output), Some(3));
    assert_eq!(snapshot.price("v/qwen/big").map(|price| price.output), Some(5), "free in no spelling");
    // A configured name is valid in any form; other names of that form are not.
    assert_eq!(name("v//srv/llama"), Ok("v//srv/llama".to_owned()));
    assert_eq!(name("odd//one"), Ok("odd//one".to_owned()));
    assert_eq!(name("v//srv/other"), Err(ErrorKind::InvalidRequest));
}

#[test]
fn a_model_that_is_mapped_stands_for_its_combo() {
    let json = r#"{"version": 1, "aliases": {"lab/nick": "lab/m"},
        "combos": [{"id": "c", "name": "fast", "steps": []}, {"id": "d", "name": "lab/own", "steps": []}],
        "mappings": [{"pattern": "lab/gpt-*", "combo": "fast"}, {"pattern": "lab/*", "combo": "lab/own"}]}"#;
    let snapshot = Snapshot::parse(json.as_bytes()).expect("a snapshot");
    let names = ["lab/gpt-5", "lab/x", "lab/nick", "lab/own", "other/gpt-5", "combo/fast", "auto"];
    let stands_for = names.map(|name| snapshot.alias(name));
    assert_eq!(stands_for, [Some("fast"), Some("lab/own"), Some("lab/m"), None, None, None, None]);
}

#[test]
fn a_broken_document_is_an_error() {
    assert!(Snapshot::parse(b"{}").is_err());
    assert!(Snapshot::parse(b"{\"version\":1,\"keys\":[{\"id\":\"k\",\"hash\":\"zz\",\"is_active\":true}]}").is_err());
}
