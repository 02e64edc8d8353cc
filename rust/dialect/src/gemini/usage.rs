//! Reads the `usageMetadata` object. Reasoning tokens are counted in addition to the answer, and cached tokens are part
//! of the prompt.

use fairlead_core::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::lenient;
use crate::openai::usage::{service, Tokens};
use crate::text::Writer;

#[derive(Deserialize)]
struct UsageIn<'a> {
    #[serde(default, rename = "promptTokenCount")]
    prompt: Tokens,
    #[serde(default, rename = "toolUsePromptTokenCount")]
    tool_use_prompt: Tokens,
    #[serde(default, rename = "cachedContentTokenCount")]
    cached: Tokens,
    #[serde(default, rename = "candidatesTokenCount")]
    candidates: Tokens,
    #[serde(default, rename = "thoughtsTokenCount")]
    thoughts: Tokens,
    /// Vertex AI's name for the service tier: `ON_DEMAND`, `ON_DEMAND_PRIORITY`, ...
    #[serde(borrow, default, rename = "trafficType")]
    traffic: Option<&'a RawValue>,
}

/// Returns `None` if the value is not a usage object.
pub(crate) fn read(object: &[u8]) -> Option<Usage> {
    lenient::read(object, read_strictly).ok()
}

fn read_strictly(object: &[u8]) -> serde_json::Result<Usage> {
    let usage: UsageIn<'_> = serde_json::from_slice(object)?;
    let input = usage.prompt.0 + usage.tool_use_prompt.0;
    let Tokens(reasoning) = usage.thoughts;
    Ok(Usage {
        input,
        output: usage.candidates.0 + reasoning,
        cached: usage.cached.0.min(input),
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
