//! The reader reads what the writer writes, and reports lines that are not records.

use super::columns::{ColumnKind, RECORD_COLUMNS};
use super::quick::read_quickly;
use super::read::{read_any, read_record_lines, FieldValue};
use super::row::{FieldOrder, EMPTY};
use super::{CacheKind, CacheOutcome, Outcome, Record};
use proptest::prelude::*;
use serde_json::{json, Value as Json};

/// Each record as a JSON object of its columns, and the lines that are not records.
fn read(data: &[u8]) -> (Vec<Json>, Vec<Vec<u8>>) {
    let (mut records, mut rejected) = (Vec::new(), Vec::new());
    read_record_lines(
        data,
        |row| {
            records.push(RECORD_COLUMNS.iter().zip(row).map(|(column, value)| (column.name, as_json(value))).collect());
        },
        |line| rejected.push(line.to_vec()),
    );
    (records, rejected)
}

fn as_json(value: &FieldValue<'_>) -> Json {
    match value {
        FieldValue::Null => Json::Null,
        FieldValue::Text(text) => json!(text),
        FieldValue::Flag(flag) => json!(flag),
        FieldValue::Integer(number) => json!(number),
        FieldValue::Real(number) => json!(number),
        FieldValue::Other => unreachable!("its line is rejected"),
    }
}

fn plain() -> Record<'static> {
    Record {
        request_id: "r1",
        ts_ms: 1_800_000_000_000,
        worker_id: "w",
        principal_kind: "key",
        endpoint: "chat",
        method: "POST",
        path: "/v1/chat/completions",
        status: 200,
        outcome: Outcome::Completed,
        tokens_input: 1,
        tokens_output: 2,
        tokens_cached: 3,
        tokens_reasoning: 4,
        tokens_cache_write: 5,
        cost_usd_micros: 6,
        latency_ms: 7.25,
        attempts: 1,
        bytes_request: 8,
        bytes_response: 9,
        no_log: true,
        cache: Some(CacheOutcome::Hit),
        cache_kind: Some(CacheKind::Exact),
        ..Record::default()
    }
}

fn written(record: &Record<'_>) -> Vec<u8> {
    let mut line = Vec::new();
    record.append_to(&mut line).expect("a record is JSON");
    line
}

#[test]
fn every_field_that_is_written_is_a_column() {
    let text = Some("x");
    let whole = Record {
        key_id: text,
        group_path: text,
        tags: text,
        chaos: text,
        cache_hold: text,
        conversation: text,
        prompt_hashes: text,
        cache_read_saving: Some(5),
        session_tag: text,
        session_id: text,
        model: text,
        provider: text,
        connection_id: text,
        upstream_model: text,
        combo: text,
        strategy: text,
        error_kind: text,
        ttft_ms: Some(1.5),
        chosen_ms: Some(0.25),
        failed_attempts: text,
        error_message: text,
        cost_saved_usd_micros: Some(3),
        tokens_cache_write_hour: 1,
        service_tier: text,
        price_tiers: text,
        guardrails: text,
        compression: text,
        compression_tokens_before: Some(4),
        compression_tokens_after: Some(3),
        compression_ms: Some(0.25),
        compression_rejected: text,
        compression_saved_usd_micros: Some(2),
        trace_id: text,
        span_id: text,
        parent_span_id: text,
        ..plain()
    };

    let line = written(&whole);
    let text = std::str::from_utf8(&line[..line.len() - 1]).expect("it is text");
    assert!(read_quickly(text, &mut FieldOrder::default(), &mut EMPTY.clone()), "as a relay writes it");

    let fields: Json = serde_json::from_slice(&line).expect("it is JSON");
    assert_eq!(fields.as_object().map(serde_json::Map::len), Some(RECORD_COLUMNS.len()));
    assert_eq!(read(&line), (vec![fields], vec![]));
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        request_id in ".*",
        texts in prop::array::uniform4(prop::option::of(".*")),
        ts_ms in 0..=253_402_300_799_999_u64,
        status: u16,
        stream: bool,
        tokens in prop::array::uniform4(0..=i64::MAX as u64),
        latency_ms in prop::num::f64::NORMAL | prop::num::f64::ZERO | prop::num::f64::SUBNORMAL,
        ttft_ms in prop::option::of(0.0..1e9_f64),
        attempts in 0..=i32::MAX as u32,
    ) {
        let record = Record {
            request_id: &request_id,
            ts_ms,
            key_id: texts[0].as_deref(),
            session_tag: texts[1].as_deref(),
            model: texts[2].as_deref(),
            guardrails: texts[3].as_deref(),
            status,
            stream,
            tokens_input: tokens[0],
            tokens_output: tokens[1],
            bytes_response: tokens[2],
            cost_saved_usd_micros: Some(tokens[3]),
            latency_ms,
            ttft_ms,
            attempts,
            ..plain()
        };
        let expected = serde_json::to_value(&record).expect("a record is JSON");

        let (records, rejected) = read(&written(&record));

        prop_assert!(rejected.is_empty());
        for (name, value) in records[0].as_object().expect("columns") {
            prop_assert_eq!(value, expected.get(name).unwrap_or(&Json::Null));
        }
    }

    /// A written line with a byte or two changed: the quick reader and the general one agree.
    #[test]
    fn what_is_read_quickly_is_read_the_same_slowly(
        changes in prop::collection::vec((0..600_usize, "[-0-9.eE\"\\\\{}:, a-z\u{e4}]{0,2}"), 0..3),
    ) {
        let mut line = String::from_utf8(written(&plain())).expect("it is text");
        line.pop();
        for (at, text) in changes {
            let at = at % line.len();
            if line.is_char_boundary(at) && line.is_char_boundary(at + 1) {
                line.replace_range(at..=at, &text);
            }
        }
        let (mut quick, mut slow) = (EMPTY, EMPTY);
        if read_quickly(&line, &mut FieldOrder::default(), &mut quick) {
            prop_assert!(read_any(&line, &mut FieldOrder::default(), &mut slow), "{}", line);
            prop_assert_eq!(quick, slow);
        }
    }

    #[test]
    fn no_bytes_break_it(data in prop::collection::vec(any::<u8>(), 0..200)) {
        let (records, rejected) = read(&data);
        prop_assert!(records.is_empty());
        prop_assert!(rejected.iter().all(|line| !line.contains(&b'\n')));
    }
}

/// A plain line in which one field is replaced.
fn with(field: &str, value: &str) -> Vec<u8> {
    let mut fields: serde_json::Map<String, Json> = serde_json::from_slice(&written(&plain())).expect("it is JSON");
    fields.remove(field);
    let rest = serde_json::to_string(&fields).expect("it is JSON");
    format!("{},\"{field}\":{value}}}", rest.trim_end_matches('}')).into_bytes()
}

#[test]
fn what_has_another_type_or_is_out_of_range_is_rejected() {
    for column in RECORD_COLUMNS {
        let fitting = match column.kind {
            ColumnKind::Text => ["\"\"", "\"\\u00e4\\n\"", "\"x\""],
            ColumnKind::Flag => ["true", "false", " true "],
            ColumnKind::Small => ["0", "-2147483647", "2147483647"],
            ColumnKind::Integer => ["-9223372036854775807", "0", "9223372036854775807"],
            ColumnKind::Moment => ["0", "1", "253402300799999"],
            ColumnKind::Real => ["1.5", "9007199254740992", "-2e-3"],
        };
        for value in fitting {
            assert_eq!(read(&with(column.name, value)).0.len(), 1, "{} {value}", column.name);
        }
        let wrong = match column.kind {
            ColumnKind::Text => ["1", "true", "[]", "{}", "\"\\ud800\"", "\"\u{1}\"", "x"],
            ColumnKind::Flag => ["1", "\"true\"", "[1]", "{\"a\":1}", "0", "tru", "1.0"],
            ColumnKind::Small => ["2147483648", "-2147483648", "1.0", "true", "-0", "[]", "01"],
            ColumnKind::Integer => ["9223372036854775808", "-9223372036854775808", "1.0", "1e3", "true", "\"1\"", "{}"],
            ColumnKind::Moment => ["-1", "253402300800000", "1.0", "true", "\"1\"", "[]", "1e3"],
            ColumnKind::Real => ["9007199254740993", "18446744073709551615", "1e400", "true", "\"1\"", "[]", "1."],
        };
        for value in wrong {
            let line = with(column.name, value);
            assert_eq!(read(&line), (vec![], vec![line.clone()]), "{} {value}", column.name);
        }
        assert_eq!(read(&with(column.name, "null")).0.is_empty(), column.is_required, "{}", column.name);
    }
}

#[test]
fn lines_stand_alone_in_any_order() {
    let turned = with("request_id", "\"r2\"");
    let twice = with("model", "1,\"model\":\"m\"");
    let unknown = with("added_later", "{\"a\":[1]}");
    let data =
        [&written(&plain())[..], b"\n \t\r\x0b\n", &turned, b"\nnonsense\n\xff\n", &twice, b"\r\n", &unknown].concat();

    let (records, rejected) = read(&data);

    assert_eq!(records.iter().map(|row| &row["request_id"]).collect::<Vec<_>>(), ["r1", "r2", "r1", "r1"]);
    assert_eq!(records[2]["model"], "m");
    assert_eq!(rejected, [&b"nonsense"[..], b"\xff"]);
}
