//! A request in the words of each provider that may serve it, made before the first attempt: what cannot be said in a
//! provider's dialect is the caller's to know, not a failure of an attempt.

use crate::choose::Choice;
use crate::clock;
use crate::surfaces;
use crate::target::Target;
use bytes::Bytes;
use fairlead_core::error::Error;
use fairlead_core::routes::{Route, Surface};
use fairlead_core::snapshot::Dialect;
use fairlead_dialect::openai::named;
use fairlead_dialect::openai::request::ChatRequest;
use fairlead_dialect::stream::Follow;
use fairlead_dialect::translate::{self, Form, Pair};
use fairlead_dialect::Pieces;
use http::Uri;
use std::borrow::Cow;

/// See the module's page.
#[derive(Debug)]
pub struct Wording {
    pub caller: Form,
    asks_usage: bool,
    bodies: Vec<Said>,
    nothing: Pieces,
    /// Where the request goes, when not to the chat endpoint.
    path: Option<&'static str>,
}

/// The request for providers of one dialect, with one model's name.
#[derive(Debug)]
struct Said {
    form: Form,
    upstream_model: String,
    pieces: Pieces,
}

/// What a route's callers speak.
pub fn caller_of(route: &Route) -> Form {
    if route.surface == Surface::Anthropic {
        Form::Messages
    } else {
        Form::Chat
    }
}

/// What a connection's provider speaks; `None` for a dialect that is not translated.
pub fn form_of(dialect: Dialect) -> Option<Form> {
    match dialect {
        Dialect::Openai => Some(Form::Chat),
        Dialect::Anthropic => Some(Form::Messages),
        Dialect::Gemini => None,
    }
}

/// What the relay must know of a request of this route.
pub fn read(route: &Route, body: &Bytes) -> Result<ChatRequest, Error> {
    match surfaces::needs(route) {
        Some(needs) => named::read(body, needs).map(|(parsed, _)| parsed),
        None => translate::read(caller_of(route), body),
    }
}

impl Wording {
    /// Targets in whose dialect the request cannot be said leave the choice; an error when none is left.
    pub fn prepare(caller: Form, body: &Bytes, parsed: &ChatRequest, choice: &mut Choice) -> Result<Self, Error> {
        let mut wording =
            Self { caller, asks_usage: parsed.asks_usage, bodies: Vec::new(), nothing: Pieces::new(), path: None };
        let mut fault = None;
        let mut places = Vec::with_capacity(choice.targets.len());
        for (at, target) in choice.targets.iter().enumerate() {
            let Some(form) = form_of(target.connection.dialect) else { continue };
            let upstream_model = choice.upstream_model(at);
            if wording.find(form, upstream_model).is_none() {
                match translate::request(Pair { caller, provider: form }, body, parsed, upstream_model) {
                    Ok(pieces) => {
                        wording.bodies.push(Said { form, upstream_model: upstream_model.to_owned(), pieces });
                    }
                    Err(error) => {
                        fault = Some(error);
                        continue;
                    }
                }
            }
            places.push(at);
        }
        if places.is_empty() {
            if let Some(fault) = fault {
                return Err(fault);
            }
        }
        if places.len() < choice.targets.len() {
            *choice = choice.narrowed(&places);
        }
        Ok(wording)
    }

    /// The same, for the endpoint that the route's calls go to.
    #[must_use]
    pub fn towards(mut self, route: &Route) -> Self {
        self.path = surfaces::completions_path(route);
        self
    }

    /// Path and query of the endpoint.
    pub fn uri<'a>(&self, target: &'a Target) -> Result<Cow<'a, Uri>, Error> {
        match self.path {
            None => Ok(Cow::Borrowed(&target.chat_uri)),
            Some(path) => target.uri_of(path).map(Cow::Owned),
        }
    }

    fn find(&self, form: Form, upstream_model: &str) -> Option<&Pieces> {
        self.bodies
            .iter()
            .find(|said| said.form == form && said.upstream_model == upstream_model)
            .map(|said| &said.pieces)
    }

    fn pair(&self, target: &Target) -> Pair {
        Pair { caller: self.caller, provider: form_of(target.connection.dialect).unwrap_or(self.caller) }
    }

    /// The body for this connection, which knows the model by this name.
    pub fn body(&self, target: &Target, upstream_model: &str) -> &Pieces {
        // Every target that is left in the choice has a body.
        self.find(self.pair(target).provider, upstream_model).unwrap_or(&self.nothing)
    }

    /// A plain answer of this connection, for the caller.
    pub fn answer(&self, target: &Target, body: &Bytes) -> Result<translate::Whole, Error> {
        translate::answer(self.pair(target), body, clock::unix_ms() / 1_000).map_err(Error::from)
    }

    /// Follows a stream of this connection.
    pub fn follow(&self, target: &Target) -> Follow {
        Follow::new(self.pair(target), self.asks_usage, clock::unix_ms() / 1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choose;
    use crate::live::Live;
    use fairlead_core::secret::Sealer;
    use fairlead_core::snapshot::Snapshot;

    /// One prefix whose connections speak two dialects.
    fn choice() -> Choice {
        let connection = |dialect: &str| {
            format!(
                r#"{{"id":"{dialect}","provider":"n","prefixes":["n"],"dialect":"{dialect}","base_url":"http://{dialect}","auth":"none"}}"#
            )
        };
        let connections = [connection("openai"), connection("anthropic"), connection("gemini")].join(",");
        let json = format!(r#"{{"version":1,"connections":[{connections}]}}"#);
        let snapshot = Snapshot::parse(json.as_bytes()).expect("a snapshot");
        let live = Live::build(snapshot, &Live::default(), &Sealer::new(&[0; 32]).expect("a key"), "0");
        choose::choose(&live, "n/m", None, choose::Wish::default()).expect("a choice")
    }

    fn prepare(body: &'static str, choice: &mut Choice) -> Result<Wording, Error> {
        let body = Bytes::from_static(body.as_bytes());
        let parsed = translate::read(Form::Chat, &body).expect("a request");
        Wording::prepare(Form::Chat, &body, &parsed, choice)
    }

    #[test]
    fn each_connection_gets_the_body_of_its_dialect() {
        let mut choice = choice();
        let body = r#"{"model":"n/m","messages":[{"role":"user","content":"hi"}]}"#;
        let wording = prepare(body, &mut choice).expect("can be said");
        assert_eq!(choice.targets.len(), 2);
        for target in &choice.targets {
            let sent = String::from_utf8(wording.body(target, "m").concat()).expect("text");
            assert_eq!(sent.contains("max_tokens"), target.connection.dialect == Dialect::Anthropic, "{sent}");
            assert!(sent.contains(r#""model":"m""#), "{sent}");
        }
    }

    #[test]
    fn a_connection_that_cannot_be_told_leaves_the_choice() {
        let mut choice = choice();
        let body = r#"{"model":"n/m","n":2,"messages":[{"role":"user","content":"hi"}]}"#;
        prepare(body, &mut choice).expect("one can");
        assert_eq!(choice.targets.len(), 1);
        choice.targets.retain(|target| target.connection.dialect == Dialect::Anthropic);
        assert!(choice.targets.is_empty());

        let mut alone = self::choice();
        alone.targets.retain(|target| target.connection.dialect == Dialect::Anthropic);
        let fault = prepare(body, &mut alone).map(drop).expect_err("none can");
        assert_eq!(fault.param.as_deref(), Some("n"));
    }
}
