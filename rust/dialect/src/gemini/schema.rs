//! Converts Gemini's schemas, a subset of OpenAPI's in different spelling, to JSON Schema.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// Converts a schema to JSON Schema. A schema that is JSON Schema already stays unchanged.
pub(super) fn to_json_schema(schema: &str) -> Cow<'_, str> {
    let Ok(value) = serde_json::from_str::<Value>(schema) else { return Cow::Borrowed(schema) };
    let original = value.clone();
    let turned = turn(value);
    if turned == original {
        Cow::Borrowed(schema)
    } else {
        Cow::Owned(turned.to_string())
    }
}

/// Replaces `const` of a text by an `enum` of one value. Google's JSON Schema has no `const`.
pub(super) fn without_const(schema: &str) -> Cow<'_, str> {
    if !schema.contains("\"const\"") {
        return Cow::Borrowed(schema);
    }
    let Ok(mut value) = serde_json::from_str::<Value>(schema) else { return Cow::Borrowed(schema) };
    replace_const(&mut value);
    Cow::Owned(value.to_string())
}

fn replace_const(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(replace_const),
        Value::Object(members) => {
            for (name, inner) in members.iter_mut() {
                match (name.as_str(), inner) {
                    // The names of properties are the caller's own.
                    ("properties" | "$defs" | "defs" | "definitions", Value::Object(schemas)) => {
                        schemas.values_mut().for_each(replace_const);
                    }
                    ("enum" | "default" | "example" | "examples" | "const", _) => {}
                    (_, inner) => replace_const(inner),
                }
            }
            if let Some(Value::String(only)) = members.get("const").cloned() {
                members.remove("const");
                members.insert("enum".to_owned(), Value::Array(vec![Value::String(only)]));
            }
        }
        _ => {}
    }
}

/// The recursion is bounded by the maximum depth of a body.
fn turn(value: Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(turn_members(members)),
        other => other,
    }
}

fn turn_members(members: Map<String, Value>) -> Map<String, Value> {
    let is_nullable = members.get("nullable").and_then(Value::as_bool) == Some(true);
    let mut turned = Map::new();
    for (name, value) in members {
        let value = match (name.as_str(), value) {
            ("nullable" | "propertyOrdering" | "property_ordering", _) => continue,
            ("type", Value::String(kind)) => {
                let kind = kind.to_ascii_lowercase();
                if is_nullable {
                    serde_json::json!([kind, "null"])
                } else {
                    Value::String(kind)
                }
            }
            ("properties" | "defs" | "$defs", Value::Object(inner)) => {
                Value::Object(inner.into_iter().map(|(name, schema)| (name, turn(schema))).collect())
            }
            ("items" | "additionalProperties", value) => turn(value),
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(list)) => {
                Value::Array(list.into_iter().map(turn).collect())
            }
            // Google's JSON writes 64-bit integers as strings.
            (
                "minItems" | "maxItems" | "minLength" | "maxLength" | "minProperties" | "maxProperties",
                Value::String(digits),
            ) => digits.parse::<u64>().map_or(Value::String(digits), Value::from),
            (_, value) => value,
        };
        turned.insert(name, value);
    }
    turned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_get_the_names_that_everybody_uses() {
        let own = r#"{"type":"OBJECT","properties":{"a":{"type":"STRING","nullable":true},"type":{"type":"ARRAY","minItems":"2","items":{"type":"INTEGER"}}},"propertyOrdering":["a"],"required":["a"]}"#;
        let schema: Value = serde_json::from_str(&to_json_schema(own)).expect("JSON");
        assert_eq!(
            schema,
            serde_json::json!({"type": "object", "required": ["a"], "properties": {
                "a": {"type": ["string", "null"]},
                "type": {"type": "array", "minItems": 2, "items": {"type": "integer"}},
            }})
        );
        let plain = r#"{ "type": "object", "properties": {} }"#;
        assert_eq!(to_json_schema(plain), plain);
    }
}
