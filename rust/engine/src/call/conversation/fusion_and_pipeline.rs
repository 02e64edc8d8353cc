//! The `fusion` and `pipeline` strategies, which make calls before the caller's own. In a fusion, a judge receives the
//! responses of a panel. In a pipeline, each step receives the previous response. The last call is an ordinary request
//! with a different body and fewer targets.

use crate::call::choose::endpoints;
use crate::call::context::Call;
use crate::call::conversation::plain;
use crate::call::conversation::translation::{self, Translation};
use crate::call::relay;
use crate::call::relay::deadline::{target_limit, within};
use crate::clock;
use crate::gate::defaults;
use crate::gate::request::Admission;
use crate::observe::settle::Settlement;
use crate::observe::trace;
use crate::route::choice::Choice;
use crate::route::model;
use crate::shared::Shared;
use crate::upstream::attempt::{self, Contents, Upstream};
use crate::upstream::failure::AttemptFailure;
use crate::upstream::slot;
use crate::upstream::target::Target;
use bytes::Bytes;
use fairlead_core::strategy::Strategy;
use fairlead_core::{random_name, Dialect, Error, ErrorKind, Retry, Snapshot, Usage};
use fairlead_dialect::openai::request;
use fairlead_dialect::openai::request::ChatRequest;
use fairlead_dialect::translate::{self, Pair};
use fairlead_dialect::AnswerContext;
use serde_json::{json, Map, Value};
use std::fmt::Write as _;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// The maximum size of a panel.
const MAX_PANEL: usize = 20;
/// Responses are truncated to this size before they become part of another request.
const MAX_QUOTED_BYTES: usize = 256 * 1024;

/// The remaining work for the caller's response.
#[derive(Debug)]
pub enum Prepared {
    /// The request without changes.
    AsIs,
    /// A different request for these targets.
    Next { translation: Box<Translation>, request: ChatRequest, choice: Box<Choice> },
    /// The only response of a panel, which is sent to the caller unchanged.
    Done { target: Arc<Target>, answer: plain::Answer },
    /// No target responded: the targets and their failures.
    Failed { choice: Box<Choice>, failures: Vec<(usize, AttemptFailure)> },
}

/// The response of a target to one of the preceding calls.
#[derive(Debug)]
pub(crate) struct PanelAnswer {
    answer: plain::Answer,
    pub(crate) usage: Usage,
    pub(crate) text: String,
    took: Duration,
}

/// Makes the preceding calls, whose usage is added to the settlement. They are chat completions in every dialect; the
/// last call uses the caller's dialect. The caller of a stream receives comments meanwhile.
pub async fn prepare(call: &mut Call, body: &Bytes, parsed: &ChatRequest) -> Result<Prepared, Error> {
    let Call { settlement, choice, .. } = call;
    let strategy = choice.combo.as_ref().map(|combo| combo.strategy);
    if !matches!(strategy, Some(Strategy::Fusion | Strategy::Pipeline)) {
        return Ok(Prepared::AsIs);
    }
    let route = settlement.admission.route;
    if endpoints::needs(route).is_some() {
        let message = "A combo of the strategy `fusion` or `pipeline` is asked in conversations only.";
        return Err(Error::client(ErrorKind::InvalidRequest, message).about("model"));
    }
    let Some(mut fields) = translation::chat_members(settlement.admission.dialect, body, parsed)? else {
        return Ok(Prepared::AsIs);
    };
    if let Some(tier) = defaults::chat_tier(settlement.admission.service_mode()) {
        fields.insert("service_tier".to_owned(), tier.into());
    }
    let shared = Arc::clone(&settlement.shared);
    let heartbeats = Heartbeats::of(&shared, choice, parsed.stream);
    match strategy {
        // Boxed to keep the future of single-stage conversations small.
        Some(Strategy::Pipeline) => Box::pin(pipeline(&heartbeats, settlement, choice, parsed, fields)).await,
        // Tools run once, not once for every panel member.
        _ if fields.get("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty()) => Ok(Prepared::AsIs),
        _ => Box::pin(fusion(&heartbeats, settlement, choice, parsed, fields)).await,
    }
}

/// Sends comments to the caller of a stream while work is in progress.
pub(crate) struct Heartbeats<'a> {
    shared: &'a Arc<Shared>,
    /// The target in the stream's head; `None` for a caller that waits for a complete response.
    target: Option<&'a Arc<Target>>,
    every: Duration,
}

impl<'a> Heartbeats<'a> {
    pub(crate) fn of(shared: &'a Arc<Shared>, choice: &'a Choice, is_stream: bool) -> Self {
        let target = choice.targets.first().filter(|_| is_stream);
        Self { shared, target, every: Duration::from_millis(shared.config.heartbeat_ms) }
    }

    pub(crate) async fn during<T>(&self, settlement: &mut Settlement, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let Some(target) = self.target else { return work.await };
        loop {
            match tokio::time::timeout(self.every, work.as_mut()).await {
                Ok(done) => return done,
                Err(_) => relay::send_heartbeat(settlement, target),
            }
        }
    }
}

async fn fusion(
    heartbeats: &Heartbeats<'_>,
    settlement: &mut Settlement,
    choice: &Choice,
    parsed: &ChatRequest,
    fields: Map<String, Value>,
) -> Result<Prepared, Error> {
    let members = panel_of(choice);
    if members.len() < 2 {
        return Ok(Prepared::AsIs);
    }
    let PanelOutcome { mut answers, failures } = call_panel(heartbeats, settlement, choice, &members, &fields).await;
    if answers.is_empty() {
        return if failures.is_empty() { Err(panel_timeout(choice)) } else { Ok(failed(settlement, choice, failures)) };
    }
    learn_failures(settlement, choice, &failures);
    if answers.len() == 1 && !parsed.stream {
        if let Some((at, one)) = answers.pop() {
            return only_answer(settlement, choice, at, &one);
        }
    }
    answers.sort_by_key(|(at, _)| *at);
    for (at, one) in &answers {
        settlement.add_side(choice.model(*at), &one.usage);
    }
    let judge = judge(heartbeats.shared, settlement, choice, &members)?;
    let body = with_messages(fields, vec![user(&judge_prompt(&answers))]);
    next(&settlement.admission, &heartbeats.shared.active.load().snapshot, &body, parsed, judge)
}

/// The index of the first target of each model.
fn panel_of(choice: &Choice) -> Vec<usize> {
    let mut members: Vec<usize> = Vec::new();
    for at in 0..choice.targets.len() {
        let is_new = members.iter().all(|&member| choice.model(member) != choice.model(at));
        if is_new && members.len() < MAX_PANEL {
            members.push(at);
        }
    }
    members
}

/// Responses and failures of a panel, with each member's index in the choice.
#[derive(Default)]
struct PanelOutcome {
    answers: Vec<(usize, PanelAnswer)>,
    failures: Vec<(usize, AttemptFailure)>,
}

/// Sends the request to all members at once. After enough responses, the others have a short grace period.
async fn call_panel(
    heartbeats: &Heartbeats<'_>,
    settlement: &mut Settlement,
    choice: &Choice,
    members: &[usize],
    fields: &Map<String, Value>,
) -> PanelOutcome {
    let mut outcome = PanelOutcome::default();
    let Some(combo) = &choice.combo else { return outcome };
    let mut calls = JoinSet::new();
    for &at in members {
        let target = Arc::clone(&choice.targets[at]);
        let alone = choice.narrowed(&[at]);
        let body = quiet_body(fields, None);
        let shared = Arc::clone(heartbeats.shared);
        settlement.attempts += 1;
        // The set aborts its tasks when it is dropped with this request.
        calls.spawn(trace::within(
            trace::current(),
            async move { (at, call_once(&shared, &target, alone, &body).await) },
        ));
    }
    let params = &combo.params;
    let grace = Duration::from_millis(params.straggler_grace_ms);
    let cap = Instant::now() + Duration::from_millis(params.panel_timeout_ms);
    let mut until = cap;
    loop {
        let next = tokio::time::timeout_at(until.into(), calls.join_next());
        let Ok(Some(joined)) = heartbeats.during(settlement, next).await else { return outcome };
        let Ok((at, answered)) = joined else { continue };
        match answered {
            Ok(one) => {
                learn(settlement, choice, at, &one);
                outcome.answers.push((at, one));
            }
            Err(failed) => outcome.failures.push((at, failed)),
        }
        if outcome.answers.len() >= params.min_panel as usize {
            until = until.min(Instant::now() + grace).min(cap);
        }
    }
}

fn panel_timeout(choice: &Choice) -> Error {
    let (name, timeout_ms) =
        choice.combo.as_ref().map_or(("", 0), |combo| (combo.name.as_str(), combo.params.panel_timeout_ms));
    let message = format!("No target of the combo `{name}` answered within {timeout_ms} ms.");
    Error::upstream(ErrorKind::UpstreamTimeout, Retry::Never, message)
}

/// Returns the only response of a panel in the caller's dialect. There is nothing to judge.
fn only_answer(settlement: &mut Settlement, choice: &Choice, at: usize, one: &PanelAnswer) -> Result<Prepared, Error> {
    let target = Arc::clone(&choice.targets[at]);
    settlement.target = Some(Arc::clone(&target));
    settlement.usage = one.usage;
    settlement.upstream_model = Some(choice.upstream_model(at).to_owned());
    settlement.priced_model = Some(choice.model(at).to_owned());
    let pair = Pair { caller: settlement.admission.dialect, provider: Dialect::Openai };
    let id = random_name().map_err(|_| Error::gateway(ErrorKind::Internal, "The system has no random numbers."))?;
    let about = AnswerContext { created_s: clock::unix_ms() / 1_000, id, ..AnswerContext::default() };
    let translated = translate::answer(pair, &one.answer.body, &about).map_err(Error::from)?;
    Ok(Prepared::Done { target, answer: translated.body.into() })
}

/// The prompt that asks the judge to combine several responses.
fn judge_prompt(answers: &[(usize, PanelAnswer)]) -> String {
    let mut prompt = String::from(
        "Several assistants have answered the conversation above, each on its own. Their answers follow. Write the one answer that \
         the user should get: take what is right from each, decide where they contradict each other, and mention neither the \
         answers nor their writers.\n",
    );
    for (number, (_, one)) in answers.iter().enumerate() {
        // Writing to a string cannot fail.
        let _written = write!(prompt, "\n<answer number=\"{}\">\n{}\n</answer>\n", number + 1, one.text);
    }
    prompt
}

/// The judge: the operator's choice, or else the first of the list. The other targets follow it as fallbacks.
fn judge(shared: &Shared, settlement: &Settlement, choice: &Choice, members: &[usize]) -> Result<Choice, Error> {
    let named = choice.combo.as_ref().and_then(|combo| combo.params.judge_model.as_deref());
    let Some(named) = named else { return Ok(choice.narrowed(members)) };
    let all = 0..choice.targets.len();
    let mut indices: Vec<usize> = all.clone().filter(|&at| choice.model(at) == named).collect();
    if !indices.is_empty() {
        indices.extend(all.filter(|&at| choice.model(at) != named));
        return Ok(choice.narrowed(&indices));
    }
    let key = settlement.admission.principal.key().map(AsRef::as_ref);
    let combo = choice.combo.as_ref().map(|combo| combo.name.as_str());
    model::choose_beside(&shared.active.load(), combo, named, key)
}

async fn pipeline(
    heartbeats: &Heartbeats<'_>,
    settlement: &mut Settlement,
    choice: &Choice,
    parsed: &ChatRequest,
    fields: Map<String, Value>,
) -> Result<Prepared, Error> {
    let Some(combo) = &choice.combo else { return Ok(Prepared::AsIs) };
    let steps = combo.prompts.len();
    let of = |step: usize| -> Vec<usize> {
        combo.legs.iter().enumerate().filter(|(_, leg)| leg.step == step).map(|(at, _)| at).collect()
    };
    if let Some(missing) = (0..steps).find(|&step| of(step).is_empty()) {
        let message = format!(
            "Step {} of the combo `{}` has no target that may be tried now, and a pipeline needs every step.",
            missing + 1,
            combo.name
        );
        return Err(Error::gateway(ErrorKind::NoRoute, message).after_s(5));
    }
    let mut extra: Vec<Value> = Vec::new();
    let prompt = |step: usize| combo.prompts.get(step).and_then(Option::as_deref);
    if let Some(first) = prompt(0) {
        extra.push(user(first));
    }
    for step in 0..steps - 1 {
        let mut failures = Vec::new();
        let mut text = None;
        for at in of(step) {
            let body = quiet_body(&fields, Some(&extra));
            settlement.attempts += 1;
            let calling = call_once(heartbeats.shared, &choice.targets[at], choice.narrowed(&[at]), &body);
            match Box::pin(heartbeats.during(settlement, calling)).await {
                Ok(one) => {
                    learn(settlement, choice, at, &one);
                    settlement.add_side(choice.model(at), &one.usage);
                    text = Some(one.text);
                    break;
                }
                Err(failed) if failed.error.kind == ErrorKind::Draining => return Err(failed.error),
                Err(failed) => failures.push((at, failed)),
            }
        }
        let Some(text) = text else { return Ok(failed(settlement, choice, failures)) };
        learn_failures(settlement, choice, &failures);
        extra = vec![
            json!({"role": "assistant", "content": text}),
            user(prompt(step + 1).unwrap_or("Improve the answer above and write it out whole.")),
        ];
    }
    let body = with_messages(fields, extra);
    let last = choice.narrowed(&of(steps - 1));
    next(&settlement.admission, &heartbeats.shared.active.load().snapshot, &body, parsed, last)
}

/// Returns the caller's request with additional messages.
fn with_messages(mut fields: Map<String, Value>, extra: Vec<Value>) -> Bytes {
    if let Some(messages) = fields.get_mut("messages").and_then(Value::as_array_mut) {
        messages.extend(extra);
    }
    Bytes::from(Value::Object(fields).to_string())
}

/// Prepares a request that is derived from the caller's own, for the remaining targets. The response has the caller's
/// format.
fn next(
    admission: &Admission,
    snapshot: &Snapshot,
    body: &Bytes,
    own: &ChatRequest,
    mut choice: Choice,
) -> Result<Prepared, Error> {
    let mut request = request::read(body)?;
    // A chat completion cannot express that a response is to be stored.
    request.stores = own.stores;
    request.previous.clone_from(&own.previous);
    request.conversation.clone_from(&own.conversation);
    // The caller's history lacks the messages that are added here.
    choice.is_edited = true;
    let mut translation = Translation::prepare(Dialect::Openai, body, &request, &mut choice, snapshot)?;
    translation.caller = admission.dialect;
    let translation = Box::new(translation.in_tier(admission.service_mode()));
    Ok(Prepared::Next { translation, request, choice: Box::new(choice) })
}

/// Returns a request for one complete response.
pub(crate) fn quiet_body(fields: &Map<String, Value>, extra: Option<&[Value]>) -> Bytes {
    let mut fields = fields.clone();
    fields.remove("stream");
    fields.remove("stream_options");
    fields.remove("n");
    if let (Some(extra), Some(messages)) = (extra, fields.get_mut("messages").and_then(Value::as_array_mut)) {
        messages.extend_from_slice(extra);
    }
    Bytes::from(Value::Object(fields).to_string())
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// Calls the only target of the choice once.
pub(crate) async fn call_once(
    shared: &Shared,
    target: &Arc<Target>,
    mut alone: Choice,
    body: &Bytes,
) -> Result<PanelAnswer, AttemptFailure> {
    let began = Instant::now();
    let tokens = model::estimate(body.len() as u64);
    let mut slot = slot::acquire(shared, target, &alone.slot_request(0, tokens), &mut Duration::default()).await?;
    let parsed = request::read(body)?;
    let wording = Translation::prepare(Dialect::Openai, body, &parsed, &mut alone, &shared.active.load().snapshot)?;
    // The variant of the target that the request needs.
    let target = &alone.targets[0];
    let pieces = wording.body(target, &alone.upstream_model);
    let work = async {
        let uri = target.uri(&alone.upstream_model, false)?;
        let (model, body) = (alone.upstream_model.as_str(), Contents::Json(pieces));
        let request = Upstream { uri: &uri, model, betas: None, session: None, body, is_stream: false };
        let sent = attempt::send(&shared.pool, target, request);
        plain::take(target, sent.await?, &wording, &alone.upstream_model).await
    };
    let limit = target_limit(&alone, 0);
    let (answer, usage) = tokio::select! {
        biased;
        taken = within(limit, work) => taken?,
        () = shared.drain.expired() => return Err(shared.drain.error().into()),
    };
    slot.settle(&usage);
    let whole: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let mut text = whole["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned();
    if text.is_empty() {
        let message = "The provider's answer has no text.";
        return Err(Error::upstream(ErrorKind::UpstreamInvalid, Retry::Elsewhere, message).into());
    }
    let mut end = text.len().min(MAX_QUOTED_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    Ok(PanelAnswer { answer, usage, text, took: began.elapsed() })
}

/// Records that a target served a preceding call.
fn learn(settlement: &mut Settlement, choice: &Choice, at: usize, answer: &PanelAnswer) {
    choice.targets[at].served(answer.took, answer.took);
    choice.targets[at].served_model(choice.upstream_model(at), answer.took);
    settlement.first_byte.get_or_insert_with(Instant::now);
}

/// Records that targets failed preceding calls.
fn learn_failures(settlement: &mut Settlement, choice: &Choice, failures: &[(usize, AttemptFailure)]) {
    for (at, one) in failures {
        let (target, model) = (&choice.targets[*at], choice.upstream_model(*at));
        target.hold_against(model, one);
        settlement.note_failed_attempt(target, model, &one.error);
    }
}

fn failed(settlement: &mut Settlement, choice: &Choice, failures: Vec<(usize, AttemptFailure)>) -> Prepared {
    learn_failures(settlement, choice, &failures);
    let indices: Vec<usize> = failures.iter().map(|(at, _)| *at).collect();
    let failures = failures.into_iter().map(|(_, one)| one).enumerate().collect();
    Prepared::Failed { choice: Box::new(choice.narrowed(&indices)), failures }
}
