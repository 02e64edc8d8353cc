//! Adapts a JSON schema to Claude's structured output. Objects are closed, and unsupported constraints move into the
//! description, where the model still reads them. Anthropic's own SDKs do the same.

use serde_json::{Map, Value};

/// Keywords that are supported everywhere.
const TAKEN: &[&str] = &["type", "enum", "const", "title", "description", "default", "$ref", "properties", "required"];
/// Keywords that hold one schema, a list of schemas, or an object of schemas.
const ALTERNATIVES: &[&str] = &["anyOf", "oneOf", "allOf"];
const DEFINITIONS: &[&str] = &["$defs", "definitions"];
const FORMATS: &[&str] = &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// Returns the schema for Claude. One that is not a JSON object is left for the provider to reject.
pub(super) fn closed(schema: &str) -> String {
    match serde_json::from_str::<Value>(schema) {
        Ok(value @ Value::Object(_)) => one(value).to_string(),
        _ => schema.to_owned(),
    }
}

fn one(schema: Value) -> Value {
    let Value::Object(members) = schema else { return schema };
    let is_object =
        members.get("type").is_some_and(|kind| has_type(kind, "object")) || members.contains_key("properties");
    let mut members_out = Map::new();
    let mut notes = Vec::new();
    for (name, value) in members {
        match name.as_str() {
            "properties" => drop(members_out.insert(name, each(value))),
            "items" => drop(members_out.insert(name, one(value))),
            "additionalProperties" => {}
            "minItems" if matches!(value.as_u64(), Some(0 | 1)) => drop(members_out.insert(name, value)),
            "format" if value.as_str().is_some_and(|format| FORMATS.contains(&format)) => {
                drop(members_out.insert(name, value));
            }
            // Both are treated as a choice here.
            "oneOf" => drop(members_out.insert("anyOf".to_owned(), list(value))),
            _ if ALTERNATIVES.contains(&name.as_str()) => drop(members_out.insert(name, list(value))),
            _ if DEFINITIONS.contains(&name.as_str()) => drop(members_out.insert(name, each(value))),
            _ if TAKEN.contains(&name.as_str()) => drop(members_out.insert(name, value)),
            "$schema" | "$id" | "$comment" | "examples" => {}
            _ => notes.push(format!("{name}: {value}")),
        }
    }
    if is_object {
        members_out.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    if !notes.is_empty() {
        let notes = format!("{{{}}}", notes.join(", "));
        let description = match members_out.get("description").and_then(Value::as_str) {
            Some(own) => format!("{own}\n\n{notes}"),
            None => notes,
        };
        members_out.insert("description".to_owned(), Value::String(description));
    }
    Value::Object(members_out)
}

fn has_type(kind: &Value, wanted: &str) -> bool {
    kind == wanted || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == wanted))
}

fn list(value: Value) -> Value {
    match value {
        Value::Array(schemas) => Value::Array(schemas.into_iter().map(one).collect()),
        other => other,
    }
}

fn each(value: Value) -> Value {
    match value {
        Value::Object(schemas) => {
            Value::Object(schemas.into_iter().map(|(name, schema)| (name, one(schema))).collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_are_closed_and_bounds_become_notes() {
        let schema = json!({
            "type": "object",
            "properties": {
                "n": {"type": "integer", "minimum": 1, "description": "a count"},
                "list": {"type": "array", "minItems": 3, "items": {"type": "object", "properties": {"x": {"type": "string"}}}},
                "one": {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/d"}]},
                "minimum": {"type": "string", "format": "phone"}
            },
            "required": ["n"],
            "$defs": {"d": {"type": "object", "additionalProperties": true}}
        });
        let closed: Value = serde_json::from_str(&closed(&schema.to_string())).expect("JSON");
        assert_eq!(
            closed,
            json!({
                "type": "object",
                "properties": {
                    "n": {"type": "integer", "description": "a count\n\n{minimum: 1}"},
                    "list": {
                        "type": "array",
                        "description": "{minItems: 3}",
                        "items": {"type": "object", "properties": {"x": {"type": "string"}}, "additionalProperties": false}
                    },
                    "one": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/d"}]},
                    "minimum": {"type": "string", "description": "{format: \"phone\"}"}
                },
                "required": ["n"],
                "$defs": {"d": {"type": "object", "additionalProperties": false}},
                "additionalProperties": false
            })
        );
    }

    #[test]
    fn what_is_no_schema_stays() {
        assert_eq!(closed("true"), "true");
    }
}
