//! Translates requests and complete answers between any two dialects. If both sides use the same dialect, bytes pass
//! unchanged.

use bytes::Bytes;
use fairlead_core::json::{self, Kind};
use fairlead_core::{Dialect, Error, ErrorKind, Letters, ModelFacts, NameRule, Prefill, Retry, StreamingUsage, Usage};
use std::borrow::Cow;

use crate::accepted::{self, limit_cache_marks};
use crate::accepted_media::fit_media;
use crate::answer_context::AnswerContext;
use crate::arguments::{self, ArgumentsShape};
use crate::caller_tools::offer_allowed;
use crate::fit::Destination;
use crate::fit::{self, Fit};
use crate::left_out::LeftOut;
use crate::model::{wrong, Answer, Choice, Content, Member, Request, Role, Turn};
use crate::openai::answer::{inspect, UpstreamError};
use crate::openai::error::error_fields;
use crate::openai::request::{self, ChatRequest};
use crate::openai::usage::service_of;
use crate::tool_names::{self, ToolNames};
use crate::unique_ids::make_unique;
use crate::url_params::UrlParams;

use crate::{
    anthropic, ending, gemini, lenient, media, openai, passing, prompt_cache, responses, result_parts, stripped,
    substance, Pieces,
};

/// The dialects of the caller and the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// The caller's dialect.
    pub caller: Dialect,
    /// The provider's dialect.
    pub provider: Dialect,
}

/// A complete answer for the caller.
#[derive(Debug, PartialEq, Eq)]
pub struct TranslatedAnswer {
    pub body: Bytes,
    pub usage: Option<Usage>,
}

/// Why a provider's response body is not a valid answer.
#[derive(Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// Not a single JSON object.
    NotJson,
    /// An error with a success status.
    ProviderError(Box<UpstreamError>),
    /// Lacks a member that is required in this dialect.
    Without(&'static str),
    /// No content and no reason for that.
    Empty,
    /// Violates the dialect, or has content that the caller's dialect cannot express.
    Strange,
}

/// Reads the routing data of a request in this dialect.
pub fn read(form: Dialect, body: &[u8]) -> Result<ChatRequest, Error> {
    read_at(form, body, UrlParams::default())
}

/// Reads the routing data of a request whose URL holds part of it.
pub fn read_at(form: Dialect, body: &[u8], url_params: UrlParams<'_>) -> Result<ChatRequest, Error> {
    match form {
        Dialect::OpenaiResponses => request::read_responses(body),
        Dialect::Gemini => request::read_gemini(body, url_params),
        // Both dialects have `model`, `messages` and `stream` with the same names and types.
        Dialect::Openai => request::read(body),
        Dialect::Anthropic => {
            let mut request = request::read(body)?;
            request.pass_options();
            Ok(request)
        }
    }
}

/// Returns the request members that the answer repeats. Empty if the provider repeats them itself.
pub fn echo(pair: Pair, body: &[u8]) -> Bytes {
    if pair.caller == Dialect::OpenaiResponses && pair.provider != Dialect::OpenaiResponses {
        Bytes::from(responses::request_in::echo(body))
    } else {
        Bytes::new()
    }
}

/// A request as it is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SentRequest {
    pub pieces: Pieces,
    /// Members that were dropped because the destination does not accept them, by the caller's names.
    pub left_out: Vec<String>,
    /// Tools that were sent under other names.
    pub tool_names: ToolNames,
}

/// Writes the body for a model without known facts. An error names the member that cannot be expressed.
pub fn request(pair: Pair, body: &Bytes, read: &ChatRequest, model: &str) -> Result<Pieces, Error> {
    let to = Destination { model, fit: &Fit::default(), facts: &ModelFacts::default() };
    request_for(pair, body, read, to).map(|sent| sent.pieces)
}

/// Writes the request as a chat completion for internal use: nothing is truncated or renamed.
pub fn as_chat(caller: Dialect, body: &Bytes, read: &ChatRequest) -> Result<Pieces, Error> {
    const ANY: NameRule = NameRule { most: usize::MAX, letters: Letters::Any };
    let facts =
        ModelFacts { tool_names: Some(ANY), call_ids: Some(ANY), user_most: Some(usize::MAX), ..ModelFacts::default() };
    let to = Destination { model: &read.model, fit: &Fit::default(), facts: &facts };
    request_for(Pair { caller, provider: Dialect::Openai }, body, read, to).map(|sent| sent.pieces)
}

/// Replaces the model name in the caller's body, for a provider of the same dialect.
pub fn rewrite(form: Dialect, body: &Bytes, read: &ChatRequest, model: &str) -> Pieces {
    request::rewrite(body, read, &upstream_name(form, read, model))
}

/// The model's name as the dialect's body contains it.
fn upstream_name<'m>(form: Dialect, read: &ChatRequest, model: &'m str) -> Cow<'m, str> {
    if form == Dialect::Gemini && !read.model_span.is_empty() && !model.contains('/') {
        Cow::Owned(format!("models/{model}"))
    } else {
        Cow::Borrowed(model)
    }
}

/// Writes a request for its destination, without the members that an operator declared as refused.
pub fn request_for(pair: Pair, body: &Bytes, read: &ChatRequest, to: Destination<'_>) -> Result<SentRequest, Error> {
    let mut sent = passed_or_written(pair, body, read, to)?;
    sent.left_out.extend(stripped::strip(pair.provider, &mut sent.pieces, to)?);
    Ok(sent)
}

fn passed_or_written(pair: Pair, body: &Bytes, read: &ChatRequest, to: Destination<'_>) -> Result<SentRequest, Error> {
    if pair.caller == pair.provider && !to.fit.is_rewritten {
        let mut edits = fit::edits(pair.provider, read.is_completion, body, to);
        let mut left_out = LeftOut::default();
        if pair.provider == Dialect::Openai && !read.is_completion && !to.fit.is_templated {
            passing::edits(body, read, to.facts, &mut edits, &mut left_out);
        }
        if pair.provider == Dialect::Gemini {
            gemini::moved_calls::edits(body, to.facts, &mut edits);
        }
        let is_refused = to.facts.stripped().iter().any(|name| name == "stream_options");
        let requests_usage = to.facts.streaming_usage != Some(StreamingUsage::Always) && !is_refused;
        let model = upstream_name(pair.provider, read, to.model);
        let pieces = request::rewrite_with(body, read, &model, edits, requests_usage);
        return Ok(SentRequest { pieces, left_out: left_out.into_names(), ..SentRequest::default() });
    }
    written(pair, body, read, to, |neutral, to, size, left| match pair.provider {
        Dialect::Openai => openai::request_out::write(neutral, to, size, left),
        Dialect::OpenaiResponses => responses::request_out::write(neutral, to, size, left),
        Dialect::Anthropic => anthropic::request_out::write(neutral, to, size, left),
        Dialect::Gemini => gemini::request_out::write(neutral, to, size, left),
    })
}

/// Reads a request into the common model, adapts it to its destination, and writes it with `write`, which gets the
/// length of the caller's body.
fn written(
    pair: Pair,
    body: &Bytes,
    read: &ChatRequest,
    to: Destination<'_>,
    write: impl FnOnce(&Request<'_>, Destination<'_>, usize, &mut LeftOut) -> Result<Vec<u8>, Error>,
) -> Result<SentRequest, Error> {
    // An answer in the caller's own dialect is not parsed, so names could not be restored.
    let names = (pair.caller != pair.provider).then(|| name_rule(pair.provider, to.facts));
    written_with(names, pair, body, read, (to, write))
}

/// Like [`written`], for a protocol whose answers are rewritten: names are restored for every caller.
pub(crate) fn rewritten(
    pair: Pair,
    body: &Bytes,
    read: &ChatRequest,
    to: Destination<'_>,
    write: impl FnOnce(&Request<'_>, Destination<'_>, usize, &mut LeftOut) -> Result<Vec<u8>, Error>,
) -> Result<SentRequest, Error> {
    written_with(Some(name_rule(pair.provider, to.facts)), pair, body, read, (to, write))
}

fn written_with(
    names: Option<NameRule>,
    pair: Pair,
    body: &Bytes,
    read: &ChatRequest,
    (to, write): (
        Destination<'_>,
        impl FnOnce(&Request<'_>, Destination<'_>, usize, &mut LeftOut) -> Result<Vec<u8>, Error>,
    ),
) -> Result<SentRequest, Error> {
    let cap = to.fit.cap.map(|cap| cap.to_string());
    let key = to.fit.cache.key_for(pair.provider, to.facts, body.len());
    let mut neutral = read_request(pair.caller, body, read.stream)?;
    result_parts::find(&mut neutral);
    let mut left_out = LeftOut::new(to.fit.drops);
    fit::adapt(&mut neutral, body, cap.as_deref());
    if pair.provider == Dialect::Anthropic {
        make_unique(&mut neutral);
    }
    if pair.provider == Dialect::Anthropic && to.fit.unbinds_thinking(to.facts) {
        drop_thinking(neutral.turns.iter_mut());
    }
    make_acceptable(&mut neutral, pair.provider, to.facts, &mut left_out)?;
    let marks = to.fit.cache.marks_for(pair.provider, to.facts, body.len());
    prompt_cache::add(&mut neutral, pair.provider, to.facts, marks, key.as_deref());
    let tool_names = names.map_or_else(ToolNames::default, |rule| ToolNames::fit(&mut neutral, rule));
    let written = write(&neutral, to, body.len(), &mut left_out)?;
    Ok(SentRequest { pieces: Pieces::from_iter([Bytes::from(written)]), left_out: left_out.into_names(), tool_names })
}

/// Removes the reasoning of these turns.
fn drop_thinking<'t, 'a: 't>(turns: impl Iterator<Item = &'t mut Turn<'a>>) {
    for turn in turns {
        turn.parts.retain(|part| !matches!(part.content, Content::Thinking { .. } | Content::Redacted(_)));
    }
}

/// The rule for tool names.
fn name_rule(provider: Dialect, facts: &ModelFacts) -> NameRule {
    let usual = match provider {
        Dialect::Openai | Dialect::OpenaiResponses => tool_names::OPENAI,
        Dialect::Anthropic => tool_names::ANTHROPIC,
        Dialect::Gemini => tool_names::GEMINI,
    };
    facts.tool_names.unwrap_or(usual)
}

/// Applies the rules that are independent of the provider's dialect.
fn make_acceptable(
    request: &mut Request<'_>,
    provider: Dialect,
    facts: &ModelFacts,
    left_out: &mut LeftOut,
) -> Result<(), Error> {
    let before = request.place_system(provider);
    if provider == Dialect::Anthropic && facts.binds_thinking == Some(true) {
        drop_thinking(request.turns.iter_mut().take(before));
    }
    if provider != Dialect::Openai {
        begin_with_system(request);
    }
    let continues = request.turns.last().is_some_and(|turn| turn.role == Role::Assistant);
    if continues && facts.prefill == Some(Prefill::Refused) {
        let rule = "ends with a message of the assistant, which this model does not continue; end with one of the user";
        return Err(wrong(if request.form == Dialect::Gemini { "contents" } else { "messages" }, rule));
    }
    offer_allowed(request);
    leave_out_hosted_tools(request, left_out)?;
    leave_out_idle_choice(request, left_out)?;
    if provider != Dialect::Gemini {
        media::move_to_user(request, left_out);
    }
    fit_media(request, facts)?;
    accepted::limit_stops(request, facts, left_out);
    if facts.system == Some(false) {
        accepted::move_system(request);
    }
    let marks = match provider {
        Dialect::Anthropic => facts.cache_marks,
        Dialect::Openai => Some(facts.cache_marks.unwrap_or(0)),
        // These dialects have no marks.
        Dialect::OpenaiResponses | Dialect::Gemini => Some(0),
    };
    if let Some(most) = marks {
        limit_cache_marks(request, most, left_out);
    }
    Ok(())
}

/// Drops the tool choice of a request without tools, which several providers reject. A choice that forces a tool changes
/// the answer.
fn leave_out_idle_choice(request: &mut Request<'_>, left_out: &mut LeftOut) -> Result<(), Error> {
    if !request.tools.is_empty() {
        return Ok(());
    }
    match &request.choice {
        Some(Choice::Any | Choice::One(_)) => left_out.member(request, Member::ToolChoice)?,
        Some(_) => left_out.hint(request.name_of(Member::ToolChoice)),
        None => {}
    }
    request.choice = None;
    if request.parallel.take() == Some(false) {
        left_out.hint(request.name_of(Member::Parallel));
    }
    Ok(())
}

/// Drops tools that another provider runs. A choice that forces one of them, or any tool if none is left, changes the
/// answer.
fn leave_out_hosted_tools(request: &mut Request<'_>, left_out: &mut LeftOut) -> Result<(), Error> {
    if request.hosted_tools.is_empty() {
        return Ok(());
    }
    for name in &request.hosted_tools {
        left_out.hint(name);
    }
    let is_forced = match &request.choice {
        Some(Choice::One(name)) => !request.tools.iter().any(|tool| tool.name.decode() == name.decode()),
        Some(Choice::Any) => request.tools.is_empty(),
        _ => false,
    };
    if is_forced {
        left_out.refuse(request.name_of(Member::ToolChoice))?;
        request.choice = None;
    }
    if request.tools.is_empty() {
        request.choice = None;
        request.parallel = None;
    }
    Ok(())
}

/// Turns system messages into user messages if there are no others. In chat, a system message alone is answered. In
/// other dialects, instructions are separate, and a request without a turn is rejected.
fn begin_with_system(request: &mut Request<'_>) {
    if request.turns.is_empty() && !request.system.is_empty() {
        request.turns.push(Turn { role: Role::User, parts: std::mem::take(&mut request.system) });
    }
}

/// `stream` comes from the URL, for dialects whose body lacks it.
pub(crate) fn read_request(form: Dialect, body: &[u8], stream: bool) -> Result<Request<'_>, Error> {
    match form {
        Dialect::Openai => openai::request_in::read(body),
        Dialect::OpenaiResponses => responses::request_in::read(body),
        Dialect::Anthropic => anthropic::request_in::read(body),
        Dialect::Gemini => gemini::request_in::read(body, stream),
    }
}

/// Translates the provider's answer for the caller. In the provider's own dialect it passes unchanged.
pub fn answer(pair: Pair, body: &Bytes, context: &AnswerContext) -> Result<TranslatedAnswer, NoAnswer> {
    let outcome = lenient::read(body, |json| match read_answer(pair, json, context) {
        Err(unread @ (NoAnswer::NotJson | NoAnswer::Strange)) => Err(unread),
        read => Ok(read),
    });
    let (translated, usage) = outcome??;
    Ok(TranslatedAnswer { body: translated.unwrap_or_else(|| body.clone()), usage })
}

/// Returns the answer in the caller's dialect, if that differs from the provider's, and its usage.
fn read_answer(pair: Pair, body: &[u8], context: &AnswerContext) -> Result<(Option<Bytes>, Option<Usage>), NoAnswer> {
    let usage = inspect_answer(pair.provider, body)?;
    if let Some(fault) = ending::fault_in(pair.provider, body) {
        return Err(NoAnswer::ProviderError(Box::new(fault)));
    }
    if substance::is_empty(pair.provider, body) {
        return Err(NoAnswer::Empty);
    }
    if pair.caller == pair.provider {
        return Ok((None, usage));
    }
    let read = match pair.provider {
        Dialect::Openai => openai::complete::read(body),
        Dialect::OpenaiResponses => responses::complete::read(body),
        Dialect::Anthropic => anthropic::complete::read(body),
        Dialect::Gemini => gemini::complete::read(body),
    };
    let mut neutral = read.map_err(|_| NoAnswer::Strange)?;
    if neutral.id.is_empty() {
        neutral.id = context.id.clone().into();
    }
    context.tool_names.restore(&mut neutral);
    let written = write_answer(pair.caller, &mut neutral, context).map_err(|_| NoAnswer::Strange)?;
    Ok((Some(Bytes::from(written)), usage.map(|_| neutral.usage)))
}

fn write_answer(form: Dialect, answer: &mut Answer<'_>, context: &AnswerContext) -> Result<Vec<u8>, Error> {
    let shape = match form {
        Dialect::Openai | Dialect::OpenaiResponses => ArgumentsShape::Text,
        Dialect::Anthropic => ArgumentsShape::Json,
        Dialect::Gemini => ArgumentsShape::Object,
    };
    arguments::fit(answer, shape)?;
    match form {
        Dialect::Openai => media::link_others(answer, |content| !matches!(content, Content::Document { .. })),
        Dialect::Anthropic => media::link_others(answer, |content| matches!(content, Content::Image(_))),
        // Their writers handle each kind.
        Dialect::OpenaiResponses | Dialect::Gemini => {}
    }
    match form {
        Dialect::Openai => Ok(openai::complete::write(answer, context)),
        Dialect::OpenaiResponses => Ok(responses::complete::write(answer, context)),
        Dialect::Anthropic => anthropic::complete::write(answer),
        Dialect::Gemini => gemini::complete::write(answer),
    }
}

/// Checks that the body is an answer, and returns its usage.
fn inspect_answer(form: Dialect, body: &[u8]) -> Result<Option<Usage>, NoAnswer> {
    if form == Dialect::Openai {
        let seen = inspect(body).map_err(|_| NoAnswer::NotJson)?;
        return match seen.error {
            Some(error) => Err(NoAnswer::ProviderError(Box::new(error))),
            None if !seen.has_choices => Err(NoAnswer::Without("choices")),
            None => Ok(seen.usage),
        };
    }
    // The required member of an answer, and the member with its usage.
    let (member, used) = match form {
        Dialect::OpenaiResponses => ("output", "usage"),
        Dialect::Gemini => ("candidates", "usageMetadata"),
        _ => ("content", "usage"),
    };
    let wanted = ["error", "status", "promptFeedback", "service_tier", member, used];
    let scan = json::scan_object(body, &wanted, json::MAX_DEPTH).map_err(|_| NoAnswer::NotJson)?;
    if scan.get("error").is_some_and(|error| error.kind == Kind::Object) {
        return Err(NoAnswer::ProviderError(Box::new(error_fields(body).unwrap_or_default())));
    }
    // Only the responses dialect has a status, and these answers may lack an error.
    let status = scan.get("status").and_then(|status| json::as_str(body, status));
    if let Some(status @ ("failed" | "cancelled")) = status.as_deref().filter(|_| form == Dialect::OpenaiResponses) {
        return Err(NoAnswer::ProviderError(Box::new(ending::fault(status))));
    }
    // A blocked prompt has no candidates.
    let is_blocked = form == Dialect::Gemini && scan.get("promptFeedback").is_some();
    if !is_blocked && !scan.get(member).is_some_and(|content| content.kind == Kind::Array) {
        return Err(NoAnswer::Without(member));
    }
    let Some(object) = scan.get(used).and_then(|used| body.get(used.span())) else { return Ok(None) };
    Ok(match form {
        Dialect::OpenaiResponses => {
            let service = service_of(body, scan.get("service_tier"));
            responses::usage::read(object).map(|usage| Usage { service, ..usage })
        }
        Dialect::Gemini => gemini::usage::read(object),
        _ => {
            let mut counts = anthropic::usage::Counts::default();
            counts.read(object);
            counts.reported()
        }
    })
}

/// The error for an answer without content. It is not the connection's fault, and another connection may succeed.
pub(crate) fn empty() -> Error {
    let message = "The provider's answer has no text, no call of a tool and no reasoning.";
    Error::upstream(ErrorKind::EmptyAnswer, Retry::Elsewhere, message)
}

impl From<NoAnswer> for Error {
    fn from(reason: NoAnswer) -> Self {
        let message = match reason {
            NoAnswer::NotJson => "The provider's answer is not one JSON object.".into(),
            NoAnswer::ProviderError(_) => "The provider told an error under a status of success.".into(),
            NoAnswer::Without(member) => format!("The provider's answer has no `{member}`."),
            NoAnswer::Empty => return empty(),
            NoAnswer::Strange => "The provider's answer is not as its protocol says.".into(),
        };
        Error::upstream(ErrorKind::UpstreamInvalid, Retry::Elsewhere, message)
    }
}
