//! Reads the `usage` object of a message, complete or in parts over a stream.

use fairlead_core::json::{self, JsonFault, Kind};
use fairlead_core::{ServiceTier, Usage};

use crate::lenient;
use crate::openai::usage::{service, tokens};
use crate::text::Writer;

const MAX_DEPTH: usize = 16;

/// The usage reported so far. In this dialect, the input excludes tokens read from and written to the cache.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    input: u64,
    cache_read: u64,
    cache_write: u64,
    output: u64,
    thinking: u64,
    cache_write_hour: u64,
    service: ServiceTier,
    is_reported: bool,
}

impl Counts {
    /// Merges the counts of `object`. Absent counts stay unchanged.
    pub(crate) fn read(&mut self, object: &[u8]) {
        // Anything but an object is ignored.
        let _outcome = lenient::read(object, |object| self.read_strictly(object));
    }

    fn read_strictly(&mut self, object: &[u8]) -> Result<(), JsonFault> {
        let wanted = [
            "input_tokens",
            "cache_read_input_tokens",
            "cache_creation_input_tokens",
            "cache_creation",
            "output_tokens",
            "output_tokens_details",
            "service_tier",
        ];
        let scan = json::scan_object(object, &wanted, MAX_DEPTH)?;
        let count = |name| scan.get(name).and_then(|value| tokens(object, value));
        self.is_reported = true;
        let fields = [
            (&mut self.input, "input_tokens"),
            (&mut self.cache_read, "cache_read_input_tokens"),
            (&mut self.cache_write, "cache_creation_input_tokens"),
            (&mut self.output, "output_tokens"),
        ];
        for (field, name) in fields {
            *field = count(name).unwrap_or(*field);
        }
        let part = |outer, name| {
            let outer = scan.get(outer).filter(|value| value.kind == Kind::Object)?;
            let inner = object.get(outer.span())?;
            let names = [name];
            let scan = json::scan_object(inner, &names, MAX_DEPTH).ok()?;
            tokens(inner, scan.get(name)?)
        };
        self.thinking = part("output_tokens_details", "thinking_tokens").unwrap_or(self.thinking);
        self.cache_write_hour = part("cache_creation", "ephemeral_1h_input_tokens").unwrap_or(self.cache_write_hour);
        if let Some(tier) = scan.get("service_tier").filter(|value| !value.is_null()) {
            self.service = service(object.get(tier.span()));
        }
        Ok(())
    }

    pub(crate) fn usage(&self) -> Usage {
        Usage {
            input: self.input + self.cache_read + self.cache_write,
            output: self.output,
            cached: self.cache_read,
            reasoning: self.thinking.min(self.output),
            cache_write: self.cache_write,
            cache_write_hour: self.cache_write_hour.min(self.cache_write),
            service: self.service,
        }
    }

    pub(crate) fn reported(&self) -> Option<Usage> {
        self.is_reported.then(|| self.usage())
    }
}

pub(super) fn write(out: &mut Writer, usage: &Usage) {
    let fresh = usage.input.saturating_sub(usage.cached + usage.cache_write);
    out.open(b'{').key("input_tokens").number(fresh);
    out.key("cache_creation_input_tokens").number(usage.cache_write);
    if usage.cache_write_hour > 0 {
        let short = usage.cache_write.saturating_sub(usage.cache_write_hour);
        out.key("cache_creation").open(b'{').key("ephemeral_5m_input_tokens").number(short);
        out.key("ephemeral_1h_input_tokens").number(usage.cache_write_hour).close(b'}');
    }
    out.key("cache_read_input_tokens").number(usage.cached);
    out.key("output_tokens").number(usage.output);
    if usage.reasoning > 0 {
        out.key("output_tokens_details").open(b'{').key("thinking_tokens").number(usage.reasoning).close(b'}');
    }
    out.close(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_tells_its_counts_in_parts() {
        let mut counts = Counts::default();
        assert_eq!(counts.reported(), None);
        counts.read(
            br#"{"input_tokens":10,"cache_read_input_tokens":30,"cache_creation_input_tokens":5,"output_tokens":1}"#,
        );
        counts.read(br#"{"output_tokens":40,"output_tokens_details":{"thinking_tokens":25}}"#);

        let usage = Usage { input: 45, output: 40, cached: 30, reasoning: 25, cache_write: 5, ..Usage::default() };
        assert_eq!(counts.reported(), Some(usage));
        let mut out = Writer::default();
        write(&mut out, &usage);
        let mut again = Counts::default();
        again.read(&out.take());
        assert_eq!(again.usage(), usage);
    }

    #[test]
    fn lifetimes_of_the_cache_and_the_service_tier_are_read() {
        let mut counts = Counts::default();
        counts.read(
            br#"{"input_tokens":1,"cache_creation_input_tokens":9,"service_tier":"priority",
                "cache_creation":{"ephemeral_5m_input_tokens":3,"ephemeral_1h_input_tokens":6}}"#,
        );
        counts.read(br#"{"output_tokens":4,"service_tier":null}"#);
        let usage = Usage {
            input: 10,
            output: 4,
            cache_write: 9,
            cache_write_hour: 6,
            service: ServiceTier::Priority,
            ..Usage::default()
        };
        assert_eq!(counts.usage(), usage);
        let mut out = Writer::default();
        write(&mut out, &usage);
        let mut again = Counts::default();
        again.read(&out.take());
        assert_eq!(again.usage(), Usage { service: ServiceTier::Standard, ..usage });
        again.read(br#"{"cache_creation":{"ephemeral_1h_input_tokens":700}}"#);
        assert_eq!(again.usage().cache_write_hour, 9, "no part is more than its whole");
    }
}
