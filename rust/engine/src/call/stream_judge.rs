//! Holds a stream to the rules of its combo: it is held back until its text is known to be as they say, so that another target can
//! be tried where it is not. Where the beginning decides, the rest passes as it comes; else the caller hears nothing until the
//! answer is whole.

use bytes::Bytes;
use fairlead_core::strategy::Rules;
use fairlead_core::strategy::Validation;
use fairlead_core::{Error, ErrorKind, Retry};
use fairlead_dialect::AnswerText;
use std::sync::Arc;

/// The longest stream that is held back; one that is longer is rejected.
const MAX_HELD_BYTES: usize = 8 << 20;

/// The judge of one stream.
#[derive(Debug)]
pub struct StreamJudge {
    rules: Arc<Rules>,
    answer: AnswerText,
    heard_bytes: usize,
    is_released: bool,
}

/// The rules for streams, where a combo has any.
pub fn rules_for_streams(rules: &Rules) -> Option<&Validation> {
    rules.validation.as_ref().filter(|validation| validation.holds_streams)
}

impl StreamJudge {
    pub fn new(rules: Arc<Rules>, answer: AnswerText) -> Self {
        Self { rules, answer, heard_bytes: 0, is_released: false }
    }

    /// The next bytes of the provider's.
    pub fn hear(&mut self, chunk: &Bytes) {
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

    /// Why the answer, which is whole, does not go to the caller.
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

/// An answer that is not as its combo wants it.
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
        one.hear(&chunk(&json!({"content": "o"})));
        assert!(one.holds() && one.fault().is_some());
        one.hear(&chunk(&json!({"content": "k!"})));
        assert!(!one.holds() && one.fault().is_none());
    }

    #[test]
    fn what_may_still_break_the_rules_is_held_to_its_end() {
        let mut one = judge(&json!({"holds_streams": true, "forbidden_substrings": ["sorry"]}));
        one.hear(&chunk(&json!({"content": "so"})));
        assert!(one.holds() && one.fault().is_none());
        one.hear(&chunk(&json!({"content": "rry"})));
        let fault = one.fault().expect("a fault");
        assert_eq!((fault.kind, fault.retry), (ErrorKind::AnswerRejected, Retry::Elsewhere));
    }

    #[test]
    fn calls_of_tools_pass_and_what_is_too_long_does_not() {
        let forbidding = json!({"holds_streams": true, "forbidden_substrings": ["sorry"]});
        let mut one = judge(&forbidding);
        one.hear(&chunk(&json!({"tool_calls": [{"index": 0}]})));
        assert!(!one.holds() && one.fault().is_none());
        let mut long = judge(&forbidding);
        let megabyte = chunk(&json!({"content": "x".repeat(1 << 20)}));
        for _ in 0..9 {
            long.hear(&megabyte);
        }
        assert!(long.is_too_long() && long.holds());
        assert!(long.fault().expect("a fault").message.contains("is longer than"));
    }
}
