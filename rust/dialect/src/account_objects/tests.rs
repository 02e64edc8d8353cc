use super::*;
use fairlead_core::Dialect::{Anthropic, Gemini, Openai, OpenaiResponses as Responses};
use ObjectKind::{File, Item, Other};

fn found(dialect: Dialect, body: &str) -> Option<(String, ObjectKind)> {
    let searched = Searched { body: body.as_bytes(), dialect, is_session: false };
    let reference = first(searched, |kind, _| kind != ObjectKind::MaybeFile)?;
    assert!(may_have(searched), "{body}");
    Some((reference.path, reference.kind))
}

/// A body, and the path and kind of the reference in it.
type Case = (Dialect, &'static str, &'static str, ObjectKind);

const CASES: &[Case] = &[
    (
        Responses,
        r#"{"tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]}"#,
        "tools[0].vector_store_ids[0]",
        Other,
    ),
    (
        Responses,
        r#"{"tools":[{"vector_store_ids":["vs_1"],"type":"file_search"}]}"#,
        "tools[0].vector_store_ids[0]",
        Other,
    ),
    (Responses, r#"{"tools":[{"vector\u005fstore_ids":["vs_1"]}]}"#, "tools[0].vector_store_ids[0]", Other),
    (
        Responses,
        r#"{"tools":[{"vector_store_ids":[],"vector_store_ids":["vs_1"]}]}"#,
        "tools[0].vector_store_ids[0]",
        Other,
    ),
    (Responses, r#"{"tools":[{"type":"code_interpreter","container":"cntr_1"}]}"#, "tools[0].container", Other),
    (
        Responses,
        r#"{"tools":[{"container":{"type":"auto","file_ids":["a","b"]}}]}"#,
        "tools[0].container.file_ids[0]",
        File,
    ),
    (
        Responses,
        r#"{"tools":[{"environment":{"type":"container_reference","container_id":"c"}}]}"#,
        "tools[0].environment.container_id",
        Other,
    ),
    (
        Responses,
        r#"{"tools":[{"environment":{"skills":[{"type":"skill_reference","skill_id":"s"}]}}]}"#,
        "tools[0].environment.skills[0].skill_id",
        Other,
    ),
    (Responses, r#"{"tools":[{"type":"mcp","tunnel_id":"t"}]}"#, "tools[0].tunnel_id", Other),
    (Responses, r#"{"tools":[{"type":"mcp","connector_id":"connector_gmail"}]}"#, "tools[0].connector_id", Other),
    (
        Responses,
        r#"{"tools":[{"type":"mcp","connector_id":"connector_gmail","authorization":""}]}"#,
        "tools[0].connector_id",
        Other,
    ),
    (
        Responses,
        r#"{"tools":[{"type":"image_generation","input_image_mask":{"file_id":"f"}}]}"#,
        "tools[0].input_image_mask.file_id",
        File,
    ),
    (Responses, r#"{"prompt":{"id":"pmpt_1","variables":{"file_id":"a text"}}}"#, "prompt.id", Other),
    (Responses, r#"{"input":[{"type":"item_reference","id":"msg_1"}]}"#, "input[0].id", Item),
    (Responses, r#"{"input":[{"role":"user","content":"a"},{"id":"msg_1"}]}"#, "input[1].id", Item),
    (
        Responses,
        r#"{"input":[{"type":"code_interpreter_call","id":"ci_1","container_id":"c"}]}"#,
        "input[0].container_id",
        Other,
    ),
    (
        Responses,
        r#"{"input":[{"role":"user","content":[{"type":"input_file","file_id":"f"}]}]}"#,
        "input[0].content[0].file_id",
        File,
    ),
    (
        Responses,
        r#"{"input":[{"type":"function_call_output","output":[{"type":"input_image","file_id":"f"}]}]}"#,
        "input[0].output[0].file_id",
        File,
    ),
    (
        Openai,
        r#"{"messages":[{"content":[{"type":"file","file":{"file_id":"f"}}]}]}"#,
        "messages[0].content[0].file.file_id",
        File,
    ),
    (Openai, r#"{"messages":[{"role":"assistant","audio":{"id":"audio_1"}}]}"#, "messages[0].audio.id", Other),
    (Openai, r#"{"audio":{"format":"wav","voice":{"id":"voice_1"}}}"#, "audio.voice.id", Other),
    (Openai, r#"{"data_sources":[{"type":"azure_search","parameters":{}}]}"#, "data_sources[0].type", Other),
    (
        Openai,
        r#"{"messages":[{"content":[{"image_url":{"url":"gs://bucket/a.png"}}]}]}"#,
        "messages[0].content[0].image_url.url",
        File,
    ),
    (
        Openai,
        r#"{"messages":[{"content":[{"image_url":{"url":"GS:\/\/bucket/a.png"}}]}]}"#,
        "messages[0].content[0].image_url.url",
        File,
    ),
    (
        Openai,
        r#"{"messages":[{"content":[{"image_url":{"url":"fIle:///etc/passwd"}}]}]}"#,
        "messages[0].content[0].image_url.url",
        File,
    ),
    (Openai, r#"{"images":[{"file_id":"f"}],"mask":{"file_id":"g"}}"#, "images[0].file_id", File),
    (Anthropic, r#"{"container":"container_1"}"#, "container", Other),
    (Anthropic, r#"{"container":{"id":"container_1"}}"#, "container.id", Other),
    (
        Anthropic,
        r#"{"container":{"skills":[{"type":"anthropic","skill_id":"pdf"},{"type":"custom","skill_id":"s"}]}}"#,
        "container.skills[1].skill_id",
        Other,
    ),
    (
        Anthropic,
        r#"{"messages":[{"content":[{"type":"container_upload","file_id":"f"}]}]}"#,
        "messages[0].content[0].file_id",
        File,
    ),
    (
        Anthropic,
        r#"{"messages":[{"content":[{"type":"document","source":{"type":"file","file_id":"f"}}]}]}"#,
        "messages[0].content[0].source.file_id",
        File,
    ),
    (Gemini, r#"{"cachedContent":"cachedContents/1"}"#, "cachedContent", File),
    (
        Gemini,
        r#"{"contents":[{"parts":[{"fileData":{"fileUri":"files/1"}}]}]}"#,
        "contents[0].parts[0].fileData.fileUri",
        File,
    ),
    (
        Gemini,
        r#"{"contents":[{"parts":[{"file_data":{"file_uri":"https://GenerativeLanguage.googleapis.com/v1beta/files/1"}}]}]}"#,
        "contents[0].parts[0].file_data.file_uri",
        File,
    ),
    (
        Gemini,
        r#"{"tools":[{"fileSearch":{"fileSearchStoreNames":["fileSearchStores/1"]}}]}"#,
        "tools[0].fileSearch.fileSearchStoreNames[0]",
        Other,
    ),
    (
        Gemini,
        r#"{"tools":[{"retrieval":{"vertexAiSearch":{"datastore":"projects/p"}}}]}"#,
        "tools[0].retrieval.vertexAiSearch.datastore",
        Other,
    ),
    (
        Gemini,
        r#"{"tools":[{"retrieval":{"vertexRagStore":{"ragResources":[{"ragCorpus":"c"}]}}}]}"#,
        "tools[0].retrieval.vertexRagStore.ragResources[0].ragCorpus",
        Other,
    ),
];

#[test]
fn each_member_that_names_an_object_is_found() {
    for (dialect, body, path, kind) in CASES {
        assert_eq!(found(*dialect, body), Some(((*path).to_owned(), *kind)), "{body}");
    }
}

#[test]
fn everything_else_is_left_alone() {
    for (dialect, body) in [
        (Responses, r#"{"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]}"#),
        (Responses, r#"{"tools":[{"type":"mcp","connector_id":"connector_gmail","authorization":"t"}]}"#),
        (
            Responses,
            r#"{"tools":[{"type":"function","parameters":{"properties":{"file_id":{"const":"file_id"}},"container":"c"}}]}"#,
        ),
        (
            Responses,
            r#"{"input":[{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","annotations":[{"type":"container_file_citation","container_id":"c","file_id":"f"}]}]}]}"#,
        ),
        (
            Responses,
            r#"{"input":[{"type":"file_search_call","id":"fs_1","results":[{"file_id":"f"}]},{"type":"reasoning","id":"rs_1"}]}"#,
        ),
        (Responses, r#"{"input":[{"type":"function_call","arguments":"{\"file_id\":\"f\",\"container\":\"c\"}"}]}"#),
        (
            Openai,
            r#"{"messages":[{"content":"Call it with \"vector_store_ids\": [\"vs_1\"] and gs://bucket"}],"container":"mp3"}"#,
        ),
        (Openai, r#"{"input":"a","voice":"alloy","audio":"x"}"#),
        (Openai, r#"{"messages":[{"content":[{"image_url":{"url":"https://example.com/files/file-1.png"}}]}]}"#),
        (
            Anthropic,
            r#"{"messages":[{"content":[{"type":"tool_use","id":"t","input":{"file_id":"f","container":"c"}}]}]}"#,
        ),
        (
            Anthropic,
            r#"{"messages":[{"content":[{"type":"x","content":[{"type":"bash_code_execution_output","file_id":"f"}]}]}],"container":null}"#,
        ),
        (
            Gemini,
            r#"{"contents":[{"parts":[{"functionCall":{"args":{"file_id":"f","cachedContent":"c"}}},{"functionResponse":{"response":{"file_id":"f"}}}]}]}"#,
        ),
        (
            Gemini,
            r#"{"contents":[{"parts":[{"fileData":{"fileUri":"https://example.com/picture.png"}}]}],"cachedContent":null}"#,
        ),
    ] {
        assert_eq!(found(dialect, body), None, "{body}");
    }
}

#[test]
fn items_of_an_open_session_may_be_named() {
    let body = br#"{"type":"response.create","response":{"input":[{"type":"item_reference","id":"item_1"}]}}"#;
    let searched = Searched { body, dialect: Dialect::OpenaiResponses, is_session: true };
    assert_eq!(first(searched, |_, _| true), None);
}

#[test]
fn an_id_that_is_allowed_is_passed_over() {
    let body = br#"{"tools":[{"vector_store_ids":["vs_1","vs_2"]}]}"#;
    let searched = Searched { body, dialect: Dialect::OpenaiResponses, is_session: false };
    let refused = |allowed: &'static str| first(searched, move |_, id| id != allowed).map(|reference| reference.id);
    assert_eq!(refused("vs_1").as_deref(), Some("vs_2"));
    assert_eq!(refused("vs_2").as_deref(), Some("vs_1"));
}

#[test]
fn a_body_with_too_many_references_is_refused() {
    let of = |many: usize| {
        let body = format!(r#"{{"tools":[{{"vector_store_ids":[{}]}}]}}"#, vec![r#""vs_1""#; many].join(","));
        let searched = Searched { body: body.as_bytes(), dialect: Dialect::OpenaiResponses, is_session: false };
        first(searched, |_, _| false).is_some()
    };
    assert!(!of(10_000));
    assert!(of(10_001));
}

#[test]
fn a_file_of_the_gateway_may_be_named_by_its_url() {
    let of = |uri: &str| {
        let body = format!(r#"{{"contents":[{{"parts":[{{"fileData":{{"fileUri":"{uri}"}}}}]}}]}}"#);
        has_stored(Searched { body: body.as_bytes(), dialect: Dialect::Gemini, is_session: false })
    };
    assert!(of("http://gateway/v1beta/files/file-1"));
    assert!(!of("https://elsewhere/picture"));
}

#[test]
fn most_bodies_are_not_walked() {
    let body = r#"{"model":"m","messages":[{"role":"user","content":"A container has \"files\". C:\\u"}],"tools":[]}"#;
    for dialect in [Dialect::Openai, Dialect::Anthropic, Dialect::Gemini, Dialect::OpenaiResponses] {
        assert!(!may_have(Searched { body: body.as_bytes(), dialect, is_session: false }));
    }
    assert!(MARKS.is_some());
}

#[test]
fn broken_bodies_end_the_walk() {
    let whole = r#"{"tools":[{"vector_store_ids":["vs_1"],"a\u005f":{"b":[1,2,{"c":"d"}]}}],"input":{"x":[]}}"#;
    for end in 0..whole.len() {
        let searched =
            Searched { body: &whole.as_bytes()[..end], dialect: Dialect::OpenaiResponses, is_session: false };
        let _either = first(searched, |_, _| true);
    }
    let _either = first(Searched { body: b"]}\"a\":,[{]", dialect: Dialect::Openai, is_session: false }, |_, _| true);
}
