//! `/v1/realtime`: a conversation in events over a WebSocket, passed through to the provider whose model is asked for.
//!
//! The caller's connection passes the gate once; until the provider has taken its side another connection may be tried.
//! Events pass as they are, both ways. The whole conversation is one record. What `response.done` tells is counted under the
//! key's limits as it comes, and the key is looked at again while the conversation goes on: once it may not call the model
//! any more, or has no room for another answer, the conversation ends with an error event and the code 1008.

use crate::call::choose::{admit_aliases, admit_model, choose_for_endpoint};
use crate::call::guardrails;
use crate::clock;
use crate::exchange::Wake;
use crate::gate::body::too_many_bytes;
use crate::gate::limits;
use crate::gate::request::Whole;
use crate::observe::settle::Settlement;
use crate::route::choice::Choice;
use crate::route::model;
use crate::shared::{Gauge, GaugePermit, Shared, MAX_BUFFERED_BYTES};
use crate::socket::frames::{self, Decoder, Message};
use crate::socket::outbox::{Drawn, Outbox};
use crate::socket::requests::{Assembly, FrameConnection};
use crate::upstream::attempt::{self, Contents};
use crate::upstream::target::{InFlightGuard, Target};
use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use fairlead_core::error::{Error, Kind, Retry};
use fairlead_core::policy;
use fairlead_core::principal::Principal;
use fairlead_core::record::Outcome;
use fairlead_core::secret::random;
use fairlead_dialect::openai::{metered, named};
use http::header;
use ring::digest::{digest, SHA1_FOR_LEGACY_USE_ONLY};
use serde_json::json;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;

type Stream = crate::upstream::connector::Socket;

/// Of RFC 6455, section 1.3.
const ACCEPT_SALT: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Of the registry of RFC 6455, 11.7.
const TRY_AGAIN_LATER: u16 = 1013;
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// What a caller may send ahead of the provider's reading.
const MAX_WAITING_BYTES: usize = 4 * 1024 * 1024;
const PING_EVERY: Duration = Duration::from_secs(20);
/// A provider that answers no ping for this long has left.
const SILENCE: Duration = Duration::from_secs(60);
const WRITE_DEADLINE: Duration = Duration::from_secs(30);
/// How often the key is looked at again beside each answer.
const REVIEW_EVERY: Duration = Duration::from_secs(2);
/// The longest that a conversation lasts; providers end theirs after an hour or less.
const LONGEST: Duration = Duration::from_secs(2 * 3_600);

/// A conversation under way. Dropped, it ends.
#[derive(Debug)]
pub struct Realtime {
    outbox: Arc<Outbox>,
    shared: Arc<Shared>,
    said: mpsc::UnboundedSender<(String, GaugePermit)>,
    waiting_bytes: Arc<AtomicUsize>,
    assembly: Arc<Assembly>,
}

/// What the task works with.
struct Talk {
    shared: Arc<Shared>,
    outbox: Arc<Outbox>,
    said: mpsc::UnboundedReceiver<(String, GaugePermit)>,
    waiting_bytes: Arc<AtomicUsize>,
    choice: Choice,
    _counted: (GaugePermit, GaugePermit),
}

/// How a conversation ended.
struct Ended {
    outcome: Outcome,
    error: Option<Error>,
    /// For the caller's side.
    code: u16,
}

impl Realtime {
    /// Opens one for a head that has passed the gate. A refusal is settled here.
    pub fn open(shared: &Arc<Shared>, whole: Whole, query: &[u8], wake: Arc<dyn Wake>) -> Result<Self, Error> {
        let Whole { exchange, admission, in_flight, .. } = whole;
        let id = exchange.id();
        let mut settlement = Settlement::open(shared, &exchange, admission, 0);
        let choice = model_of(query).and_then(|model| choose(shared, &mut settlement, &model));
        let opened = choice.and_then(|choice| {
            let slot = GaugePermit::for_stream(shared)?;
            let runtime = shared.runtime().ok_or_else(|| Error::gateway(Kind::Internal, "The engine does not run."))?;
            Ok((choice, slot, runtime))
        });
        let (choice, slot, runtime) = match opened {
            Ok(opened) => opened,
            Err(fault) => {
                settlement.status = fault.kind.status();
                let outcome = if fault.kind == Kind::Overloaded { Outcome::Shed } else { Outcome::Refused };
                settlement.settle(outcome, Some(&fault));
                return Err(fault);
            }
        };
        let outbox = Outbox::new(id, wake);
        let (said, hears) = mpsc::unbounded_channel();
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let talk = Talk {
            shared: Arc::clone(shared),
            outbox: Arc::clone(&outbox),
            said: hears,
            waiting_bytes: Arc::clone(&waiting_bytes),
            choice,
            _counted: (in_flight, slot),
        };
        // It ends when either side leaves; its settlement tells how, also when it is dropped.
        drop(runtime.spawn(talk.run(settlement)));
        Ok(Self { outbox, shared: Arc::clone(shared), said, waiting_bytes, assembly: Assembly::new(shared) })
    }
}

impl FrameConnection for Realtime {
    fn id(&self) -> u64 {
        self.outbox.id()
    }

    fn take(&self) -> Option<Drawn> {
        self.outbox.take()
    }

    fn is_idle(&self) -> bool {
        self.outbox.is_closed()
    }

    fn is_closed(&self) -> bool {
        self.outbox.is_closed()
    }

    fn receive(&self, text: Option<&str>) {
        let Some(text) = text else { return self.outbox.close(1003) };
        let waiting = self.waiting_bytes.fetch_add(text.len(), Ordering::AcqRel) + text.len();
        if waiting > MAX_WAITING_BYTES {
            return self.outbox.close(1008);
        }
        let Some(held) = GaugePermit::take(&self.shared, Gauge::BodyBytes, text.len(), MAX_BUFFERED_BYTES) else {
            self.shared.counts.shed_total.fetch_add(1, Ordering::Relaxed);
            return self.outbox.close(TRY_AGAIN_LATER);
        };
        // After the end nobody hears it.
        let _heard = self.said.send((text.to_owned(), held));
    }

    fn assembly(&self) -> Arc<Assembly> {
        Arc::clone(&self.assembly)
    }

    fn close(&self) {
        self.outbox.close(1000);
    }
}

impl Drop for Realtime {
    fn drop(&mut self) {
        self.close();
    }
}

fn choose(shared: &Shared, settlement: &mut Settlement, model: &str) -> Result<Choice, Error> {
    let live = shared.live.load_full();
    let mut parsed = admit_model(&live, settlement, named::of_form(model, true, 1)?)?;
    // Nobody says beforehand how long the first answer may be.
    parsed.max_output_tokens = None;
    settlement.model = Some(parsed.model.clone());
    settlement.stream = true;
    let choice = choose_for_endpoint(&live, settlement, &parsed, b"")?;
    settlement.strategy = choice.strategy();
    Ok(choice)
}

/// `model` of the query.
fn model_of(query: &[u8]) -> Result<String, Error> {
    let missing =
        || Error::client(Kind::InvalidRequest, "`model` is required: ask for `/v1/realtime?model=...`.").about("model");
    let query = std::str::from_utf8(query).map_err(|_| missing())?;
    let mut found = None;
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decode(name).ok_or_else(missing)?;
        if name != "model" && name.trim_matches('\0').trim().eq_ignore_ascii_case("model") {
            let message = "The query's `model` is written in lower case and without blanks.";
            return Err(Error::client(Kind::InvalidRequest, message).about("model"));
        }
        if name == "model" && found.replace(value).is_some() {
            let message = "The query names `model` twice; name it once.";
            return Err(Error::client(Kind::InvalidRequest, message).about("model"));
        }
    }
    decode(found.ok_or_else(missing)?).ok_or_else(missing)
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            b'+' => b' ',
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing into a text cannot fail.
            let _written = write!(out, "%{byte:02X}");
        }
    }
    out
}

impl Talk {
    async fn run(mut self, mut settlement: Settlement) {
        limits::throttle(&settlement).await;
        let mut last = None;
        for (at, target) in self.choice.targets.clone().iter().enumerate() {
            settlement.attempts += 1;
            settlement.target = Some(Arc::clone(target));
            settlement.upstream_model = Some(self.choice.upstream_model(at).to_owned());
            settlement.priced_model = Some(self.choice.model(at).to_owned());
            let _busy = InFlightGuard::new(&target.hot);
            let began = Instant::now();
            let connecting = connect(&self.shared, target, self.choice.upstream_model(at));
            let connected = tokio::select! {
                biased;
                connected = connecting => connected,
                () = self.shared.drain.expired() => Err(self.shared.drain.error()),
            };
            match connected {
                Ok((stream, early)) => {
                    target.served(began.elapsed(), began.elapsed());
                    settlement.status = 101;
                    let ended = self.pass(&mut settlement, stream, &early).await;
                    if let Some(error) = ended.error.as_ref().filter(|error| error.kind == Kind::UpstreamReset) {
                        target.blame(error.kind, None);
                    }
                    settlement.settle(ended.outcome, ended.error.as_ref());
                    return self.outbox.close(ended.code);
                }
                Err(error) => {
                    target.blame(error.kind, None);
                    let goes_on = error.kind != Kind::Draining && error.kind != Kind::InvalidRequest;
                    last = Some(error);
                    if !goes_on {
                        break;
                    }
                }
            }
        }
        let error = last.unwrap_or_else(|| Error::gateway(Kind::NoRoute, "There is no connection to try."));
        self.send_error(&error);
        let (outcome, code) =
            if error.kind == Kind::Draining { (Outcome::Drained, 1001) } else { (Outcome::UpstreamFailed, 1011) };
        settlement.status = error.kind.status();
        settlement.settle(outcome, Some(&error));
        self.outbox.close(code);
    }

    /// An error as an event of the protocol.
    fn send_error(&self, error: &Error) {
        let told = json!({"type": error.kind.wire_type(), "code": error.kind.code(), "message": error.message});
        self.outbox.push(json!({"type": "error", "error": told}).to_string());
    }

    async fn pass(&mut self, settlement: &mut Settlement, stream: Stream, early: &[u8]) -> Ended {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let mut decoder = Decoder::default();
        decoder.push(early);
        let mut judge = guardrails::EventGuard::new(&self.shared.live.load(), &settlement.admission);
        let assembly = Assembly::new(&self.shared);
        let mut buffer = vec![0; 64 * 1024];
        let mut heard = Instant::now();
        let mut ping = tokio::time::interval(PING_EVERY);
        let mut review = tokio::time::interval(REVIEW_EVERY);
        review.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let until = tokio::time::Instant::now() + LONGEST;
        loop {
            loop {
                let reply = match decoder.message() {
                    Ok(Some(Message::Text(text))) => match self.hear(settlement, &mut judge, &mut writer, text).await {
                        None => continue,
                        Some(ended) => return ended,
                    },
                    Ok(Some(Message::Ping(payload))) => (frames::PONG, payload),
                    Ok(Some(Message::Pong | Message::Binary)) => continue,
                    Ok(Some(Message::Close(code))) => {
                        judge.rest(settlement).into_iter().for_each(|text| self.outbox.push(text));
                        return left(code);
                    }
                    Ok(None) => {
                        // What is left is less than was counted when it came.
                        let _less = assembly.set(decoder.held_bytes());
                        break;
                    }
                    Err(frames::FrameFault(code)) => {
                        // It may no longer hear why.
                        let _told = send(&mut writer, frames::CLOSE, &code.to_be_bytes()).await;
                        let message = "The provider's frames are not as the protocol says.";
                        return self.broken(Error::upstream(Kind::UpstreamInvalid, Retry::Never, message));
                    }
                };
                if let Err(error) = send(&mut writer, reply.0, &reply.1).await {
                    return self.broken(error);
                }
            }
            self.outbox.room().await;
            if self.outbox.is_closed() {
                let _told = send(&mut writer, frames::CLOSE, &1000_u16.to_be_bytes()).await;
                return Ended { outcome: Outcome::Completed, error: None, code: 1000 };
            }
            tokio::select! {
                read = reader.read(&mut buffer) => match read {
                    Ok(count) if count > 0 => {
                        heard = Instant::now();
                        decoder.push(&buffer[..count]);
                        if !assembly.set(decoder.held_bytes()) {
                            let _told = send(&mut writer, frames::CLOSE, &TRY_AGAIN_LATER.to_be_bytes()).await;
                            let ended = self.broken(too_many_bytes());
                            return Ended { code: TRY_AGAIN_LATER, ..ended };
                        }
                    }
                    _ => {
                        let message = "The provider cut the conversation off.";
                        return self.broken(Error::upstream(Kind::UpstreamReset, Retry::Never, message));
                    }
                },
                text = self.said.recv() => {
                    let Some((text, _held)) = text else {
                        let _told = send(&mut writer, frames::CLOSE, &1000_u16.to_be_bytes()).await;
                        return Ended { outcome: Outcome::Completed, error: None, code: 1000 };
                    };
                    self.waiting_bytes.fetch_sub(text.len(), Ordering::AcqRel);
                    settlement.bytes_request += text.len() as u64;
                    // What a guardrail blocks is told and goes no further; the conversation goes on.
                    let Ok(text) = judge.admit(settlement, text).map_err(|fault| self.send_error(&fault)) else { continue };
                    if let Err(error) = send(&mut writer, frames::TEXT, text.as_bytes()).await {
                        return self.broken(error);
                    }
                }
                _ = ping.tick() => {
                    if heard.elapsed() > SILENCE {
                        let message = "The provider answers no more.";
                        return self.broken(Error::upstream(Kind::UpstreamIdleTimeout, Retry::Never, message));
                    }
                    if let Err(error) = send(&mut writer, frames::PING, b"").await {
                        return self.broken(error);
                    }
                }
                _ = review.tick() => {
                    if let Err(fault) = self.review(settlement) {
                        return self.end(&mut writer, fault).await;
                    }
                }
                () = tokio::time::sleep_until(until) => {
                    let message = format!("A conversation lasts {} h at most; open another.", LONGEST.as_secs() / 3_600);
                    return self.end(&mut writer, Error::client(Kind::RequestTimeout, message)).await;
                }
                () = self.shared.drain.expired() => {
                    let _told = send(&mut writer, frames::CLOSE, &1001_u16.to_be_bytes()).await;
                    return Ended { outcome: Outcome::Drained, error: Some(self.shared.drain.error()), code: 1001 };
                }
            }
        }
    }

    /// Counts and judges one event of the provider and passes it on. Some: the conversation ends with it.
    async fn hear(
        &self,
        settlement: &mut Settlement,
        judge: &mut guardrails::EventGuard,
        writer: &mut tokio::io::WriteHalf<Stream>,
        text: String,
    ) -> Option<Ended> {
        settlement.first_byte.get_or_insert_with(Instant::now);
        settlement.bytes_response += text.len() as u64;
        let used = metered::of_realtime(text.as_bytes());
        if let Some(usage) = used {
            settlement.usage = settlement.usage + usage;
        }
        match judge.judge(settlement, text) {
            Ok(texts) => texts.into_iter().for_each(|text| self.outbox.push(text)),
            Err(fault) => {
                // It may no longer hear why.
                let _told = send(writer, frames::CLOSE, &1000_u16.to_be_bytes()).await;
                return Some(self.withheld(fault));
            }
        }
        if used.is_some() {
            if let Err(fault) = self.review(settlement) {
                judge.rest(settlement).into_iter().for_each(|text| self.outbox.push(text));
                return Some(self.end(writer, fault).await);
            }
        }
        None
    }

    /// A guardrail withholds what the model says: the conversation ends with it.
    fn withheld(&self, error: Error) -> Ended {
        self.send_error(&error);
        Ended { outcome: Outcome::Refused, error: Some(error), code: 1008 }
    }

    /// Whether the caller may go on: its key may have been revoked, banned or restricted since, may have expired or be out of
    /// its hours, or have no room for another answer.
    fn review(&self, settlement: &mut Settlement) -> Result<(), Error> {
        let live = self.shared.live.load();
        let now_ms = clock::unix_ms();
        let Some(key_id) = settlement.admission.principal.key().map(|key| key.id.clone()) else {
            let tier = settlement.admission.route.tier;
            let principal = &settlement.admission.principal;
            return principal.admit(tier, false, &live.snapshot, self.shared.config.require_api_key);
        };
        settlement.admission.principal = Principal::on_behalf(&live.snapshot, &key_id, now_ms)?;
        let Some(key) = settlement.admission.principal.key().map(Arc::clone) else { return Ok(()) };
        policy::admit_hour(&key, now_ms)?;
        policy::admit_endpoint(&key, settlement.admission.route.endpoint)?;
        model::admit(&live, &key, settlement.model.as_deref().unwrap_or_default())?;
        admit_aliases(settlement, &self.choice)?;
        if settlement.target.as_ref().is_some_and(|target| !policy::sees_connection(&key, &target.connection.id)) {
            let message = "This API key may not use the connection of this conversation any more.";
            return Err(Error::client(Kind::Forbidden, message).about("allowedConnections"));
        }
        limits::renew(&self.shared, settlement, &key)
    }

    /// Ends what may not go on; it was served until now.
    async fn end(&self, writer: &mut tokio::io::WriteHalf<Stream>, error: Error) -> Ended {
        self.send_error(&error);
        let _told = send(writer, frames::CLOSE, &1000_u16.to_be_bytes()).await;
        Ended { outcome: Outcome::Completed, error: Some(error), code: 1008 }
    }

    fn broken(&self, error: Error) -> Ended {
        self.send_error(&error);
        Ended { outcome: Outcome::UpstreamFailed, error: Some(error), code: 1011 }
    }
}

/// The provider has closed the conversation.
fn left(code: u16) -> Ended {
    let is_orderly = matches!(code, 1000 | 1001 | 1005);
    let passed = if matches!(code, 1000..=1003 | 1007..=1011 | 3000..=4999) { code } else { 1000 };
    if is_orderly {
        return Ended { outcome: Outcome::Completed, error: None, code: passed };
    }
    let message = format!("The provider closed the conversation with {code}.");
    let error = Error::upstream(Kind::UpstreamStatus, Retry::Never, message);
    Ended { outcome: Outcome::UpstreamFailed, error: Some(error), code: passed }
}

async fn send(writer: &mut tokio::io::WriteHalf<Stream>, opcode: u8, payload: &[u8]) -> Result<(), Error> {
    let mask = random::<4>().map_err(|_| Error::gateway(Kind::Internal, "There is no randomness."))?;
    let frame = frames::encode(opcode, payload, mask);
    match tokio::time::timeout(WRITE_DEADLINE, writer.write_all(&frame)).await {
        Ok(Ok(())) => Ok(()),
        _ => Err(Error::upstream(Kind::UpstreamReset, Retry::Never, "The provider takes no more of the conversation.")),
    }
}

/// A connection that the provider has switched to frames, and what it sent behind its head.
async fn connect(shared: &Shared, target: &Target, model: &str) -> Result<(Stream, Vec<u8>), Error> {
    let timeouts = &target.connection.timeouts;
    let refused = || {
        Error::upstream(Kind::UpstreamRefused, Retry::NothingSent, "The provider did not take the connection in time.")
    };
    let dialled =
        tokio::time::timeout(Duration::from_millis(timeouts.connect_ms), shared.pool.dial(&target.origin)).await;
    let mut stream: Stream = dialled.map_err(|_| refused())??;
    let nonce = random::<16>().map_err(|_| Error::gateway(Kind::Internal, "There is no randomness."))?;
    let nonce = STANDARD.encode(nonce);
    let uri = target.uri_of(&format!("/realtime?model={}", encode(model)))?;
    let mut head = format!("GET {uri} HTTP/1.1\r\n").into_bytes();
    let no_form = Contents::Form { content_type: &header::HeaderValue::from_static(""), chunks: &[] };
    let proof = attempt::prove(&shared.pool, target, &uri, no_form).await.map_err(|failed| failed.error)?;
    for (name, value) in target.headers.iter().chain(proof.iter().map(|(name, value)| (name, value))) {
        if !matches!(*name, header::CONTENT_TYPE | header::ACCEPT_ENCODING) {
            head.extend_from_slice(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
        }
    }
    head.extend_from_slice(
        format!("connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: {nonce}\r\n\r\n").as_bytes(),
    );
    let answering = async {
        stream.write_all(&head).await.map_err(|_| cut())?;
        let mut read = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            if let Some(end) = memchr::memmem::find(&read, b"\r\n\r\n") {
                return Ok((read[..end].to_vec(), read[end + 4..].to_vec()));
            }
            let count = stream.read(&mut buffer).await.map_err(|_| cut())?;
            if count == 0 || read.len() > MAX_HEAD_BYTES {
                return Err(cut());
            }
            read.extend_from_slice(&buffer[..count]);
        }
    };
    let (head, early) = tokio::time::timeout(Duration::from_millis(timeouts.header_ms), answering)
        .await
        .map_err(|_| Error::upstream(Kind::UpstreamTimeout, Retry::Never, "The provider sent no answer in time."))??;
    let judged = judge(&String::from_utf8_lossy(&head), &nonce);
    if judged.as_ref().is_err_and(|error| error.kind == Kind::UpstreamAuth) {
        target.hot.access_token.forget();
    }
    judged.map(|()| (stream, early))
}

fn cut() -> Error {
    Error::upstream(Kind::UpstreamReset, Retry::NothingSent, "The provider closed the connection before it answered.")
}

/// Whether the provider has switched, and to this conversation.
fn judge(head: &str, nonce: &str) -> Result<(), Error> {
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap_or_default().split(' ').nth(1).unwrap_or_default();
    let fail = |kind, message: String| Err(Error::upstream(kind, Retry::Elsewhere, message));
    match status {
        "101" => {}
        "401" | "402" | "403" => {
            return fail(Kind::UpstreamAuth, format!("The provider refused the connection's credential ({status})."))
        }
        "429" => return fail(Kind::UpstreamRateLimited, "The provider limits this connection.".into()),
        "503" | "529" => return fail(Kind::UpstreamOverloaded, format!("The provider is overloaded ({status}).")),
        "400" | "404" => {
            let message = format!("The provider has no such conversation ({status}).");
            return Err(Error::upstream(Kind::InvalidRequest, Retry::Never, message));
        }
        _ => return fail(Kind::UpstreamStatus, "The provider did not switch to a WebSocket.".into()),
    }
    let accept = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("sec-websocket-accept").then(|| value.trim())
    });
    let expected = STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{nonce}{ACCEPT_SALT}").as_bytes()));
    if accept == Some(expected.as_str()) {
        return Ok(());
    }
    fail(Kind::UpstreamInvalid, "The provider's handshake is not as the protocol says.".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_stands_in_the_query() {
        assert_eq!(model_of(b"a=1&model=openai%2Fgpt-realtime").ok().as_deref(), Some("openai/gpt-realtime"));
        for bad in [
            "",
            "models=x",
            "model=%zz",
            "model=%ff",
            "model=a/b&model=a/c",
            "model=a/b&%6dodel=a/c",
            "model=a/b&Model=a/c",
            "+model=a/b&model=a/c",
        ] {
            assert!(model_of(bad.as_bytes()).is_err(), "{bad}");
        }
        assert_eq!(encode("a/b c"), "a%2Fb%20c");
    }

    #[test]
    fn a_handshake_is_held_to_its_nonce() {
        // The example of RFC 6455, section 1.3.
        let nonce = "dGhlIHNhbXBsZSBub25jZQ==";
        let head = |accept: &str| format!("HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: {accept}");
        assert!(judge(&head("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), nonce).is_ok());
        assert!(judge(&head("x"), nonce).is_err());
        let refused = judge("HTTP/1.1 401 Unauthorized", nonce).map_err(|error| error.kind);
        assert_eq!(refused, Err(Kind::UpstreamAuth));
    }
}
