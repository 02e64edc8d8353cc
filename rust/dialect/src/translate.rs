//! Requests and whole answers between any two dialects. Where both sides speak the same, bytes pass untouched.

use bytes::Bytes;
use fairlead_core::error::{Error, Kind as ErrorKind, Retry};
use fairlead_core::json::{self, Kind};
use fairlead_core::usage::Usage;
use std::borrow::Cow;

use crate::fit::{self, Fit};
use crate::model::{Answer, Request};
use crate::openai::answer::{inspect, UpstreamError};
use crate::openai::error::error_fields;
use crate::openai::request::{self, ChatRequest};
use crate::shapes::Surface;
use crate::{anthropic, gemini, openai, responses, Pieces};

/// A form of request and answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Form {
    /// OpenAI chat completions.
    #[default]
    Chat,
    /// OpenAI responses.
    Responses,
    /// Anthropic messages.
    Messages,
    /// Google's generateContent.
    Gemini,
}

impl Form {
    pub const ALL: &'static [Self] = &[Self::Chat, Self::Responses, Self::Messages, Self::Gemini];

    /// The shape of errors that clients of this form read.
    pub fn surface(self) -> Surface {
        match self {
            Self::Chat | Self::Responses => Surface::OpenAi,
            Self::Messages => Surface::Anthropic,
            Self::Gemini => Surface::Gemini,
        }
    }
}

/// What the address of a request says, for a form whose body does not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place<'a> {
    pub model: &'a str,
    pub stream: bool,
    /// The stream is read as one JSON list.
    pub is_list: bool,
}

/// What an answer tells that its provider does not know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// The time, for a form that tells one.
    pub created_s: u64,
    /// The caller asked for the usage chunk of the chat form.
    pub asks_usage: bool,
    /// A Gemini caller reads its stream as one JSON list.
    pub is_list: bool,
    /// The response is handed out beside the stream, for whoever keeps it.
    pub keeps: bool,
    /// Letters and digits that nobody can guess: the id of a response, and of an answer without one.
    pub id: String,
    /// What a response says again of its request, from [`echo`].
    pub echo: Bytes,
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
    read_at(form, body, Place::default())
}

/// The same for a form whose address says what its body does not.
pub fn read_at(form: Form, body: &[u8], place: Place<'_>) -> Result<ChatRequest, Error> {
    match form {
        Form::Responses => request::read_responses(body),
        Form::Gemini => request::read_gemini(body, place),
        // Both forms have `model`, `messages` and `stream` in the same place and of the same kind.
        Form::Chat => request::read(body),
        Form::Messages => {
            let mut request = request::read(body)?;
            request.pass_options();
            Ok(request)
        }
    }
}

/// What an answer of this form says again of its request; nothing where the provider says it.
pub fn echo(pair: Pair, body: &[u8]) -> Bytes {
    if pair.caller == Form::Responses && pair.provider != Form::Responses {
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
pub fn rewrite(form: Form, body: &Bytes, read: &ChatRequest, model: &str) -> Pieces {
    request::rewrite(body, read, &told_name(form, read, model))
}

/// A model's name as a body of the form has it.
fn told_name<'m>(form: Form, read: &ChatRequest, model: &'m str) -> Cow<'m, str> {
    if form == Form::Gemini && !read.model_span.is_empty() && !model.contains('/') {
        Cow::Owned(format!("models/{model}"))
    } else {
        Cow::Borrowed(model)
    }
}

/// The same, for a model and a server that it must fit.
pub fn request_for(pair: Pair, body: &Bytes, read: &ChatRequest, model: &str, fit: &Fit) -> Result<Pieces, Error> {
    if pair.caller == pair.provider {
        let edits = fit::edits(pair.provider, read.is_completion, body, fit);
        return Ok(request::rewrite_with(body, read, &told_name(pair.provider, read, model), edits));
    }
    let cap = fit.cap.map(|cap| cap.to_string());
    let mut neutral = read_request(pair.caller, body, read.stream)?;
    fit::adapt(&mut neutral, body, cap.as_deref());
    let size = body.len();
    let written = match pair.provider {
        Form::Chat => openai::request_out::write_for(&neutral, model, size, fit.is_templated),
        Form::Responses => responses::request_out::write(&neutral, model, size),
        Form::Messages => anthropic::request_out::write(&neutral, model, fit.most, size),
        Form::Gemini => gemini::request_out::write(&neutral, model, size),
    }?;
    Ok(Pieces::from_iter([Bytes::from(written)]))
}

/// `stream` is what the address says, for a form whose body does not.
pub(crate) fn read_request(form: Form, body: &[u8], stream: bool) -> Result<Request<'_>, Error> {
    match form {
        Form::Chat => openai::request_in::read(body),
        Form::Responses => responses::request_in::read(body),
        Form::Messages => anthropic::request_in::read(body),
        Form::Gemini => gemini::request_in::read(body, stream),
    }
}

/// The provider's answer, as the caller reads it.
pub fn answer(pair: Pair, body: &Bytes, told: &Told) -> Result<Whole, NoAnswer> {
    let usage = look(pair.provider, body)?;
    if pair.caller == pair.provider {
        return Ok(Whole { body: body.clone(), usage });
    }
    let read = match pair.provider {
        Form::Chat => openai::whole::read(body),
        Form::Responses => responses::whole::read(body),
        Form::Messages => anthropic::whole::read(body),
        Form::Gemini => gemini::whole::read(body),
    };
    let mut neutral = read.map_err(|_| NoAnswer::Strange)?;
    if neutral.id.is_empty() {
        neutral.id = told.id.clone().into();
    }
    let written = write_answer(pair.caller, &neutral, told).map_err(|_| NoAnswer::Strange)?;
    Ok(Whole { body: Bytes::from(written), usage: usage.map(|_| neutral.usage) })
}

fn write_answer(form: Form, answer: &Answer<'_>, told: &Told) -> Result<Vec<u8>, Error> {
    match form {
        Form::Chat => Ok(openai::whole::write(answer, told.created_s)),
        Form::Responses => Ok(responses::whole::write(answer, told)),
        Form::Messages => anthropic::whole::write(answer),
        Form::Gemini => gemini::whole::write(answer),
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
    // What an answer must have, and where it tells its usage.
    let (member, used) = match form {
        Form::Responses => ("output", "usage"),
        Form::Gemini => ("candidates", "usageMetadata"),
        _ => ("content", "usage"),
    };
    let wanted = ["error", "promptFeedback", member, used];
    let scan = json::scan_object(body, &wanted, json::MAX_DEPTH).map_err(|_| NoAnswer::NotJson)?;
    if scan.get("error").is_some_and(|error| error.kind == Kind::Object) {
        return Err(NoAnswer::Told(error_fields(body).unwrap_or_default()));
    }
    // A prompt that is blocked has no candidates.
    let is_blocked = form == Form::Gemini && scan.get("promptFeedback").is_some();
    if !is_blocked && !scan.get(member).is_some_and(|content| content.kind == Kind::Array) {
        return Err(NoAnswer::Without(member));
    }
    let Some(object) = scan.get(used).and_then(|used| body.get(used.span())) else { return Ok(None) };
    Ok(match form {
        Form::Responses => responses::usage::read(object),
        Form::Gemini => gemini::usage::read(object),
        _ => {
            let mut counts = anthropic::usage::Counts::default();
            counts.read(object);
            counts.told()
        }
    })
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
