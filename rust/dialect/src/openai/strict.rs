//! Checks whether OpenAI's strict mode accepts a JSON schema: every object is closed and requires all of its
//! properties.
//!
//! Other dialects do not say whether a schema is strict. A schema that strict mode rejects is sent without it.

use serde_json::Value;

use crate::model::Tool;

/// Returns whether a function is sent as strict: the caller asks for it, and strict mode accepts the schema.
pub(crate) fn stays_strict(tool: &Tool<'_>) -> bool {
    tool.strict == Some(true) && tool.schema.as_deref().is_some_and(is_strict)
}

pub(super) fn is_strict(schema: &str) -> bool {
    serde_json::from_str::<Value>(schema).is_ok_and(|schema| schema.is_object() && fits(&schema))
}

fn fits(schema: &Value) -> bool {
    let Some(members) = schema.as_object() else { return true };
    let is_object = schema["type"] == "object" || members.contains_key("properties");
    let properties = schema["properties"].as_object();
    let is_required =
        |name: &String| schema["required"].as_array().is_some_and(|list| list.iter().any(|one| one == name));
    let is_closed = !is_object
        || (schema["additionalProperties"] == false
            && properties.is_none_or(|properties| properties.keys().all(is_required)));
    // Strict mode rejects these keywords.
    let is_plain = !["oneOf", "allOf", "not", "if", "patternProperties", "uniqueItems"]
        .iter()
        .any(|name| members.contains_key(*name));
    is_closed
        && is_plain
        && members.iter().all(|(name, value)| match name.as_str() {
            "properties" | "$defs" | "definitions" => {
                value.as_object().is_none_or(|schemas| schemas.values().all(fits))
            }
            "anyOf" => value.as_array().is_none_or(|schemas| schemas.iter().all(fits)),
            "items" => fits(value),
            _ => true,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_strict_when_all_of_it_is() {
        for (schema, expected) in [
            (
                r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}"#,
                true,
            ),
            (r#"{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}"#, false),
            (r#"{"type":"object","properties":{}}"#, false),
            (r#"{"type":"array","items":{"type":"object"}}"#, false),
            (
                r#"{"type":"object","properties":{"a":{"oneOf":[]}},"required":["a"],"additionalProperties":false}"#,
                false,
            ),
            ("not JSON", false),
        ] {
            assert_eq!(is_strict(schema), expected, "{schema}");
        }
    }
}
