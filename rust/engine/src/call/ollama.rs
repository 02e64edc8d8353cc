//! Conversations and embeddings in Ollama's API. A request is converted to a chat completion or an embeddings request
//! before it becomes a call, so the same rules and the same cache apply. The response is converted to Ollama's format
//! on its way to the caller.
//!
//! ```text
//! caller  --> request_in, embed  -->  the call
//! caller  <--   lines, embed     <--  its exchange
//! ```

use crate::call::admit;
use crate::call::relay::is_event_stream;
use crate::call::settle::refuse;
use crate::clock;
use crate::exchange::{Capacity, Exchange, Head, Piece, Wake};
use crate::gate::answer::{self, base_headers, EndGuard};
use crate::gate::request::BufferedRequest;
use crate::models::listed::ListDialect;
use crate::observe::settle::Settlement;
use crate::shared::Shared;
use bytes::{Bytes, BytesMut};
use fairlead_core::routes::Surface;
use fairlead_core::{Error, ErrorKind, Outcome};
use fairlead_dialect::ollama::{
    self, AnswerForm, AnswerTime, EmbedCall, EmbedForm, EmbedRequest, Lines, OllamaCall, OllamaRequest,
};
use http::header::{self, HeaderValue};
use http::StatusCode;
use std::future::{poll_fn, Future};
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

const LINES: HeaderValue = HeaderValue::from_static("application/x-ndjson");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// No wake-up is needed: the task that waits for the call's response polls it.
#[derive(Debug)]
struct SilentWake;

impl Wake for SilentWake {
    fn wake(&self, _: u64) {}
}

/// The kind of an Ollama request.
#[derive(Debug, Clone, Copy)]
pub enum OllamaWork {
    Talk(OllamaCall),
    Embed(EmbedCall),
}

/// The format of the response.
enum Form {
    Talk(AnswerForm),
    Embed(EmbedForm),
}

/// Converts the call's response and sends it to the caller.
struct AnswerRelay {
    shared: Arc<Shared>,
    /// The exchange that receives the call's response.
    source: Arc<Exchange>,
    caller: Arc<Exchange>,
    form: Form,
    request_id: String,
    began: Instant,
}

/// Serves one request. As with a completion, dropping the future cancels it.
pub fn serve(shared: Arc<Shared>, incoming: Box<BufferedRequest>, work: OllamaWork) -> impl Future<Output = ()> {
    let end = EndGuard::new(&shared, &incoming.exchange, &incoming.admission);
    async move {
        match work {
            OllamaWork::Talk(call) => talk(shared, incoming, call).await,
            OllamaWork::Embed(call) => embed(shared, incoming, call).await,
        }
        drop(end);
    }
}

async fn talk(shared: Arc<Shared>, incoming: Box<BufferedRequest>, call: OllamaCall) {
    let is_listed = |model: &str| is_listed(&shared, &incoming, model);
    let request = match ollama::read(call, &incoming.body, is_listed) {
        Ok(request) => request,
        Err(fault) => return refuse_body(&shared, *incoming, &fault),
    };
    if let Some(load) = request.load {
        return answer_loaded(&shared, &incoming, &request, load.unloads, is_listed(&request.form.model));
    }
    run(shared, incoming, Form::Talk(request.form), request.chat).await;
}

async fn embed(shared: Arc<Shared>, incoming: Box<BufferedRequest>, call: EmbedCall) {
    let is_listed = |model: &str| is_listed(&shared, &incoming, model);
    match ollama::read_embed(call, &incoming.body, is_listed) {
        Err(fault) => refuse_body(&shared, *incoming, &fault),
        Ok(request) if request.is_empty => answer_empty(&shared, &incoming, &request, is_listed(&request.form.model)),
        Ok(EmbedRequest { body, form, .. }) => run(shared, incoming, Form::Embed(form), body).await,
    }
}

fn is_listed(shared: &Shared, incoming: &BufferedRequest, model: &str) -> bool {
    let key = incoming.admission.principal.key().cloned();
    shared.active.load().lists.one(model, key.as_deref(), ListDialect::OpenAi).is_some()
}

/// Serves a call whose body is in OpenAI's format.
async fn run(shared: Arc<Shared>, mut incoming: Box<BufferedRequest>, form: Form, body: Bytes) {
    let caller = Arc::clone(&incoming.exchange);
    let source = Exchange::new(shared.next_id(), Arc::new(SilentWake));
    let telling = AnswerRelay {
        shared: Arc::clone(&shared),
        source: Arc::clone(&source),
        caller: Arc::clone(&caller),
        form,
        request_id: incoming.admission.request_id.clone(),
        began: incoming.admission.started,
    };
    incoming.exchange = source;
    incoming.body = body;
    // Progress events would appear between lines, where Ollama's clients do not expect them.
    incoming.admission.wants_progress = false;
    incoming.admission.wants_cost = false;
    // Boxed, because moving it would copy its whole size again.
    let work = Box::pin(admit::serve(&shared, incoming));
    tokio::select! {
        biased;
        // Comes before the work is dropped, because the work is settled by how its exchange ended.
        () = async {
            caller.gone().await;
            telling.source.cancel();
        } => {}
        ((), ()) = async { tokio::join!(work, telling.run()) } => {}
    }
}

fn refuse_body(shared: &Arc<Shared>, incoming: BufferedRequest, fault: &Error) {
    let BufferedRequest { exchange, admission, body, .. } = incoming;
    let mut settlement = Settlement::open(shared, &exchange, admission, body.len() as u64);
    refuse(&mut settlement, Outcome::Refused, fault);
}

/// Responds to a request to load a model. Nothing is loaded, but the model must exist.
fn answer_loaded(shared: &Shared, incoming: &BufferedRequest, request: &OllamaRequest, unloads: bool, is_listed: bool) {
    let admission = &incoming.admission;
    if !is_listed {
        return refuse_model(shared, incoming, &request.form.model);
    }
    let at = AnswerTime { unix_ms: clock::unix_ms(), ..AnswerTime::default() };
    let mut body = ollama::loaded(&request.form, unloads, at).to_vec();
    let mut headers = base_headers(shared, &admission.request_id);
    headers.insert(header::CONTENT_TYPE, if request.stream { LINES } else { JSON });
    if request.stream {
        body.push(b'\n');
    }
    incoming.exchange.answer(Head { status: StatusCode::OK, headers }, Bytes::from(body));
}

/// Responds to an embeddings request without a text.
fn answer_empty(shared: &Shared, incoming: &BufferedRequest, request: &EmbedRequest, is_listed: bool) {
    if !is_listed {
        return refuse_model(shared, incoming, &request.form.model);
    }
    let mut headers = base_headers(shared, &incoming.admission.request_id);
    headers.insert(header::CONTENT_TYPE, JSON);
    let body = ollama::no_embeddings(&request.form, AnswerTime::default());
    incoming.exchange.answer(Head { status: StatusCode::OK, headers }, body);
}

fn refuse_model(shared: &Shared, incoming: &BufferedRequest, model: &str) {
    let message = format!("The model `{model}` is not known here.");
    let fault = Error::client(ErrorKind::ModelNotFound, message).about("model");
    answer::refuse(shared, &incoming.exchange, Surface::Ollama, &incoming.admission.request_id, &fault);
}

impl AnswerRelay {
    fn now(&self) -> AnswerTime {
        let since_start_ns = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        AnswerTime { unix_ms: clock::unix_ms(), since_start_ns, until_first_ns: None }
    }

    async fn run(&self) {
        let Some(head) = poll_fn(|cx| self.source.poll_head(cx)).await else { return self.caller.abort() };
        if head.headers.get(header::CONTENT_TYPE).is_some_and(is_event_stream) {
            if let Form::Talk(form) = &self.form {
                return self.send_stream(head, form.clone()).await;
            }
        }
        let Some(body) = self.collect().await else { return self.caller.abort() };
        self.send_complete(head, body);
    }

    /// Sends a complete response. An error is in Ollama's format already.
    fn send_complete(&self, mut head: Head, body: Bytes) {
        if !head.status.is_success() {
            return self.caller.answer(head, body);
        }
        let written = match &self.form {
            Form::Talk(form) => ollama::answer(form, &body, self.now()),
            Form::Embed(form) => ollama::answer_embed(form, &body, self.now()),
        };
        match written {
            Ok(body) => {
                head.headers.insert(header::CONTENT_TYPE, JSON);
                head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
                self.caller.answer(head, body);
            }
            Err(fault) => answer::refuse(&self.shared, &self.caller, Surface::Ollama, &self.request_id, &fault),
        }
    }

    async fn send_stream(&self, mut head: Head, form: AnswerForm) {
        head.headers.insert(header::CONTENT_TYPE, LINES);
        self.caller.start(head, []);
        let mut lines = Lines::new(form);
        loop {
            match self.next().await {
                Piece::Bytes(bytes) => self.caller.push([lines.push(&bytes, self.now())]),
                Piece::End | Piece::Abort => return self.caller.end([lines.finish(self.now())]),
            }
        }
    }

    /// Returns the next part of the call's response once the caller has read the previous one.
    async fn next(&self) -> Piece {
        poll_fn(|cx| match self.caller.poll_capacity(cx) {
            // The task that watches for the caller's disconnect ends this future.
            Poll::Pending | Poll::Ready(Capacity::ClientGone) => Poll::Pending,
            Poll::Ready(Capacity::Free) => self.source.poll_piece(cx),
        })
        .await
    }

    /// Collects the body of a complete response; `None` if it is truncated.
    async fn collect(&self) -> Option<Bytes> {
        let mut body = BytesMut::new();
        loop {
            match self.next().await {
                Piece::Bytes(bytes) => body.extend_from_slice(&bytes),
                Piece::End => return Some(body.freeze()),
                Piece::Abort => return None,
            }
        }
    }
}
