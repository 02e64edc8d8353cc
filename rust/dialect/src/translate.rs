//! Requests and whole answers between any two dialects. Where both sides speak the same, bytes pass untouched.

use bytes::Bytes;
use fairlead_core::error::{Error, Kind as ErrorKind, Retry};
use fairlead_core::json::{self, Kind};
use fairlead_core::usage::Usage;

use crate::model::{Answer, Request};
use crate::openai::answer::{inspect, UpstreamError};
use crate::openai::error::error_fields;
use crate::openai::request::{self, ChatRequest};
use crate::shapes::Surface;
use crate::{anthropic, openai, Pieces};

/// A form of request and answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// OpenAI chat completions.
    Chat,
    /// Anthropic messages.
    Messages,
}

impl Form {
    pub const ALL: &'static [Self] = &[Self::Chat, Self::Messages];

    /// The shape of errors that clients of this form read.
    pub fn surface(self) -> Surface {
        match self {
            Self::Chat => Surface::OpenAi,
            Self::Messages => Surface::Anthropic,
        }
    }
}

/// What a request becomes for its provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// What the caller speaks.
    pub caller: Form,
    /// What the provider speaks.
    pub provider: Form,
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
    Told(UpstreamError),
    /// Without the member that an answer of this form must have.
    Without(&'static str),
    /// Not as the form says, or with something that the caller's form has no word for.
    Strange,
}

/// What the relay must know of a request of this form, whoever it goes to.
pub fn read(form: Form, body: &[u8]) -> Result<ChatRequest, Error> {
    // Both forms have `model`, `messages` and `stream` in the same place and of the same kind.
    let mut request = request::read(body)?;
    if form == Form::Messages {
        request.pass_options();
    }
    Ok(request)
}

/// The body for the provider, which knows the model as `model`. An error names the member that cannot be expressed.
pub fn request(pair: Pair, body: &Bytes, read: &ChatRequest, model: &str) -> Result<Pieces, Error> {
    if pair.caller == pair.provider {
        return Ok(request::rewrite(body, read, model));
    }
    let neutral = read_request(pair.caller, body)?;
    let written = write_request(pair.provider, &neutral, model, body.len())?;
    Ok(Pieces::from_iter([Bytes::from(written)]))
}

fn read_request(form: Form, body: &[u8]) -> Result<Request<'_>, Error> {
    match form {
        Form::Chat => openai::request_in::read(body),
        Form::Messages => anthropic::request_in::read(body),
    }
}

fn write_request(form: Form, request: &Request<'_>, model: &str, size_hint: usize) -> Result<Vec<u8>, Error> {
    match form {
        Form::Chat => openai::request_out::write(request, model, size_hint),
        Form::Messages => anthropic::request_out::write(request, model, size_hint),
    }
}

/// The provider's answer, as the caller reads it. `created_s` is the time, for a form that tells one.
pub fn answer(pair: Pair, body: &Bytes, created_s: u64) -> Result<Whole, NoAnswer> {
    let usage = look(pair.provider, body)?;
    if pair.caller == pair.provider {
        return Ok(Whole { body: body.clone(), usage });
    }
    let read = match pair.provider {
        Form::Chat => openai::whole::read(body),
        Form::Messages => anthropic::whole::read(body),
    };
    let neutral = read.map_err(|_| NoAnswer::Strange)?;
    let written = write_answer(pair.caller, &neutral, created_s).map_err(|_| NoAnswer::Strange)?;
    Ok(Whole { body: Bytes::from(written), usage: usage.map(|_| neutral.usage) })
}

fn write_answer(form: Form, answer: &Answer<'_>, created_s: u64) -> Result<Vec<u8>, Error> {
    match form {
        Form::Chat => Ok(openai::whole::write(answer, created_s)),
        Form::Messages => anthropic::whole::write(answer),
    }
}

/// Whether the body is an answer at all, and what it used.
fn look(form: Form, body: &[u8]) -> Result<Option<Usage>, NoAnswer> {
    if form == Form::Chat {
        let seen = inspect(body).map_err(|_| NoAnswer::NotJson)?;
        return match seen.error {
            Some(told) => Err(NoAnswer::Told(told)),
            None if !seen.has_choices => Err(NoAnswer::Without("choices")),
            None => Ok(seen.usage),
        };
    }
    let wanted = ["usage", "error", "content"];
    let scan = json::scan_object(body, &wanted, json::MAX_DEPTH).map_err(|_| NoAnswer::NotJson)?;
    if scan.get("error").is_some_and(|error| error.kind == Kind::Object) {
        return Err(NoAnswer::Told(error_fields(body).unwrap_or_default()));
    }
    if !scan.get("content").is_some_and(|content| content.kind == Kind::Array) {
        return Err(NoAnswer::Without("content"));
    }
    let mut counts = anthropic::usage::Counts::default();
    if let Some(object) = scan.get("usage").and_then(|used| body.get(used.span())) {
        counts.read(object);
    }
    Ok(counts.told())
}

impl From<NoAnswer> for Error {
    fn from(reason: NoAnswer) -> Self {
        let message = match reason {
            NoAnswer::NotJson => "The provider's answer is not one JSON object.".into(),
            NoAnswer::Told(_) => "The provider told an error under a status of success.".into(),
            NoAnswer::Without(member) => format!("The provider's answer has no `{member}`."),
            NoAnswer::Strange => "The provider's answer is not as its protocol says.".into(),
        };
        Error::upstream(ErrorKind::UpstreamInvalid, Retry::Elsewhere, message)
    }
}
