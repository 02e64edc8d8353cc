//! A request translated for each provider that may serve it. Translation happens before the first attempt: a request
//! that a dialect cannot express is the caller's error, not a failed attempt.

use crate::active_config::ActiveConfig;
use crate::call::choose::endpoints;
use crate::call::context::Call;
use crate::call::conversation::reasoning;
use crate::call::relay::stream_judge::{rejected, rules_for_streams, StreamJudge};
use crate::clock;
use crate::gate::defaults;
use crate::observe::figures::LeftOutAt;
use crate::observe::settle::Settlement;
use crate::route::choice::Choice;
use crate::upstream::attempt::provider_error;
use crate::upstream::target::Target;
use bytes::Bytes;
use fairlead_core::routes::Surface;
use fairlead_core::strategy::Rules;
use fairlead_core::{
    random_name, Connection, Dialect, Error, ErrorKind, Inexpressible, ModelFacts, Price, PromptCacheMode, Protocol,
    ServiceMode, Snapshot,
};
use fairlead_dialect::openai::reasoning::attach;
use fairlead_dialect::openai::request::ChatRequest;
use fairlead_dialect::protocol::{self, EventReader, Sending};
use fairlead_dialect::stream::{self, Follow};
use fairlead_dialect::translate::{self, Pair};
use fairlead_dialect::AnswerContext;
use fairlead_dialect::{answer_text, AnswerText, ApiNeed, CacheHints, Destination, Fit, Pieces, SentRequest};
use http::Uri;
use serde_json::{Map, Value};
use std::sync::Arc;

/// One request in the dialect of each provider that may serve it, and the translation of responses to the caller's
/// dialect.
#[derive(Debug)]
pub struct Translation {
    pub caller: Dialect,
    context: AnswerContext,
    /// The caller's own request, for dialects whose responses echo it.
    own_body: Bytes,
    bodies: Vec<TranslatedBody>,
    /// Bodies with the provider's earlier reasoning, for that provider only.
    put_back: Vec<BodyWithReasoning>,
    nothing: Pieces,
    /// The path of the request, if it is not the chat endpoint.
    path: Option<&'static str>,
    /// The rules for responses, from the combo.
    rules: Option<Arc<Rules>>,
    bounds: Bounds,
}

/// The bounds of a call's request that do not depend on its target.
#[derive(Debug, Clone, Copy, Default)]
struct Bounds {
    /// The maximum output under the caller's limits, in tokens.
    output_cap: Option<u64>,
    /// The caller's or key's choice for members that a provider does not accept.
    inexpressible: Option<Inexpressible>,
    /// The gateway wrote the body, for a caller of Ollama's dialect.
    is_rewritten: bool,
    /// The gateway changed the conversation for this turn alone.
    is_edited: bool,
    /// Identifies the caller's conversation.
    conversation: Option<u64>,
}

/// The listed data of a target's model, and the caller's betas.
#[derive(Clone, Copy)]
struct Listed<'a> {
    /// The maximum output in tokens.
    most: Option<u64>,
    price: Option<&'a Price>,
    /// The caller's `anthropic-beta` header, for providers that read it in the body.
    betas: Option<&'a str>,
}

/// A body with its provider's earlier reasoning.
#[derive(Debug)]
struct BodyWithReasoning {
    provider: String,
    /// The name of the model in the body.
    called_name: String,
    pieces: Pieces,
}

/// The request for providers of one dialect, with one name of the model.
#[derive(Debug)]
struct TranslatedBody {
    form: Dialect,
    protocol: Protocol,
    upstream_model: String,
    /// The name of the model in the body.
    called_name: String,
    fit: Fit,
    facts: Arc<ModelFacts>,
    sent: SentRequest,
}

/// Converts a request of any dialect to the members of a chat completion; `None` if it is not a conversation.
pub fn chat_members(caller: Dialect, body: &Bytes, request: &ChatRequest) -> Result<Option<Map<String, Value>>, Error> {
    let chat = if caller == Dialect::Openai {
        body.clone()
    } else {
        translate::as_chat(caller, body, request)?.concat().into()
    };
    match serde_json::from_slice(&chat) {
        Ok(Value::Object(members)) => Ok(Some(members)),
        _ => Ok(None),
    }
}

impl Bounds {
    fn of(choice: &Choice) -> Self {
        let Choice { output_cap, inexpressible, is_rewritten, is_edited, .. } = *choice;
        let conversation = choice.prompt.as_ref().and_then(|prompt| prompt.conversation);
        Self { output_cap, inexpressible, is_rewritten, is_edited, conversation }
    }

    /// The bounds of a model's requests to this connection, without those that the list gives the model.
    fn at(self, target: &Target, upstream_model: &str) -> Fit {
        let connection = &target.connection;
        let own = connection.output_cap(upstream_model);
        Fit {
            most: None,
            cap: own.into_iter().chain(self.output_cap).min(),
            is_templated: connection.is_templated(upstream_model),
            is_rewritten: self.is_rewritten,
            is_edited: self.is_edited,
            replays_reasoning: connection.replays_reasoning,
            drops: self.inexpressible.or(connection.inexpressible) == Some(Inexpressible::Drop),
            cache: match connection.prompt_cache {
                PromptCacheMode::Auto => CacheHints { key: self.conversation, pays: true },
                PromptCacheMode::Off => CacheHints::default(),
            },
        }
    }
}

impl Translation {
    /// Translates the request. Targets whose dialect cannot express it are removed from the choice; an error if none is
    /// left.
    pub fn prepare(
        caller: Dialect,
        body: &Bytes,
        parsed: &ChatRequest,
        choice: &mut Choice,
        snapshot: &Snapshot,
    ) -> Result<Self, Error> {
        let id = random_name().map_err(|_| Error::gateway(ErrorKind::Internal, "The system has no random numbers."))?;
        let context = AnswerContext {
            requests_usage: parsed.requests_usage,
            is_list: parsed.reads_list,
            id,
            keeps: parsed.stores || parsed.conversation.is_some(),
            ..AnswerContext::default()
        };
        let own_body = if caller == Dialect::OpenaiResponses { body.clone() } else { Bytes::new() };
        let mut wording = Self {
            caller,
            context,
            own_body,
            bodies: Vec::new(),
            put_back: Vec::new(),
            nothing: Pieces::new(),
            path: None,
            rules: None,
            bounds: Bounds::of(choice),
        };
        wording.rules = choice.combo.as_ref().map(|combo| Arc::clone(&combo.rules));
        let mut fault = None;
        let mut indices = Vec::with_capacity(choice.targets.len());
        let betas = choice.betas.clone();
        for at in 0..choice.targets.len() {
            let model = choice.model(at);
            let listed = Listed {
                most: snapshot.model(model).and_then(|model| model.max_output_tokens),
                price: snapshot.price(model),
                betas: betas.as_ref().and_then(|betas| betas.to_str().ok()),
            };
            match wording.write(body, parsed, &choice.targets[at], choice.upstream_model(at), listed) {
                Ok(None) => indices.push(at),
                Ok(Some(variant)) => {
                    choice.targets[at] = variant;
                    indices.push(at);
                }
                Err(error) => fault = Some(error),
            }
        }
        if indices.is_empty() {
            if let Some(fault) = fault {
                return Err(fault);
            }
        }
        if indices.len() < choice.targets.len() {
            *choice = choice.narrowed(&indices);
        }
        Ok(wording)
    }

    /// Writes the body for a target, unless there is one that fits. Returns the variant of the target that the request
    /// needs, if it needs one.
    fn write(
        &mut self,
        body: &Bytes,
        parsed: &ChatRequest,
        target: &Arc<Target>,
        upstream_model: &str,
        listed: Listed<'_>,
    ) -> Result<Option<Arc<Target>>, Error> {
        let need = ApiNeed::of(self.caller, body, parsed, target.connection.facts_of(upstream_model));
        let variant = if need == ApiNeed::Chat { None } else { target.with_responses() };
        let Some(variant) = variant else {
            return self.write_for(body, parsed, target, upstream_model, listed).map(|()| None);
        };
        match self.write_for(body, parsed, &variant, upstream_model, listed) {
            Ok(()) => Ok(Some(variant)),
            Err(_) if need == ApiNeed::Preferred => {
                self.write_for(body, parsed, target, upstream_model, listed).map(|()| None)
            }
            Err(error) => Err(error),
        }
    }

    fn write_for(
        &mut self,
        body: &Bytes,
        parsed: &ChatRequest,
        target: &Target,
        upstream_model: &str,
        listed: Listed<'_>,
    ) -> Result<(), Error> {
        if self.find(target, upstream_model).is_some() {
            return Ok(());
        }
        let fit = self.bounds.at(target, upstream_model);
        let form = target.connection.dialect;
        let cache = cache_hints(fit.cache, form, listed.price);
        let lowered = Fit { most: fit.cap.or(listed.most), cache, ..fit };
        let facts = target.connection.facts_of(upstream_model);
        let to = Destination { model: target.connection.called_name(upstream_model), fit: &lowered, facts };
        let sending = Sending { protocol: target.connection.protocol, pair: self.pair(target), betas: listed.betas };
        let sent = protocol::request_for(sending, body, parsed, to)?;
        self.keep(target, upstream_model, sent);
        Ok(())
    }

    /// Keeps the body for a target, and for others that it fits.
    fn keep(&mut self, target: &Target, upstream_model: &str, sent: SentRequest) {
        self.context.tool_names = std::mem::take(&mut self.context.tool_names).joined(&sent.tool_names);
        self.bodies.push(TranslatedBody {
            form: target.connection.dialect,
            protocol: target.connection.protocol,
            upstream_model: upstream_model.to_owned(),
            called_name: target.connection.called_name(upstream_model).to_owned(),
            fit: self.bounds.at(target, upstream_model),
            facts: Arc::clone(target.connection.facts_of(upstream_model)),
            sent,
        });
    }

    /// Translates the request of a call, for the endpoint of its route and the service tier of its key, with earlier
    /// reasoning.
    pub fn of_call(call: &mut Call, active: &ActiveConfig, body: &Bytes, request: &ChatRequest) -> Result<Self, Error> {
        let Call { settlement, choice, .. } = call;
        let admission = &settlement.admission;
        choice.inexpressible = admission.inexpressible();
        choice.betas.clone_from(&admission.anthropic_beta);
        choice.is_rewritten = admission.route.surface == Surface::Ollama;
        let translation = Self::prepare(admission.dialect, body, request, choice, &active.snapshot)?;
        let path = endpoints::completions_path(admission.route);
        let mut translation = Self { path, ..translation }.in_tier(admission.service_mode());
        translation.put_back_reasoning(settlement, choice);
        settlement.left_out = translation.left_out(choice);
        Ok(translation)
    }

    /// The members that targets of the choice did not get.
    fn left_out(&self, choice: &Choice) -> Vec<LeftOutAt> {
        let mut found = Vec::new();
        for (at, target) in choice.targets.iter().enumerate() {
            let upstream_model = choice.upstream_model(at);
            let Some(body) = self.find(target, upstream_model).filter(|body| !body.sent.left_out.is_empty()) else {
                continue;
            };
            found.push(LeftOutAt {
                connection: target.connection.id.clone(),
                upstream_model: upstream_model.to_owned(),
                names: body.sent.left_out.join(", "),
            });
        }
        found
    }

    /// Requests the service tier of the caller's key from every provider.
    #[must_use]
    pub fn in_tier(mut self, mode: ServiceMode) -> Self {
        // Text completions have no service tiers.
        if mode != ServiceMode::Inherit && self.path.is_none() {
            for translated in &mut self.bodies {
                let tier = defaults::Tier { mode, dialect: translated.form, facts: &translated.facts };
                if let Some(body) = tier.added_to(&translated.sent.pieces.concat().into()) {
                    translated.sent.pieces = Pieces::from_iter([body]);
                }
            }
        }
        self
    }

    /// Adds the stored reasoning to the bodies for connections that expect it.
    fn put_back_reasoning(&mut self, settlement: &Settlement, choice: &Choice) {
        let mut principal = None;
        for (at, target) in choice.targets.iter().enumerate() {
            if !reasoning::is_wanted(target) {
                continue;
            }
            let principal = principal.get_or_insert_with(|| reasoning::owner(&settlement.admission));
            let upstream_model = choice.upstream_model(at);
            let provider = target.connection.provider.as_str();
            let called_name = target.connection.called_name(upstream_model);
            if self.put_back.iter().any(|own| own.is_of(provider, called_name)) {
                continue;
            }
            let reasoning_store = &settlement.shared.reasoning;
            let find = |ids: &[&str]| reasoning_store.find(principal, provider, ids, reasoning::now());
            if let Some(body) = attach(self.body(target, upstream_model), find) {
                let (provider, called_name) = (provider.to_owned(), called_name.to_owned());
                self.put_back.push(BodyWithReasoning { provider, called_name, pieces: Pieces::from_iter([body]) });
            }
        }
    }

    /// Returns the path and query of the endpoint, given the provider's name for the model.
    pub fn uri(&self, target: &Target, upstream_model: &str, is_stream: bool) -> Result<Uri, Error> {
        match self.path {
            None => target.uri(upstream_model, is_stream),
            Some(path) => target.uri_of(path, upstream_model),
        }
    }

    fn find(&self, target: &Target, upstream_model: &str) -> Option<&TranslatedBody> {
        let fit = self.bounds.at(target, upstream_model);
        let Connection { dialect, protocol, .. } = *target.connection;
        let facts = target.connection.facts_of(upstream_model);
        self.bodies.iter().find(|body| {
            (body.form, body.protocol, body.fit) == (dialect, protocol, fit)
                && body.upstream_model == upstream_model
                && body.called_name == target.connection.called_name(upstream_model)
                && body.facts == *facts
        })
    }

    fn pair(&self, target: &Target) -> Pair {
        Pair { caller: self.caller, provider: target.connection.dialect }
    }

    /// Returns the body for this connection, given its name for the model.
    pub fn body(&self, target: &Target, upstream_model: &str) -> &Pieces {
        let provider = target.connection.provider.as_str();
        let called_name = target.connection.called_name(upstream_model);
        if let Some(own) = self.put_back.iter().find(|own| own.is_of(provider, called_name)) {
            if target.connection.replays_reasoning {
                return &own.pieces;
            }
        }
        // Every target that is left in the choice has a body.
        self.find(target, upstream_model).map_or(&self.nothing, |body| &body.sent.pieces)
    }

    /// Translates a complete response of this connection for the caller.
    pub fn answer(
        &self,
        target: &Target,
        upstream_model: &str,
        body: &Bytes,
    ) -> Result<translate::TranslatedAnswer, Error> {
        let pair = self.pair(target);
        let protocol = target.connection.protocol;
        let rewritten = protocol::answer(protocol, body, upstream_model, &self.context)
            .map_err(|reason| no_answer(target, reason))?;
        let body = rewritten.as_ref().unwrap_or(body);
        let whole =
            translate::answer(pair, body, &self.answer_context(pair)).map_err(|reason| no_answer(target, reason))?;
        self.judge(&whole.body)?;
        Ok(whole)
    }

    /// Checks the text of a response against the combo's rules.
    fn judge(&self, body: &[u8]) -> Result<(), Error> {
        let Some(validation) = self.rules.as_ref().and_then(|rules| rules.validation.as_ref()) else { return Ok(()) };
        let fault = answer_text(self.caller, body).and_then(|text| validation.fault(&text));
        fault.map_or(Ok(()), |fault| Err(rejected(&fault)))
    }

    /// Whether streams are buffered until they satisfy the combo's rules.
    pub fn holds_streams(&self) -> bool {
        self.rules.as_ref().is_some_and(|rules| rules_for_streams(rules).is_some())
    }

    /// Returns the judge for a stream of this connection, if streams are buffered.
    pub fn judge_stream(&self, target: &Target) -> Option<Box<StreamJudge>> {
        let rules = self.rules.as_ref().filter(|_| self.holds_streams())?;
        Some(Box::new(StreamJudge::new(Arc::clone(rules), AnswerText::new(target.connection.dialect))))
    }

    /// Makes responses echo the caller's own request if earlier turns were added to the one that is sent.
    #[must_use]
    pub fn of(mut self, own_body: &Bytes) -> Self {
        if self.caller == Dialect::OpenaiResponses {
            self.own_body = own_body.clone();
        }
        self
    }

    fn answer_context(&self, pair: Pair) -> AnswerContext {
        let echo = translate::echo(pair, &self.own_body);
        AnswerContext { created_s: clock::unix_ms() / 1_000, echo, ..self.context.clone() }
    }

    /// A comment that keeps the caller's stream alive during silence.
    pub fn heartbeat(&self) -> Bytes {
        stream::heartbeat(self.caller, self.context.is_list)
    }

    /// Whether the stream consists of events rather than one growing list.
    pub fn is_events(&self) -> bool {
        !self.context.is_list
    }

    /// Starts to translate a stream of this connection.
    pub fn follow(&self, target: &Target) -> Follow {
        let pair = self.pair(target);
        Follow::new(pair, self.answer_context(pair))
    }

    /// Returns the reader of a stream that this connection sends in another form than server-sent events.
    pub fn event_reader(&self, target: &Target, upstream_model: &str) -> Option<EventReader> {
        EventReader::of(target.connection.protocol, upstream_model, &self.context)
    }
}

/// Returns the hints with marks only if they make a conversation cheaper. Chat providers without a price for writing
/// cache every prompt.
fn cache_hints(hints: CacheHints, form: Dialect, price: Option<&Price>) -> CacheHints {
    let is_cheaper = |price: &Price| price.caching_pays() && (form != Dialect::Openai || price.cache_write.is_some());
    CacheHints { pays: hints.pays && price.is_some_and(is_cheaper), ..hints }
}

/// The error for an invalid response, with the error that the provider reported in its place.
fn no_answer(target: &Target, reason: translate::NoAnswer) -> Error {
    let reported = match &reason {
        translate::NoAnswer::ProviderError(reported) => Some(provider_error(200, reported, target)),
        _ => None,
    };
    let error = Error::from(reason);
    match reported {
        Some(reported) => error.with_provider_error(reported),
        None => error,
    }
}

impl BodyWithReasoning {
    fn is_of(&self, provider: &str, called_name: &str) -> bool {
        self.provider == provider && self.called_name == called_name
    }
}

#[cfg(test)]
#[path = "translation_tests.rs"]
mod tests;
