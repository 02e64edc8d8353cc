use super::*;
use std::path::Path;

/// Each provider's facts from the catalogue.
fn tables() -> Vec<(String, FactTable)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/fairlead/data/catalogue");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the catalogue") {
        let path = entry.expect("readable").path();
        let provider: Value = serde_json::from_slice(&std::fs::read(&path).expect("readable")).expect("JSON");
        let Some(facts) = provider.get("facts") else { continue };
        let mut facts = facts.clone();
        // Control replaces this member by the other provider's facts.
        facts.as_object_mut().expect("an object").remove("like");
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let table = serde_json::from_value(facts).unwrap_or_else(|error| panic!("{name}: {error}"));
        found.push((name, table));
    }
    found
}

fn table(provider: &str) -> FactTable {
    tables().into_iter().find(|(name, _)| name == provider).expect("a provider with facts").1
}

#[test]
fn the_facts_of_a_family_add_to_those_of_its_provider() {
    let table: FactTable = serde_json::from_str(
        r#"{"source": "a page", "user_most": 64, "refused": ["seed"],
            "families": [{"source": "another", "models": ["new-*"], "refused": [], "prefill": "refused"}]}"#,
    )
    .expect("a table");
    let (plain, family) = (table.of("old-1"), table.of("new-1"));
    assert_eq!((plain.user_most, plain.refuses("seed"), plain.prefill), (Some(64), true, None));
    assert_eq!((family.user_most, family.refuses("seed"), family.prefill), (Some(64), false, Some(Prefill::Refused)));
    assert_eq!(**FactTable::default().of("any"), ModelFacts::default());
}

#[test]
fn the_facts_of_an_operator_override_those_of_the_catalogue() {
    let table: FactTable = serde_json::from_str(
        r#"{"user_most": 64, "refused": ["seed"],
            "families": [{"models": ["new-*"], "prefill": "refused", "stop_most": 4}],
            "overrides": {"all": {"prefill": "prefix"},
                          "models": {"new-1": {"refused": [], "stop_most": 2}, "new-*": {"user_most": 1}}}}"#,
    )
    .expect("a table");
    let facts = |model: &str| {
        let facts = table.of(model);
        (facts.user_most, facts.refuses("seed"), facts.prefill, facts.stop_most)
    };
    assert_eq!(facts("old-1"), (Some(64), true, Some(Prefill::Prefix), None));
    assert_eq!(facts("new-2"), (Some(64), true, Some(Prefill::Prefix), Some(4)));
    assert_eq!(facts("new-1"), (Some(64), false, Some(Prefill::Prefix), Some(2)));
    assert_eq!(facts("New-1"), facts("new-2"), "the name of a single model is exact");
    assert_eq!(facts("new-*").0, Some(1), "and is no pattern");
}

#[test]
fn the_api_is_read_from_snapshots_of_earlier_versions() {
    for name in ["api", "api_type"] {
        let facts: ModelFacts = serde_json::from_value(serde_json::json!({ name: "responses" })).expect("facts");
        assert_eq!(facts.api_type, Some(ApiType::Responses));
    }
}

#[test]
fn only_stated_members_are_stripped() {
    let facts = |text| serde_json::from_str::<ModelFacts>(text).expect("facts");
    assert_eq!(facts(r#"{"refused": ["seed"]}"#).stripped(), [""; 0]);
    assert_eq!(facts(r#"{"refused": ["seed"], "strips_refused": true}"#).stripped(), ["seed"]);
}

#[test]
fn a_fact_that_nobody_knows_is_an_error() {
    let read = serde_json::from_str::<FactTable>;
    assert!(read(r#"{"user_least": 1}"#).is_err());
    assert!(read(r#"{"families": [{"models": ["*"], "user_least": 1}]}"#).is_err());
    assert!(read(r#"{"families": [{"user_most": 1}]}"#).is_err());
    assert!(read(r#"{"overrides": {"all": {"user_least": 1}}}"#).is_err());
    assert!(read(r#"{"overrides": {"models": {"m": {"user_least": 1}}}}"#).is_err());
    assert!(read(r#"{"overrides": {"some": {}}}"#).is_err());
}

#[test]
fn claude_is_known_by_every_spelling() {
    let claude = table("anthropic");
    for (model, thinking) in [
        ("claude-3-5-haiku-20241022", Thinking::Never),
        ("claude-3-opus-20240229", Thinking::Never),
        ("claude-3-7-sonnet@20250219", Thinking::Budget),
        ("claude-sonnet-4-20250514", Thinking::Budget),
        ("claude-opus-4@20250514", Thinking::Budget),
        ("anthropic.claude-opus-4-1-20250805-v1:0", Thinking::Budget),
        ("claude-haiku-4-5", Thinking::Budget),
        ("claude-opus-4-5-20251101", Thinking::Budget),
        ("claude-sonnet-4.5", Thinking::Budget),
        ("claude-4-5-sonnet", Thinking::Budget),
        ("us.anthropic.claude-sonnet-4-6-v1:0", Thinking::Adaptive),
        ("claude-opus-4-8", Thinking::Adaptive),
        ("claude-sonnet-5", Thinking::Adaptive),
        ("claude-opus-5-20261001", Thinking::Adaptive),
        ("claude-opus-5-5", Thinking::Always),
        ("claude-haiku-5-5", Thinking::Adaptive),
        ("claude-fable-5", Thinking::Always),
        ("claude-fable-5-1", Thinking::Always),
        ("claude-mythos-preview", Thinking::Always),
        ("claude-opus-6", Thinking::Always),
    ] {
        assert_eq!(claude.of(model).thinking, Some(thinking), "{model}");
    }
    let efforts = |model: &str| claude.of(model).efforts.clone().unwrap_or_default();
    assert!(efforts("claude-sonnet-4-5").is_empty());
    assert_eq!(efforts("claude-opus-4-5"), [Level::Low, Level::Medium, Level::High]);
    assert_eq!(efforts("claude-opus-4-6").last(), Some(&Level::Max));
    assert!(efforts("claude-sonnet-5").contains(&Level::Xhigh));
    let samplers = |model: &str| claude.of(model).samplers;
    assert_eq!(samplers("claude-3-5-sonnet-20241022"), Some(Samplers::Accepted));
    assert_eq!(samplers("claude-opus-4-6"), Some(Samplers::One));
    assert_eq!(samplers("claude-opus-4-7"), Some(Samplers::Refused));
    let forced = |model: &str| claude.of(model).forced_tools;
    assert_eq!(forced("claude-opus-4-7"), Some(ForcedTools::WithoutThinking));
    for model in ["claude-opus-4-8", "claude-sonnet-5", "claude-haiku-5-5", "claude-fable-5", "claude-fable-5-20260401"]
    {
        assert_eq!(forced(model), Some(ForcedTools::Accepted), "{model}");
    }
    for model in ["claude-opus-5-5", "claude-fable-5-1", "claude-mythos-5-2", "claude-fable-5-2-20261101"] {
        assert_eq!(forced(model), Some(ForcedTools::Refused), "{model}");
    }
    let prefill = |model: &str| claude.of(model).prefill.unwrap_or(Prefill::Accepted);
    assert_eq!((prefill("claude-opus-4-5"), prefill("claude-opus-4-6")), (Prefill::Accepted, Prefill::Refused));
    assert_eq!(claude.of("MiniMax-M2").thinking, None, "another maker's model has the plain form");
}

#[test]
fn openai_is_known_by_every_spelling() {
    let openai = table("openai");
    for (model, thinking, samplers) in [
        ("gpt-35-turbo", Thinking::Never, None),
        ("ft:gpt-4o-mini:org::id", Thinking::Never, None),
        ("ft:o4-mini:org::id", Thinking::Effort, Some(Samplers::Refused)),
        ("gpt-5-chat-latest", Thinking::Never, None),
        ("gpt-5.2-chat-latest", Thinking::Never, Some(Samplers::Refused)),
        ("gpt-5.2-2025-12-11", Thinking::Effort, Some(Samplers::WithoutThinking)),
    ] {
        let facts = openai.of(model);
        assert_eq!((facts.thinking, facts.samplers), (Some(thinking), samplers), "{model}");
    }
}

#[test]
fn every_provider_of_the_catalogue_has_readable_facts() {
    let names: Vec<String> = tables().into_iter().map(|(name, _)| name).collect();
    for name in ["anthropic", "openai", "gemini", "mistral", "groq", "cerebras", "fireworks", "nvidia", "moonshot"] {
        assert!(names.iter().any(|known| known == name), "{name}");
    }
}
