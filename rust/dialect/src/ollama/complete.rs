//! Writes complete answers.

use std::borrow::Cow;

use super::line::{close, write_call, AnswerForm, AnswerTime};
use crate::model::{Answer, Content, Source};
use crate::text::{Text, Writer};

pub(super) fn write(form: &AnswerForm, answer: &Answer<'_>, at: AnswerTime) -> Vec<u8> {
    let mut out = Writer::with_capacity(1024);
    form.open(&mut out, at);
    let text = joined(answer, |content| match content {
        Content::Text(text) | Content::Refusal(text) => Some(text),
        _ => None,
    });
    let thinking = joined(answer, |content| match content {
        Content::Thinking { text, .. } => Some(text),
        _ => None,
    });
    form.message(&mut out, &text, |out| {
        if form.shows_thinking && !thinking.is_empty() {
            out.member("thinking", &thinking);
        }
        images(out, answer);
        calls(out, answer);
    });
    if let Some(list) = answer.logprobs {
        out.key("logprobs").raw(list);
    }
    close(&mut out, answer.stop, &answer.usage, at);
    out.take()
}

/// Writes the answer to a request without a message.
pub(super) fn write_loaded(form: &AnswerForm, unloads: bool, at: AnswerTime) -> Vec<u8> {
    let mut out = Writer::default();
    form.open(&mut out, at);
    form.message(&mut out, &"".into(), |_| {});
    let reason = if unloads { "unload" } else { "load" };
    out.key("done").flag(true).key("done_reason").str(reason).close(b'}').take()
}

/// Writes the images of the answer in base64.
fn images(out: &mut Writer, answer: &Answer<'_>) {
    let images = answer.parts.iter().filter_map(|part| match &part.content {
        Content::Image(Source::Base64 { data, .. }) => Some(data),
        _ => None,
    });
    let mut images = images.peekable();
    if images.peek().is_some() {
        out.key("images").open(b'[');
        for data in images {
            out.str(data);
        }
        out.close(b']');
    }
}

fn calls(out: &mut Writer, answer: &Answer<'_>) {
    let mut calls = answer.parts.iter().filter_map(|part| match &part.content {
        Content::Call(call) => Some(call),
        _ => None,
    });
    let Some(first) = calls.next() else { return };
    out.key("tool_calls").open(b'[');
    write_call(out, first, 0);
    for (call, index) in calls.zip(1..) {
        write_call(out, call, index);
    }
    out.close(b']');
}

/// Joins all texts of one kind.
fn joined<'a>(answer: &'a Answer<'a>, pick: impl Fn(&'a Content<'a>) -> Option<&'a Text<'a>>) -> Text<'a> {
    let mut texts = answer.parts.iter().filter_map(|part| pick(&part.content));
    match (texts.next(), texts.next()) {
        (None, _) => "".into(),
        (Some(one), None) => one.clone(),
        (Some(first), Some(second)) => {
            let mut complete = first.decode().into_owned();
            complete.push_str(&second.decode());
            texts.for_each(|text| complete.push_str(&text.decode()));
            Text::Plain(Cow::Owned(complete))
        }
    }
}
