//! A body before and after a plan, for people: the segments that stayed, were removed or were added, and the protected
//! spans.

use fairlead_core::Dialect;
use serde::Serialize;
use similar::{ChangeTag, TextDiff};
use std::time::Duration;

use crate::compress::{compress, Report};
use crate::plan::Plan;
use crate::protect;
use crate::read;
use crate::tape::Tape;
use crate::Unchanged;

/// A comparison that takes longer uses coarser segments.
const DIFF_TIME: Duration = Duration::from_millis(200);
/// Protected spans beyond this number are only counted.
const MOST_SPANS: usize = 200;
/// Longer spans are cut to this number of characters.
const MOST_CHARS: usize = 160;

/// A body before and after a plan.
#[derive(Debug, Serialize)]
pub struct Preview {
    /// Why the body is unchanged; absent if it changed.
    pub unchanged: Option<Unchanged>,
    /// The body that would be sent.
    pub body: Option<String>,
    pub report: Report,
    /// The texts that changed, in order.
    pub texts: Vec<TextChange>,
    /// The first protected spans of the prose.
    pub protected: Vec<String>,
    pub protected_count: usize,
}

/// One text of the conversation that changed.
#[derive(Debug, Serialize)]
pub struct TextChange {
    /// The index of its message.
    pub turn: usize,
    pub role: &'static str,
    pub segments: Vec<Segment>,
}

/// A segment of a text, for a side-by-side view.
#[derive(Debug, Serialize)]
pub struct Segment {
    /// `same`, `removed` or `added`.
    pub kind: &'static str,
    pub text: String,
}

/// Runs a plan and reports its effect. `lap` is used as in [`compress`].
pub fn preview(dialect: Dialect, body: &[u8], plan: &Plan, lap: impl FnMut() -> u64) -> Preview {
    let outcome = compress(dialect, body, plan, None, lap);
    let mut shown = Preview {
        unchanged: outcome.body.as_ref().err().copied(),
        body: None,
        report: outcome.report,
        texts: Vec::new(),
        protected: Vec::new(),
        protected_count: 0,
    };
    let Ok(before) = Tape::read(body) else { return shown };
    let before = read::conversation(dialect, &before);
    for piece in &before.pieces {
        for span in protect::spans(&piece.text) {
            if shown.protected.len() < MOST_SPANS {
                shown.protected.push(piece.text[span].chars().take(MOST_CHARS).collect());
            }
            shown.protected_count += 1;
        }
    }
    let Ok(after) = outcome.body else { return shown };
    if let Ok(tape) = Tape::read(&after) {
        let after = read::conversation(dialect, &tape);
        let pairs = before.pieces.iter().zip(&after.pieces).filter(|(before, after)| before.text != after.text);
        shown.texts = pairs
            .map(|(before, after)| TextChange {
                turn: before.turn,
                role: before.role.name(),
                segments: segments(&before.text, &after.text),
            })
            .collect();
    }
    shown.body = String::from_utf8(after).ok();
    shown
}

fn segments(before: &str, after: &str) -> Vec<Segment> {
    let diff = TextDiff::configure().timeout(DIFF_TIME).diff_words(before, after);
    let mut out: Vec<Segment> = Vec::new();
    for change in diff.iter_all_changes() {
        let kind = match change.tag() {
            ChangeTag::Equal => "same",
            ChangeTag::Delete => "removed",
            ChangeTag::Insert => "added",
        };
        match out.last_mut().filter(|last| last.kind == kind) {
            Some(last) => last.text.push_str(change.value()),
            None => out.push(Segment { kind, text: change.value().to_owned() }),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mode;

    #[test]
    fn segments_make_both_texts() {
        let text = "Could you please take a look at https://a.example/x in order to see why order NC-17 is late, thank you very much.";
        let body = format!(r#"{{"messages":[{{"role":"user","content":"{text}"}}]}}"#);
        let shown = preview(Dialect::Openai, body.as_bytes(), &Plan::from(Mode::Standard), || 0);
        assert_eq!(shown.texts.len(), 1);
        let of = |kinds: [&str; 2]| {
            let segments = shown.texts[0].segments.iter().filter(|segment| kinds.contains(&segment.kind));
            segments.map(|segment| segment.text.as_str()).collect::<String>()
        };
        assert_eq!(of(["same", "removed"]), text);
        assert!(shown.body.expect("a body").contains(&of(["same", "added"])));
        assert!(shown.protected.iter().any(|span| span == "https://a.example/x"));
    }

    #[test]
    fn a_body_that_stays_says_why() {
        let shown = preview(Dialect::Openai, b"[]", &Plan::from(Mode::Lite), || 0);
        assert_eq!(shown.unchanged, Some(Unchanged::NotUnderstood));
        assert!(shown.body.is_none() && shown.texts.is_empty());
    }
}
