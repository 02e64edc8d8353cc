//! Applies a combo's rules to a stream. The stream is buffered until its text satisfies the rules, so that another
//! target can be tried if it does not. If the beginning decides, the rest is relayed as it arrives. Otherwise the
//! caller receives nothing until the response is complete.

use bytes::Bytes;
use fairlead_core::strategy::Rules;
use fairlead_core::strategy::Validation;
use fairlead_core::{Error, ErrorKind, Retry};
use fairlead_dialect::AnswerText;
use std::sync::Arc;

/// The maximum size of a buffered stream; longer ones are rejected.
const MAX_HELD_BYTES: usize = 8 << 20;

/// Applies the rules to one stream.
#[derive(Debug)]
pub struct StreamJudge {
    rules: Arc<Rules>,
    answer: AnswerText,
    heard_bytes: usize,
    is_released: bool,
}

/// The rules for streams, if the combo has any.
pub fn rules_for_streams(rules: &Rules) -> Option<&Validation> {
    rules.validation.as_ref().filter(|validation| validation.holds_streams)
}

impl StreamJudge {
    pub fn new(rules: Arc<Rules>, answer: AnswerText) -> Self {
        Self { rules, answer, heard_bytes: 0, is_released: false }
    }

    /// Adds the provider's next bytes.
    pub fn push(&mut self, chunk: &Bytes) {
        if self.is_released {
            return;
        }
        self.heard_bytes += chunk.len();
        let before = self.answer.text().len();
        self.answer.push(chunk);
        let has_more = self.answer.text().len() > before;
        let is_met = has_more
            && rules_for_streams(&self.rules).is_none_or(|rules| rules.is_met_by_beginning(self.answer.text()));
        self.is_released = !self.is_too_long() && (is_met || self.answer.calls_tools());
    }

    pub fn holds(&self) -> bool {
        !self.is_released
    }

    pub fn is_too_long(&self) -> bool {
        self.heard_bytes > MAX_HELD_BYTES
    }

    /// The reason why the complete response is not sent to the caller.
    pub fn fault(&self) -> Option<Error> {
        let rules = rules_for_streams(&self.rules).filter(|_| self.holds())?;
        let fault = if self.is_too_long() {
            Some(format!("is longer than the {MAX_HELD_BYTES} bytes that are held back"))
        } else {
            rules.fault(self.answer.text())
        };
        fault.map(|fault| rejected(&fault))
    }
}

/// The error for a response that violates its combo's rules.
pub fn rejected(fault: &str) -> Error {
    let message = format!("The answer {fault}, against the combo's `responseValidation`.");
    Error::upstream(ErrorKind::AnswerRejected, Retry::Elsewhere, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_core::Dialect;
    use serde_json::{json, Value};

    fn judge(validation: &Value) -> StreamJudge {
        let rules = serde_json::from_value(json!({"validation": validation})).expect("rules");
        StreamJudge::new(Arc::new(rules), AnswerText::new(Dialect::Openai))
    }

    fn chunk(delta: &Value) -> Bytes {
        Bytes::from(format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]})))
    }

    #[test]
    fn the_beginning_decides_where_nothing_can_come_to_break_the_rules() {
        let mut one = judge(&json!({"holds_streams": true, "min_content_length": 3, "required_substrings": ["ok"]}));
        one.push(&chunk(&json!({"content": "o"})));
        assert!(one.holds() && one.fault().is_some());
        one.push(&chunk(&json!({"content": "k!"})));
        assert!(!one.holds() && one.fault().is_none());
    }

    #[test]
    fn what_may_still_break_the_rules_is_held_to_its_end() {
        let mut one = judge(&json!({"holds_streams": true, "forbidden_substrings": ["sorry"]}));
        one.push(&chunk(&json!({"content": "so"})));
        assert!(one.holds() && one.fault().is_none());
        one.push(&chunk(&json!({"content": "rry"})));
        let fault = one.fault().expect("a fault");
        assert_eq!((fault.kind, fault.retry), (ErrorKind::AnswerRejected, Retry::Elsewhere));
    }

    #[test]
    fn calls_of_tools_pass_and_what_is_too_long_does_not() {
        let forbidding = json!({"holds_streams": true, "forbidden_substrings": ["sorry"]});
        let mut one = judge(&forbidding);
        one.push(&chunk(&json!({"tool_calls": [{"index": 0}]})));
        assert!(!one.holds() && one.fault().is_none());
        let mut long = judge(&forbidding);
        let megabyte = chunk(&json!({"content": "x".repeat(1 << 20)}));
        for _ in 0..9 {
            long.push(&megabyte);
        }
        assert!(long.is_too_long() && long.holds());
        assert!(long.fault().expect("a fault").message.contains("is longer than"));
    }
}
