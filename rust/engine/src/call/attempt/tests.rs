use super::*;
use crate::call::conversation::hedge;
use crate::call::kind::Reply;
use crate::exchange::Head;
use crate::route::choice::Choice;
use crate::route::choose::{choose, RoutingHints};
use crate::testing;
use crate::upstream::attempt::{self, Contents, Upstream};
use crate::upstream::connector::{Connector, Origin};
use crate::upstream::half_open;
use crate::upstream::target::Target;
use crate::upstream::wire::Pool;
use bytes::Bytes;
use fairlead_core::strategy::{Availability, Demand};
use fairlead_core::{Error, ErrorKind, Retry};
use fairlead_dialect::Pieces;
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use serde_json::{json, Value};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixListener;

fn connection(id: &str, priority: u32) -> Value {
    json!({
        "id": id, "provider": id, "prefixes": ["p"], "dialect": "openai", "base_url": format!("http://{id}.example"),
        "auth": "none", "priority": priority,
    })
}

/// One model on two connections of two providers.
fn one_model() -> Choice {
    let active = testing::active(&json!({"version": 1, "connections": [connection("a", 1), connection("b", 2)]}));
    choose(&active, "p/m", None, RoutingHints::default()).expect("a choice")
}

/// The result of a request to a scripted target.
enum Step {
    Answers,
    Fails(AttemptFailure),
    /// The target fails after the caller has received the head of a stream.
    FailsAfterHead(AttemptFailure),
}

/// A kind of call whose targets follow a script, with a delay for each step.
#[derive(Default)]
struct Script {
    steps: Mutex<VecDeque<(Duration, Step)>>,
    order: Mutex<Vec<String>>,
}

impl Script {
    fn of(steps: impl IntoIterator<Item = Step>) -> Self {
        let steps = steps.into_iter().map(|step| (Duration::from_millis(10), step)).collect();
        Self { steps: Mutex::new(steps), order: Mutex::default() }
    }
}

impl CallKind for Script {
    async fn send(&self, call: &mut Call, at: usize) -> Result<Reply, AttemptFailure> {
        let target = Arc::clone(&call.choice.targets[at]);
        self.order.lock().push(target.connection.id.clone());
        let model = call.choice.upstream_model(at).to_owned();
        let permit = half_open::acquire(&target, &model).await?;
        let (after, step) = self.steps.lock().pop_front().expect("a step");
        tokio::time::sleep(after).await;
        let outcome = match step {
            Step::Answers => Ok(Reply::Complete(Bytes::from_static(b"{}").into())),
            Step::Fails(failed) => Err(failed),
            Step::FailsAfterHead(failed) => {
                call.settlement.status = 200;
                call.settlement.exchange.start(Head { status: StatusCode::OK, headers: HeaderMap::new() }, []);
                Err(failed)
            }
        };
        permit.complete(&outcome);
        outcome
    }
}

fn failed(kind: ErrorKind, retry: Retry) -> AttemptFailure {
    Error::upstream(kind, retry, "failed").into()
}

/// Runs a call with a script. Returns the requested targets, the head that the caller received, and the call.
async fn run_script(name: &str, choice: Choice, script: &Script) -> (Vec<String>, Head, Call) {
    let mut call = testing::call(&testing::shared(name));
    call.choice = choice;
    run(&mut call, script, &SmallVec::new()).await;
    let head = call.settlement.exchange.take_head().expect("a head");
    (script.order.lock().clone(), head, call)
}

fn availability(target: &Target) -> Availability {
    target.availability("m", crate::clock::monotonic_ms()).0
}

#[tokio::test(start_paused = true)]
async fn what_is_safe_to_repeat_goes_to_the_next_target() {
    for (kind, retry) in [
        (ErrorKind::UpstreamRefused, Retry::NothingSent),
        (ErrorKind::UpstreamReset, Retry::ReusedConnection),
        (ErrorKind::UpstreamStatus, Retry::Elsewhere),
        (ErrorKind::UpstreamOverloaded, Retry::Elsewhere),
    ] {
        let choice = one_model();
        let (first, second) = (Arc::clone(&choice.targets[0]), Arc::clone(&choice.targets[1]));
        let script = Script::of([Step::Fails(failed(kind, retry)), Step::Answers]);
        let (order, head, call) = run_script("failover", choice, &script).await;
        assert_eq!(order, ["a", "b"], "{kind:?}");
        assert_eq!(
            (head.status, &head.headers["x-gateway-fallback-attempts"]),
            (StatusCode::OK, &"1".parse().expect("1"))
        );
        assert_eq!((call.settlement.attempts, call.failures.len()), (2, 1));
        assert_eq!(
            (availability(&first), availability(&second)),
            (Availability::Cooling, Availability::Able),
            "{kind:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_with_nothing_in_it_goes_to_the_next_target_and_blames_no_connection() {
    let empty = || Step::Fails(failed(ErrorKind::EmptyAnswer, Retry::Elsewhere));
    let choice = one_model();
    let first = Arc::clone(&choice.targets[0]);
    let (order, head, call) = run_script("empty", choice, &Script::of([empty(), Step::Answers])).await;
    assert_eq!((order, head.status), (vec!["a".to_owned(), "b".to_owned()], StatusCode::OK));
    assert_eq!(call.failures.len(), 1);
    assert_eq!(availability(&first), Availability::Able, "a caller may have asked for nothing");

    let (order, head, _) = run_script("all-empty", one_model(), &Script::of([empty(), empty()])).await;
    assert_eq!((order.len(), head.status.as_u16()), (2, 502));
}

/// A combo with these rules over two connections of two providers.
fn combo(rules: &Value) -> Choice {
    let combos = json!([{
        "id": "c", "name": "c", "steps": [{"kind": "model", "model": "p/m"}], "rules": rules,
    }]);
    let connections = [connection("a", 1), connection("b", 2)];
    let active = testing::active(&json!({"version": 1, "connections": connections, "combos": combos}));
    let at = active.combos.book.find("c").expect("a combo");
    active.combos.choose(active.reach(), at, &Demand::default(), None).expect("a choice")
}

#[tokio::test(start_paused = true)]
async fn all_targets_are_tried_again_as_often_as_a_combo_says() {
    let fails = || Step::Fails(failed(ErrorKind::UpstreamStatus, Retry::Elsewhere));
    let rules = json!({"max_set_retries": 1, "set_retry_delay_ms": 50});
    let began = tokio::time::Instant::now();
    let script = Script::of([fails(), fails(), fails(), Step::Answers]);
    let (order, head, call) = run_script("rounds", combo(&rules), &script).await;
    assert_eq!((order, head.status.as_u16()), (["a", "b", "a", "b"].map(str::to_owned).to_vec(), 200));
    assert_eq!((call.fallbacks(), call.settlement.attempts), (3, 4));
    assert_eq!(began.elapsed().as_millis(), 90, "four attempts and a pause");

    let script = Script::of([fails(), fails(), fails(), fails()]);
    let (order, head, _) = run_script("rounds-over", combo(&rules), &script).await;
    assert_eq!((order.len(), head.status.as_u16()), (4, 502));
}

#[tokio::test(start_paused = true)]
async fn a_target_is_asked_again_as_often_as_a_combo_says() {
    let fails = |kind| Step::Fails(failed(kind, Retry::Elsewhere));
    let rules = json!({"max_retries": 2, "retry_delay_ms": 50});
    let began = tokio::time::Instant::now();
    let script = Script::of([fails(ErrorKind::UpstreamOverloaded), fails(ErrorKind::EmptyAnswer), Step::Answers]);
    let (order, head, call) = run_script("repeats", combo(&rules), &script).await;
    assert_eq!((order, head.status.as_u16()), (["a", "a", "a"].map(str::to_owned).to_vec(), 200));
    assert_eq!((call.fallbacks(), call.settlement.attempts, began.elapsed().as_millis()), (2, 3, 130));

    let empty = || fails(ErrorKind::EmptyAnswer);
    let script = Script::of([empty(), empty(), empty(), fails(ErrorKind::UpstreamRateLimited)]);
    let (order, head, _) = run_script("repeats-over", combo(&rules), &script).await;
    assert_eq!(order, ["a", "a", "a", "b"], "a limit does not pass at once");
    assert_eq!(head.status.as_u16(), 429);

    let hurried = json!({"max_retries": 2, "retry_delay_ms": 500, "combo_timeout_ms": 400});
    let (order, _, _) = run_script("repeats-late", combo(&hurried), &Script::of([empty(), Step::Answers])).await;
    assert_eq!(order, ["a", "b"], "no time for the pause");
}

#[tokio::test(start_paused = true)]
async fn a_target_that_takes_longer_than_its_combo_lets_it_is_left() {
    let slow = |ms, step| (Duration::from_millis(ms), step);
    let choice = combo(&json!({"target_timeout_ms": 100}));
    let first = Arc::clone(&choice.targets[0]);
    let script =
        Script { steps: Mutex::new([slow(500, Step::Answers), slow(10, Step::Answers)].into()), ..Script::default() };
    let (order, head, _) = run_script("slow", choice, &script).await;
    assert_eq!((order.len(), head.status.as_u16()), (2, 200));
    assert_eq!(availability(&first), Availability::Able, "others may give it more time");
}

#[tokio::test(start_paused = true)]
async fn a_limit_is_waited_for_as_its_provider_says() {
    let choice = one_model();
    let first = Arc::clone(&choice.targets[0]);
    let limited = |hint_ms| {
        Step::Fails(AttemptFailure {
            hint_ms: Some(hint_ms),
            ..failed(ErrorKind::UpstreamRateLimited, Retry::Elsewhere)
        })
    };
    let (order, head, _) = run_script("limits", choice, &Script::of([limited(60_000), limited(9_500)])).await;
    assert_eq!(order, ["a", "b"]);
    assert_eq!((head.status.as_u16(), &head.headers["retry-after"]), (429, &"10".parse().expect("10")));
    assert_eq!(availability(&first), Availability::Closed);
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_done_is_not_repeated() {
    let choice = one_model();
    let first = Arc::clone(&choice.targets[0]);
    let script = Script::of([Step::Fails(failed(ErrorKind::UpstreamTimeout, Retry::Never))]);
    let (order, head, _) = run_script("timeout", choice, &script).await;
    assert_eq!((order, head.status.as_u16()), (vec!["a".to_owned()], 504));
    assert_eq!(availability(&first), Availability::Cooling);

    let choice = one_model();
    let first = Arc::clone(&choice.targets[0]);
    let rejected = AttemptFailure { blames_connection: false, ..failed(ErrorKind::InvalidRequest, Retry::Never) };
    let (order, _, _) = run_script("rejected", choice, &Script::of([Step::Fails(rejected)])).await;
    assert_eq!((order, availability(&first)), (vec!["a".to_owned()], Availability::Able), "the caller's own fault");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_repeated_once_the_caller_has_a_head() {
    let script = Script::of([Step::FailsAfterHead(failed(ErrorKind::UpstreamReset, Retry::Elsewhere))]);
    let (order, _, call) = run_script("headed", one_model(), &script).await;
    assert_eq!(order, ["a"]);
    let taken = call.settlement.exchange.take().expect("an end");
    let text = String::from_utf8(taken.chunks.concat()).expect("text");
    assert!(taken.ended && !taken.aborted && text.contains("upstream_reset"), "{text}");
}

/// One of two racing targets: its delay and its result. Counts the targets that were dropped before they finished.
async fn contest(
    after_ms: u64,
    outcome: Result<u32, AttemptFailure>,
    dropped: &AtomicUsize,
) -> Result<u32, AttemptFailure> {
    struct Counted<'a>(&'a AtomicUsize, bool);
    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(usize::from(!self.1), Ordering::Relaxed);
        }
    }
    let mut counted = Counted(dropped, false);
    tokio::time::sleep(Duration::from_millis(after_ms)).await;
    counted.1 = true;
    outcome
}

struct Race {
    won: Option<(usize, u32)>,
    took_ms: u128,
    attempts: u32,
    /// The connections that failed, in the order of the choice.
    failed: Vec<String>,
    dropped: usize,
}

/// Runs a race in which the first target has a head start of 100 ms. Each target responds or fails after its delay.
async fn race(times: [u64; 2], fails: [Option<Retry>; 2]) -> Race {
    let mut call = testing::call(&testing::shared("race"));
    call.choice = one_model();
    let dropped = AtomicUsize::new(0);
    let began = tokio::time::Instant::now();
    let outcome = |at: usize| match fails[at] {
        None => Ok(at as u32),
        Some(retry) => Err(failed(ErrorKind::UpstreamStatus, retry)),
    };
    let send = |at: usize| contest(times[at], outcome(at), &dropped);
    let won = hedge::race(&mut call, Duration::from_millis(100), false, send).await;
    Race {
        won,
        took_ms: began.elapsed().as_millis(),
        attempts: call.settlement.attempts,
        failed: call.failures.iter().map(|(at, _)| call.choice.targets[*at].connection.id.clone()).collect(),
        dropped: dropped.load(Ordering::Relaxed),
    }
}

#[tokio::test(start_paused = true)]
async fn the_second_joins_after_the_delay_and_the_first_to_answer_wins() {
    let quick = race([90, 1], [None, None]).await;
    assert_eq!((quick.won, quick.took_ms, quick.attempts, quick.dropped), (Some((0, 0)), 90, 1, 0));
    let joined = race([500, 50], [None, None]).await;
    assert_eq!((joined.won, joined.took_ms, joined.attempts, joined.dropped), (Some((1, 1)), 150, 2, 1));
    let first = race([120, 50], [None, None]).await;
    assert_eq!((first.won, first.took_ms, first.attempts, first.dropped), (Some((0, 0)), 120, 2, 1));
    assert!(quick.failed.is_empty() && joined.failed.is_empty() && first.failed.is_empty(), "who lost is not blamed");
}

#[tokio::test(start_paused = true)]
async fn a_race_goes_on_without_who_failed() {
    let other = race([120, 300], [Some(Retry::Elsewhere), None]).await;
    assert_eq!((other.won, other.took_ms, other.failed), (Some((1, 1)), 400, vec!["a".to_owned()]));
    let both = race([300, 50], [Some(Retry::Elsewhere), Some(Retry::Elsewhere)]).await;
    assert_eq!((both.won, both.took_ms, both.failed), (None, 300, vec!["a".to_owned(), "b".to_owned()]));
    let early = race([50, 1], [Some(Retry::Elsewhere), None]).await;
    assert_eq!((early.won, early.attempts, early.failed), (None, 1, vec!["a".to_owned()]), "the second was not asked");
    let last = race([300, 50], [None, Some(Retry::Never)]).await;
    assert_eq!(
        (last.won, last.failed, last.dropped),
        (None, vec!["b".to_owned()], 1),
        "what may have been done is not repeated"
    );
}

#[tokio::test(start_paused = true)]
async fn one_caller_finds_out_whether_a_provider_is_back() {
    let choice = one_model();
    let target = Arc::clone(&choice.targets[0]);
    target.blame(ErrorKind::UpstreamRateLimited, Some(60_000));
    let script = Script::of([Step::Answers]);
    let (order, head, call) = run_script("closed", choice, &script).await;
    assert_eq!((order, head.status), (vec!["a".to_owned(), "b".to_owned()], StatusCode::OK));
    assert!(call.failures.iter().all(|(_, failed)| !failed.blames_connection), "what was never sent blames nobody");
}

/// Sends one request to a provider that accepts it and then sends `answer`, or nothing if it is empty.
async fn send_to(name: &str, answer: &'static str) -> (Result<u16, AttemptFailure>, Arc<Target>) {
    let path = std::env::temp_dir().join(format!("fairlead-{name}-{}.sock", std::process::id()));
    // A previous run may have left the file.
    let _absent = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).expect("a socket");
    let provider = crate::task::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let _read = stream.read(&mut [0; 4096]).await.expect("a request");
        if answer.is_empty() {
            std::future::pending::<()>().await;
        }
        stream.write_all(answer.as_bytes()).await.expect("written");
    });
    let choice = one_model();
    let mut target = Target::build(
        Arc::clone(&choice.targets[0].connection),
        &fairlead_core::Sealer::new(&[0; 32]).expect("a key"),
        Arc::default(),
        "0",
    )
    .expect("usable");
    target.origin = Arc::new(Origin::Unix(path));
    let target = Arc::new(target);
    let uri = target.uri("m", false).expect("an address");
    let body = Pieces::from_iter([Bytes::from_static(b"{}")]);
    let body = Contents::Json(&body);
    let request = Upstream { uri: &uri, model: "m", betas: None, session: None, body, is_stream: false };
    let pool = Pool::new(Connector::default());
    let sent = attempt::send(&pool, &target, request).await;
    provider.abort();
    (sent.map(|response| response.status().as_u16()), target)
}

#[tokio::test(start_paused = true)]
async fn an_answer_says_whether_another_target_may_be_asked() {
    let (sent, _) = send_to("ok", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
    assert_eq!(sent.ok(), Some(200));
    for (name, answer, kind, retry, hint_ms) in [
        (
            "429",
            "HTTP/1.1 429 No\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n",
            ErrorKind::UpstreamRateLimited,
            Retry::Elsewhere,
            Some(7_000),
        ),
        ("503", "HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n", ErrorKind::UpstreamOverloaded, Retry::Elsewhere, None),
        ("500", "HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n", ErrorKind::UpstreamStatus, Retry::Elsewhere, None),
        ("400", "HTTP/1.1 400 No\r\ncontent-length: 0\r\n\r\n", ErrorKind::InvalidRequest, Retry::Never, None),
        ("cut", "HTTP/1.1 2", ErrorKind::UpstreamReset, Retry::Never, None),
        ("noise", "SSH-2.0-x\r\n\r\n", ErrorKind::UpstreamInvalid, Retry::Never, None),
    ] {
        let (sent, target) = send_to(name, answer).await;
        let failed = sent.expect_err(name);
        assert_eq!((failed.error.kind, failed.error.retry, failed.hint_ms), (kind, retry, hint_ms), "{name}");
        assert_eq!(failed.blames_connection, name != "400", "{name}");
        target.hold_against("m", &failed);
        assert_eq!(availability(&target) == Availability::Able, name == "400", "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_come_ends_with_its_deadline() {
    let began = tokio::time::Instant::now();
    let (sent, target) = send_to("silent", "").await;
    let failed = sent.expect_err("late");
    assert_eq!((failed.error.kind, failed.error.retry), (ErrorKind::UpstreamTimeout, Retry::Never));
    assert!(began.elapsed() >= Duration::from_millis(target.connection.timeouts.answer_ms));
}
