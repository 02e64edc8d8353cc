//! Requests and whole answers between any two dialects. Where both sides speak the same, bytes pass untouched.

use bytes::Bytes;
use fairlead_core::json::{self, Kind};
use fairlead_core::{Dialect, Error, ErrorKind, Retry, Usage};
use std::borrow::Cow;

use crate::answer_context::AnswerContext;
use crate::arguments::{self, ArgumentsShape};
use crate::fit::{self, Fit};
use crate::model::{Answer, Request, Role, Turn};
use crate::openai::answer::{inspect, UpstreamError};
use crate::openai::error::error_fields;
use crate::openai::request::{self, ChatRequest};
use crate::openai::usage::service_of;
use crate::place::Place;

use crate::{anthropic, ending, gemini, lenient, openai, responses, substance, Pieces};

/// The dialects of a call: the caller's and the provider's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// The caller's dialect.
    pub caller: Dialect,
    /// The provider's dialect.
    pub provider: Dialect,
}

/// A whole answer, ready for the caller.
#[derive(Debug, PartialEq, Eq)]
pub struct Whole {
    pub body: Bytes,
    pub usage: Option<Usage>,
}

/// Why a provider's answer is none.
#[derive(Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// Not one JSON object.
    NotJson,
    /// An error under a status of success.
    ProviderError(Box<UpstreamError>),
    /// Without the member that an answer of this form must have.
    Without(&'static str),
    /// Nothing in it, and no reason for that.
    Empty,
    /// Not as the form says, or with something that the caller's form has no word for.
    Strange,
}

/// Reads of a request of this form what the relay must know, whoever it goes to.
pub fn read(form: Dialect, body: &[u8]) -> Result<ChatRequest, Error> {
    read_at(form, body, Place::default())
}

/// Reads a request of a dialect whose address says what its body does not.
pub fn read_at(form: Dialect, body: &[u8], place: Place<'_>) -> Result<ChatRequest, Error> {
    match form {
        Dialect::OpenaiResponses => request::read_responses(body),
        Dialect::Gemini => request::read_gemini(body, place),
        // Both forms have `model`, `messages` and `stream` in the same place and of the same kind.
        Dialect::Openai => request::read(body),
        Dialect::Anthropic => {
            let mut request = request::read(body)?;
            request.pass_options();
            Ok(request)
        }
    }
}

/// What an answer of this form says again of its request; nothing where the provider says it.
pub fn echo(pair: Pair, body: &[u8]) -> Bytes {
    if pair.caller == Dialect::OpenaiResponses && pair.provider != Dialect::OpenaiResponses {
        Bytes::from(responses::request_in::echo(body))
    } else {
        Bytes::new()
    }
}

/// The body for the provider, which knows the model as `model`. An error names the member that cannot be expressed.
pub fn request(pair: Pair, body: &Bytes, read: &ChatRequest, model: &str) -> Result<Pieces, Error> {
    request_for(pair, body, read, model, &Fit::default())
}

/// The caller's own body for a provider of the same form, around the name by which that one knows the model.
pub fn rewrite(form: Dialect, body: &Bytes, read: &ChatRequest, model: &str) -> Pieces {
    request::rewrite(body, read, &upstream_name(form, read, model))
}

/// A model's name as a body of the form has it.
fn upstream_name<'m>(form: Dialect, read: &ChatRequest, model: &'m str) -> Cow<'m, str> {
    if form == Dialect::Gemini && !read.model_span.is_empty() && !model.contains('/') {
        Cow::Owned(format!("models/{model}"))
    } else {
        Cow::Borrowed(model)
    }
}

/// Writes a request for a model and a server that it must fit.
pub fn request_for(pair: Pair, body: &Bytes, read: &ChatRequest, model: &str, fit: &Fit) -> Result<Pieces, Error> {
    if pair.caller == pair.provider {
        let edits = fit::edits(pair.provider, read.is_completion, body, fit);
        return Ok(request::rewrite_with(body, read, &upstream_name(pair.provider, read, model), edits));
    }
    let cap = fit.cap.map(|cap| cap.to_string());
    let mut neutral = read_request(pair.caller, body, read.stream)?;
    fit::adapt(&mut neutral, body, cap.as_deref());
    if pair.provider != Dialect::Openai {
        begin_with_system(&mut neutral);
    }
    let size = body.len();
    let written = match pair.provider {
        Dialect::Openai => openai::request_out::write_for(&neutral, model, size, fit.is_templated),
        Dialect::OpenaiResponses => responses::request_out::write(&neutral, model, size),
        Dialect::Anthropic => anthropic::request_out::write(&neutral, model, fit.most, size),
        Dialect::Gemini => gemini::request_out::write(&neutral, model, size),
    }?;
    Ok(Pieces::from_iter([Bytes::from(written)]))
}

/// Makes system messages the user's where nobody else says anything. In chat they are messages like any other and are answered;
/// elsewhere they stand apart, and a request without a turn is refused.
fn begin_with_system(request: &mut Request<'_>) {
    if request.turns.is_empty() && !request.system.is_empty() {
        request.turns.push(Turn { role: Role::User, parts: std::mem::take(&mut request.system) });
    }
}

/// `stream` is what the address says, for a form whose body does not.
pub(crate) fn read_request(form: Dialect, body: &[u8], stream: bool) -> Result<Request<'_>, Error> {
    match form {
        Dialect::Openai => openai::request_in::read(body),
        Dialect::OpenaiResponses => responses::request_in::read(body),
        Dialect::Anthropic => anthropic::request_in::read(body),
        Dialect::Gemini => gemini::request_in::read(body, stream),
    }
}

/// The provider's answer, as the caller reads it. To a caller of the provider's own dialect it goes as it came.
pub fn answer(pair: Pair, body: &Bytes, context: &AnswerContext) -> Result<Whole, NoAnswer> {
    let outcome = lenient::read(body, |json| match read_answer(pair, json, context) {
        Err(unread @ (NoAnswer::NotJson | NoAnswer::Strange)) => Err(unread),
        read => Ok(read),
    });
    let (translated, usage) = outcome??;
    Ok(Whole { body: translated.unwrap_or_else(|| body.clone()), usage })
}

/// The answer in the caller's words, where these are others than the provider's, and what it used.
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
        Dialect::Openai => openai::whole::read(body),
        Dialect::OpenaiResponses => responses::whole::read(body),
        Dialect::Anthropic => anthropic::whole::read(body),
        Dialect::Gemini => gemini::whole::read(body),
    };
    let mut neutral = read.map_err(|_| NoAnswer::Strange)?;
    if neutral.id.is_empty() {
        neutral.id = context.id.clone().into();
    }
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
        Dialect::Openai => Ok(openai::whole::write(answer, context.created_s)),
        Dialect::OpenaiResponses => Ok(responses::whole::write(answer, context)),
        Dialect::Anthropic => anthropic::whole::write(answer),
        Dialect::Gemini => gemini::whole::write(answer),
    }
}

/// Whether the body is an answer at all, and what it used.
fn inspect_answer(form: Dialect, body: &[u8]) -> Result<Option<Usage>, NoAnswer> {
    if form == Dialect::Openai {
        let seen = inspect(body).map_err(|_| NoAnswer::NotJson)?;
        return match seen.error {
            Some(error) => Err(NoAnswer::ProviderError(Box::new(error))),
            None if !seen.has_choices => Err(NoAnswer::Without("choices")),
            None => Ok(seen.usage),
        };
    }
    // What an answer must have, and where it tells its usage.
    let (member, used) = match form {
        Dialect::OpenaiResponses => ("output", "usage"),
        Dialect::Gemini => ("candidates", "usageMetadata"),
        _ => ("content", "usage"),
    };
    let wanted = ["error", "promptFeedback", "service_tier", member, used];
    let scan = json::scan_object(body, &wanted, json::MAX_DEPTH).map_err(|_| NoAnswer::NotJson)?;
    if scan.get("error").is_some_and(|error| error.kind == Kind::Object) {
        return Err(NoAnswer::ProviderError(Box::new(error_fields(body).unwrap_or_default())));
    }
    // A prompt that is blocked has no candidates.
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

/// The error for an answer that says nothing. It was not the connection's fault, and another may say something.
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
