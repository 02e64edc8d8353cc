//! A request in the words of each provider that may serve it, made before the first attempt: what cannot be said in a
//! provider's dialect is the caller's to know, not a failure of an attempt.

use crate::choose::Choice;
use crate::clock;
use crate::target::Target;
use bytes::Bytes;
use fairlead_core::error::Error;
use fairlead_core::routes::{Route, Surface};
use fairlead_core::snapshot::Dialect;
use fairlead_dialect::openai::request::ChatRequest;
use fairlead_dialect::stream::Follow;
use fairlead_dialect::translate::{self, Form, Pair};
use fairlead_dialect::Pieces;

/// See the module's page.
#[derive(Debug)]
pub struct Wording {
    pub caller: Form,
    asks_usage: bool,
    bodies: Vec<(Form, Pieces)>,
    nothing: Pieces,
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

impl Wording {
    /// Connections in whose dialect the request cannot be said leave the choice; an error when none is left.
    pub fn prepare(caller: Form, body: &Bytes, parsed: &ChatRequest, choice: &mut Choice) -> Result<Self, Error> {
        let mut bodies: Vec<(Form, Pieces)> = Vec::new();
        let mut fault = None;
        for form in choice.targets.iter().filter_map(|target| form_of(target.connection.dialect)) {
            if bodies.iter().any(|(known, _)| *known == form) {
                continue;
            }
            let pair = Pair { caller, provider: form };
            match translate::request(pair, body, parsed, &choice.upstream_model) {
                Ok(pieces) => bodies.push((form, pieces)),
                Err(error) => fault = Some(error),
            }
        }
        let is_said = |target: &Target| {
            form_of(target.connection.dialect).is_some_and(|form| bodies.iter().any(|(known, _)| *known == form))
        };
        choice.targets.retain(|target| is_said(target));
        match fault.filter(|_| choice.targets.is_empty()) {
            Some(fault) => Err(fault),
            None => Ok(Self { caller, asks_usage: parsed.asks_usage, bodies, nothing: Pieces::new() }),
        }
    }

    fn pair(&self, target: &Target) -> Pair {
        Pair { caller: self.caller, provider: form_of(target.connection.dialect).unwrap_or(self.caller) }
    }

    /// The body for this connection.
    pub fn body(&self, target: &Target) -> &Pieces {
        let form = self.pair(target).provider;
        // Every connection that is left in the choice has a body.
        self.bodies.iter().find(|(known, _)| *known == form).map_or(&self.nothing, |(_, pieces)| pieces)
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
        choose::choose(&live, "n/m").expect("a choice")
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
            let sent = String::from_utf8(wording.body(target).concat()).expect("text");
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
