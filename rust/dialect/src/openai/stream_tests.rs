use proptest::prelude::*;

use super::*;

const HELLO: &str =
    r#"data: {"id":"c","choices":[{"index":0,"delta":{"content":"\"usage\": 1"},"finish_reason":null}],"usage":null}"#;
const STOP: &str = r#"data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason" : "stop"}]}"#;
const USED: &str = r#"data: {"id":"c","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}"#;
const FAILED: &str = r#"data: {"error":{"message":"overloaded","type":"server_error"}}"#;
const END: &str = "data: [DONE]";

/// The bytes that the caller received and the outcome.
struct Relayed {
    text: String,
    first_token_chunks: Vec<usize>,
    done: bool,
    closing: Closing,
}

fn relay_chunks(requests_usage: bool, limits: Limits, chunks: &[&[u8]], how: End) -> Relayed {
    let mut scan = StreamScan::with_limits(requests_usage, limits);
    let mut sent = Vec::new();
    let mut first_token_chunks = Vec::new();
    let mut done = false;
    for (index, chunk) in chunks.iter().enumerate() {
        let passed = scan.push(&Bytes::copy_from_slice(chunk));
        passed.pieces.iter().for_each(|piece| sent.extend_from_slice(piece));
        done = passed.done;
        if passed.first_token {
            first_token_chunks.push(index);
        }
    }
    let closing = scan.finish(how);
    sent.extend_from_slice(&closing.bytes);
    Relayed { text: String::from_utf8_lossy(&sent).into_owned(), first_token_chunks, done, closing }
}

fn relay(requests_usage: bool, stream: &str, how: End) -> Relayed {
    relay_chunks(requests_usage, Limits::default(), &[stream.as_bytes()], how)
}

fn events(events: &[&str]) -> String {
    events.iter().flat_map(|event| [event, "\n\n"]).collect()
}

/// Checks that the caller receives `before`, an error object with this code, and `[DONE]`.
fn assert_fails(relayed: &Relayed, before: &str, code: ErrorKind) {
    let last = relayed.text.strip_prefix(before).unwrap_or_else(|| panic!("{}", relayed.text));
    let body = last.strip_prefix("data: ").and_then(|last| last.strip_suffix("\n\ndata: [DONE]\n\n"));
    let body: serde_json::Value = serde_json::from_str(body.expect("a terminal error")).expect("JSON");
    assert_eq!(code.code(), body["error"]["code"]);
    assert_eq!(Outcome::UpstreamFailed, relayed.closing.outcome);
    assert_eq!(Some(code), relayed.closing.error.as_ref().map(|error| error.kind));
}

#[test]
fn a_complete_stream_passes_as_it_came() {
    let stream = events(&[": hi", HELLO, STOP, USED, END]);

    let relayed = relay(true, &stream, End::Clean);
    assert_eq!(stream, relayed.text);
    assert!(relayed.done && relayed.closing.bytes.is_empty());
    assert_eq!(Outcome::Completed, relayed.closing.outcome);
    assert_eq!(Some((7, 2)), relayed.closing.usage.map(|usage| (usage.input, usage.output)));
    assert_eq!(None, relayed.closing.error);
}

#[test]
fn the_usage_chunk_goes_to_a_caller_who_asked_only() {
    let relayed = relay(false, &events(&[HELLO, STOP, USED, END]), End::Clean);

    assert_eq!(events(&[HELLO, STOP, END]), relayed.text);
    assert_eq!(Some(7), relayed.closing.usage.map(|usage| usage.input));
}

#[test]
fn the_usage_of_groq_is_read_in_its_own_member() {
    let groq = r#"data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"r","usage":{"prompt_tokens":7,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":3}}}}"#;
    let relayed = relay(false, &events(&[HELLO, groq, END]), End::Clean);
    let usage = relayed.closing.usage.expect("usage");
    assert_eq!((usage.input, usage.output, usage.cached), (7, 2, 3));
}

#[test]
fn usage_in_an_event_with_choices_stays() {
    let both = r#"data: {"choices":[{"delta":{"content":"x"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#;
    let stream = events(&[both, USED.replace('7', "9").as_str(), STOP, END]);

    let relayed = relay(false, &stream, End::Clean);
    assert_eq!(events(&[both, STOP, END]), relayed.text);
    assert_eq!(Some(9), relayed.closing.usage.map(|usage| usage.input));
}

#[test]
fn a_missing_done_is_added_after_a_finish_reason() {
    let relayed = relay(false, &events(&[HELLO, STOP, USED]), End::Clean);

    assert_eq!(events(&[HELLO, STOP, END]), relayed.text);
    assert!(!relayed.done);
    assert_eq!(Outcome::Completed, relayed.closing.outcome);
    for unended in [END, "data: [DONE]\n", "data:[DONE]\r", "data: [DONE]\r\r"] {
        let relayed = relay(false, &format!("{}{unended}", events(&[HELLO, STOP])), End::Clean);
        assert!(relayed.text.starts_with(&events(&[HELLO, STOP])) && relayed.text.contains("[DONE]"));
        assert_eq!(Outcome::Completed, relayed.closing.outcome);
    }
}

#[test]
fn a_done_behind_an_answer_without_a_finish_reason_ends_it() {
    let empty = r#"data: {"choices":[{"delta":{"content":"a"},"finish_reason":""}]}"#;
    let in_text = r#"data: {"choices":[{"delta":{"content":"\"finish_reason\":\"stop\""},"finish_reason":null}]}"#;
    for chunks in [&[HELLO][..], &[HELLO, USED], &[empty], &[in_text]] {
        for end in ["data: [DONE]\n\n", "data: [DONE]", "data:[DONE]\r"] {
            let relayed = relay(true, &format!("{}{end}", events(chunks)), End::Clean);
            assert_eq!(Outcome::Completed, relayed.closing.outcome, "{}", relayed.text);
            let added = relayed.text.strip_prefix(&events(chunks)).expect("the events pass as they are");
            assert!(added.contains(r#""finish_reason":"stop""#), "{added}");
            assert!(added.ends_with("\n\ndata: [DONE]\n\n"), "{added}");
        }
    }
    let relayed = relay(false, &events(&[HELLO, USED, END]), End::Clean);
    assert_eq!(Some((7, 2)), relayed.closing.usage.map(|usage| (usage.input, usage.output)));
}

#[test]
fn the_added_event_has_the_members_of_the_others_and_knows_calls() {
    let first = r#"data: {"id":"c1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}"#;
    let call = r#"data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t","function":{"name":"f","arguments":"{}"}}]}}]}"#;
    let relayed = relay(false, &events(&[first, call, END]), End::Clean);
    let added = r#"data: {"choices":[{"delta":{},"finish_reason":"tool_calls","index":0}],"created":7,"id":"c1","model":"m","object":"chat.completion.chunk"}"#;
    assert_eq!(events(&[first, call, added, END]), relayed.text);
}

#[test]
fn a_done_without_an_answer_is_a_broken_stream() {
    let role = r#"data: {"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#;
    for chunks in [&[][..], &[role]] {
        let relayed = relay(true, &events(&[chunks, &[END]].concat()), End::Clean);
        assert_fails(&relayed, &events(chunks), ErrorKind::UpstreamReset);
    }
}

#[test]
fn a_finish_reason_in_a_long_event_is_seen_wherever_it_is_cut() {
    let limits = Limits { held_bytes: 32, event_bytes: 400 };
    let text = format!("{{\"content\":\"{}\"}}", "x".repeat(100));
    let stream = events(&[&STOP.replace("{}", &text), END]);
    for cut in 40..stream.len() - END.len() - 2 {
        for next in [cut + 1, cut + 7] {
            let next = next.min(stream.len());
            let chunks = [&stream[..cut], &stream[cut..next], &stream[next..]].map(str::as_bytes);
            let relayed = relay_chunks(false, limits, &chunks, End::Clean);
            assert_eq!(stream, relayed.text, "cut at {cut} and {next}");
            assert_eq!(Outcome::Completed, relayed.closing.outcome);
        }
    }
}

#[test]
fn an_end_without_a_finish_is_an_error() {
    assert_fails(
        &relay(false, &events(&[HELLO, HELLO]), End::Clean),
        &events(&[HELLO, HELLO]),
        ErrorKind::UpstreamReset,
    );
    assert_fails(&relay(false, "", End::Clean), "", ErrorKind::UpstreamReset);
    let in_text = r#"data: {"choices":[{"delta":{"content":"\"finish_reason\":\"stop\""},"finish_reason":null}]}"#;
    assert_fails(&relay(false, &events(&[in_text]), End::Clean), &events(&[in_text]), ErrorKind::UpstreamReset);
}

#[test]
fn a_broken_end_is_an_error_even_after_a_finish_reason_and_drops_the_part() {
    let stream = format!("{}data: {{\"a\":", events(&[HELLO, STOP]));
    let timeout = Error::upstream(ErrorKind::UpstreamTimeout, Retry::Never, "silent");

    assert_fails(&relay(false, &stream, End::Broken(timeout)), &events(&[HELLO, STOP]), ErrorKind::UpstreamTimeout);
    let cut = format!("{}data: {{\"a\":", events(&[HELLO]));
    assert_fails(&relay(false, &cut, End::Clean), &events(&[HELLO]), ErrorKind::UpstreamReset);
}

#[test]
fn an_answer_that_says_nothing_is_a_failure() {
    let opening = r#"data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;
    for stream in [events(&[opening, STOP, END]), events(&[opening, STOP]), events(&[STOP, USED, END])] {
        let relayed = relay(false, &stream, End::Clean);
        assert_eq!(Some(ErrorKind::EmptyAnswer), relayed.closing.error.map(|error| error.kind), "{stream}");
    }
    let full = STOP.replace("stop", "length");
    assert_eq!(None, relay(false, &events(&[opening, &full, END]), End::Clean).closing.error);
}

#[test]
fn the_first_end_wins() {
    let late = events(&[HELLO, STOP, END, HELLO, FAILED, END]);
    let relayed = relay(false, &late, End::Broken(invalid("late")));
    assert_eq!(events(&[HELLO, STOP, END]), relayed.text);
    assert_eq!(Outcome::Completed, relayed.closing.outcome);

    let late = [events(&[HELLO, STOP, END]).into_bytes(), events(&[HELLO]).into_bytes()];
    let relayed = relay_chunks(false, Limits::default(), &[&late[0], &late[1]], End::Clean);
    assert_eq!(events(&[HELLO, STOP, END]), relayed.text);
}

#[test]
fn an_error_in_the_stream_is_passed_and_ends_it() {
    let routed =
        r#"data: {"id":"x","choices":[{"finish_reason":"error"}],"error":{"code":502,"message":"overloaded"}}"#;
    for failure in [FAILED, routed] {
        let relayed = relay(false, &events(&[HELLO, failure, HELLO, END]), End::Clean);
        assert_eq!(events(&[HELLO, failure, END]), relayed.text);
        assert!(relayed.done);
        assert_eq!(Outcome::UpstreamFailed, relayed.closing.outcome);
        assert_eq!(Some("overloaded"), relayed.closing.upstream_error.as_ref().map(|error| &*error.message));
        assert_eq!(Some(ErrorKind::UpstreamStatus), relayed.closing.error.map(|error| error.kind));
    }
    let fine = events(&[r#"data: {"error":null,"choices":[{"delta":{"content":"error","error":"x"}}]}"#, STOP, END]);
    assert_eq!(fine, relay(false, &fine, End::Clean).text);
}

#[test]
fn what_is_no_object_ends_the_stream_with_an_error() {
    for wrong in [
        "data: <html>",
        "data: 1",
        "data: [1]",
        "data:  [DONE]",
        "data:\ndata: [DONE]",
        "data: {\"usage\":{}",
        "data: {\"error\":{]}",
        "data: [DON",
    ] {
        let relayed = relay(false, &events(&[HELLO, wrong, END]), End::Clean);
        assert_fails(&relayed, &events(&[HELLO]), ErrorKind::UpstreamInvalid);
        assert!(relayed.done);
    }
}

#[test]
fn comments_and_other_fields_pass_and_empty_data_does_not() {
    let stream = events(&[": ping", "event: x\nid: 1", "retry: 5"]);
    let chunks = events(&[HELLO, STOP, END]);
    let relayed = relay(false, &format!("{stream}data:\n\ndata: \n\n{chunks}"), End::Clean);

    assert_eq!(format!("{stream}{chunks}"), relayed.text);
    assert!(relay(false, &stream, End::Clean).first_token_chunks.is_empty());
}

#[test]
fn an_end_that_was_taken_away_is_a_fault() {
    let blocked = Error::gateway(ErrorKind::GuardrailBlocked, "It says what it must not.");
    let relayed = relay(false, &events(&[HELLO, STOP, END]), End::Broken(blocked));

    assert!(relayed.done && relayed.closing.outcome == Outcome::UpstreamFailed);
    assert!(String::from_utf8_lossy(&relayed.closing.bytes).contains("guardrail_blocked"));
}

#[test]
fn the_first_token_is_told_once() {
    let chunks = [": ping\n\n", "data: {\"choi", "ces\":[]}\n\n", HELLO, "\n\n"].map(str::as_bytes);

    assert_eq!([2], *relay_chunks(false, Limits::default(), &chunks, End::Clean).first_token_chunks);
}

#[test]
fn a_long_event_passes_in_parts_and_is_ended_before_an_error() {
    let limits = Limits { held_bytes: 32, event_bytes: 400 };
    let long = STOP.replace("{}", &format!("{{\"content\":\"{}\"}}", "x".repeat(100)));
    let stream = events(&[&long]);
    let (head, tail) = stream.split_at(60);

    let whole = relay_chunks(false, limits, &[head.as_bytes(), tail.as_bytes()], End::Clean);
    assert_eq!(events(&[&long, END]), whole.text);
    let cut = relay_chunks(false, limits, &[head.as_bytes()], End::Clean);
    assert_fails(&cut, &format!("{head}\n\n"), ErrorKind::UpstreamReset);
    let huge = "y".repeat(500);
    let huge = relay_chunks(false, limits, &[head.as_bytes(), huge.as_bytes(), b"z"], End::Clean);
    assert_fails(&huge, &format!("{head}\n\n"), ErrorKind::UpstreamInvalid);
    let page = relay_chunks(false, limits, &[format!("data: <html>{}", "x".repeat(50)).as_bytes()], End::Clean);
    assert_fails(&page, "", ErrorKind::UpstreamInvalid);
}

#[test]
fn a_body_without_line_ends_is_no_answer() {
    assert_fails(&relay(false, "<html>busy</html>", End::Clean), "", ErrorKind::UpstreamReset);
}

#[test]
fn a_heartbeat_is_a_comment() {
    let mut framer = Framer::new(Limits::default());
    framer.push(&heartbeat(), |part| {
        assert!(matches!(part, Part::Event(event) if data_of(event).is_none()));
        Verdict::Pass
    });
    assert!(framer.close().bytes.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn cuts_change_nothing_that_the_caller_sees(
        parts in prop::collection::vec(
            prop::sample::select(vec![HELLO, STOP, USED, FAILED, END, ": c", "data:", "data: <", "\r", "data: {\ndata: }"]), 0..8,
        ),
        line_end in prop::sample::select(vec!["\n\n", "\r\n\r\n", "\r\r", "\n"]),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        requests_usage: bool,
        clean: bool,
    ) {
        let stream: Vec<u8> = parts.iter().flat_map(|part| [*part, line_end].concat().into_bytes()).collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
        let how = if clean { End::Clean } else { End::Broken(invalid("broken")) };

        let whole = relay_chunks(requests_usage, Limits::default(), &[&stream], how.clone());
        let parts = relay_chunks(requests_usage, Limits::default(), &chunks, how);
        prop_assert_eq!(&whole.text, &parts.text);
        prop_assert_eq!(whole.closing.outcome, parts.closing.outcome);
        prop_assert_eq!(whole.closing.usage, parts.closing.usage);
        prop_assert!(parts.first_token_chunks.len() <= 1);
        // For any input, the caller's stream has exactly one end and nothing after it.
        let mut ends = Vec::new();
        let mut framer = Framer::new(Limits::default());
        framer.push(&Bytes::from(format!("{}: c", whole.text)), |part| {
            if let Part::Event(event) = part {
                ends.push(data_of(event).is_some_and(|data| data.starts_with(b"[DONE]")));
            }
            Verdict::Pass
        });
        prop_assert_eq!(Some(ends.len() - 1), ends.iter().position(|end| *end));
    }

    #[test]
    fn any_bytes_are_survived(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..6)) {
        let chunks: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
        let relayed = relay_chunks(false, Limits { held_bytes: 16, event_bytes: 64 }, &chunks, End::Clean);
        prop_assert!(relayed.text.ends_with("data: [DONE]\n\n"));
    }
}
