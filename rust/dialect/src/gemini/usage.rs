//! The `usageMetadata` object. Thoughts are counted beside what was said, and the cached part within the prompt.

use fairlead_core::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::openai::usage::service;
use crate::text::Writer;

/// Counts above this are no counts, as in the chat dialect.
const MAX_TOKENS: u64 = 1_000_000_000_000;

#[derive(Deserialize)]
struct UsageIn<'a> {
    #[serde(default, rename = "promptTokenCount")]
    prompt: Option<u64>,
    #[serde(default, rename = "toolUsePromptTokenCount")]
    tool_use_prompt: Option<u64>,
    #[serde(default, rename = "cachedContentTokenCount")]
    cached: Option<u64>,
    #[serde(default, rename = "candidatesTokenCount")]
    candidates: Option<u64>,
    #[serde(default, rename = "thoughtsTokenCount")]
    thoughts: Option<u64>,
    /// Vertex's word for the service tier: `ON_DEMAND`, `ON_DEMAND_PRIORITY`, ...
    #[serde(borrow, default, rename = "trafficType")]
    traffic: Option<&'a RawValue>,
}

/// `None` for what is no usage.
pub(crate) fn read(object: &[u8]) -> Option<Usage> {
    let usage: UsageIn<'_> = serde_json::from_slice(object).ok()?;
    let count = |tokens: Option<u64>| tokens.filter(|count| *count <= MAX_TOKENS).unwrap_or(0);
    let input = count(usage.prompt) + count(usage.tool_use_prompt);
    let reasoning = count(usage.thoughts);
    Some(Usage {
        input,
        output: count(usage.candidates) + reasoning,
        cached: count(usage.cached).min(input),
        reasoning,
        service: service(usage.traffic.map(|traffic| traffic.get().as_bytes())),
        ..Usage::default()
    })
}

pub(crate) fn write(out: &mut Writer, usage: &Usage) {
    out.open(b'{').key("promptTokenCount").number(usage.input);
    out.key("candidatesTokenCount").number(usage.output.saturating_sub(usage.reasoning));
    out.key("totalTokenCount").number(usage.input + usage.output);
    if usage.cached > 0 {
        out.key("cachedContentTokenCount").number(usage.cached);
    }
    if usage.reasoning > 0 {
        out.key("thoughtsTokenCount").number(usage.reasoning);
    }
    out.close(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_core::ServiceTier;

    #[test]
    fn what_is_written_reads_the_same() {
        let usage = Usage { input: 45, output: 40, cached: 30, reasoning: 25, ..Usage::default() };
        let mut out = Writer::default();
        write(&mut out, &usage);
        assert_eq!(read(&out.take()), Some(usage));
        let tools = br#"{"promptTokenCount":5,"toolUsePromptTokenCount":2,"candidatesTokenCount":1}"#;
        assert_eq!(read(tools), Some(Usage { input: 7, output: 1, ..Usage::default() }));
        let traffic = br#"{"promptTokenCount":5,"trafficType":"ON_DEMAND_FLEX"}"#;
        assert_eq!(read(traffic).map(|usage| usage.service), Some(ServiceTier::Flex));
        assert_eq!(read(b"null"), None);
    }
}
