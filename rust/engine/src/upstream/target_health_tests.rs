use super::*;
use crate::active_config::ActiveConfig;
use crate::upstream::failure::Rejection;
use crate::upstream::health::is_own_machine;
use fairlead_core::{Error, Retry, Sealer, Snapshot};
use fairlead_dialect::openai::answer::UpstreamError;
use fairlead_dialect::reason_of;
use http::{HeaderName, HeaderValue, StatusCode};
use std::sync::Arc;

fn document(version: u64, extra: &str, connection_extra: &str) -> Snapshot {
    let connection = |id: &str, host: &str| {
        format!(
            r#"{{"id":"{id}","provider":"p","prefixes":["p"],"dialect":"openai","base_url":"http://{host}","auth":"none"{connection_extra}}}"#
        )
    };
    let connections = [connection("a", "api.example"), connection("b", "api.example")].join(",");
    let json = format!(r#"{{"version":{version},"connections":[{connections}]{extra}}}"#);
    Snapshot::parse(json.as_bytes()).expect("a snapshot")
}

fn active(snapshot: Snapshot, before: &ActiveConfig) -> ActiveConfig {
    ActiveConfig::build(snapshot, before, &Sealer::new(&[0; 32]).expect("a key"), "0")
}

fn target(active: &ActiveConfig, id: &str) -> Arc<Target> {
    let found = active.targets.iter().flatten().find(|target| target.connection.id == id);
    Arc::clone(found.expect("there"))
}

fn availability(target: &Target, model: &str) -> Availability {
    target.availability(model, clock::monotonic_ms()).0
}

fn failed(kind: ErrorKind, status: Option<u16>) -> AttemptFailure {
    let mut error = Error::upstream(kind, Retry::Elsewhere, "failed");
    error.upstream_status = status;
    AttemptFailure::from(error)
}

fn rejected(status: u16, code: &str) -> AttemptFailure {
    let rejection = Rejection {
        status: StatusCode::from_u16(status).expect("a status"),
        reason: reason_of(&UpstreamError { code: Some(code.to_owned()), ..UpstreamError::default() }),
        message: String::new(),
        kind: None,
        code: Some(code.to_owned()),
        param: None,
        detail: None,
    };
    let error = Error::upstream(ErrorKind::InvalidRequest, Retry::Never, "rejected");
    AttemptFailure { error, hint_ms: None, rejection: Some(Box::new(rejection)), blames_connection: false }
}

fn head(headers: &[(&'static str, &'static str)]) -> HeaderMap {
    headers.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
}

#[test]
fn a_model_that_a_provider_does_not_have_is_locked_out_alone() {
    let active = active(document(1, "", ""), &ActiveConfig::default());
    let one = target(&active, "a");
    one.hold_against("gone", &rejected(404, ""));
    one.hold_against("unknown", &rejected(400, "model_not_found"));
    one.hold_against("fine", &rejected(400, "invalid_value"));
    assert_eq!(availability(&one, "gone"), Availability::Cooling, "tried when nothing else is left");
    assert_eq!(
        (availability(&one, "unknown"), availability(&one, "fine")),
        (Availability::Cooling, Availability::Able)
    );
    assert_eq!(availability(&target(&active, "b"), "gone"), Availability::Able);
    served_later(&one, "gone");
    assert_eq!(availability(&one, "gone"), Availability::Able);
}

/// Serves the model with an attempt that starts after everything so far.
fn served_later(target: &Target, model: &str) {
    let now_ms = clock::monotonic_ms();
    while clock::monotonic_ms() == now_ms {
        std::hint::spin_loop();
    }
    target.served_model(model, Duration::ZERO);
}

#[test]
fn a_limit_rests_the_model_first_and_the_connection_when_two_models_are_limited() {
    let active = active(document(1, "", ""), &ActiveConfig::default());
    let one = target(&active, "a");
    let limited = || AttemptFailure { hint_ms: Some(60_000), ..failed(ErrorKind::UpstreamRateLimited, Some(429)) };
    one.hold_against("m", &limited());
    assert_eq!((availability(&one, "m"), availability(&one, "other")), (Availability::Closed, Availability::Able));
    one.hold_against("m", &limited());
    assert_eq!(availability(&one, "other"), Availability::Able, "one model says it twice");
    one.served_model("m", Duration::from_secs(9));
    assert_eq!(availability(&one, "m"), Availability::Closed, "an attempt from before the limit ends nothing");
    one.hold_against("m2", &limited());
    assert_eq!((availability(&one, "m2"), availability(&one, "other")), (Availability::Closed, Availability::Closed));
    assert_eq!(availability(&target(&active, "b"), "m"), Availability::Able);
}

#[test]
fn one_caller_finds_out_whether_a_model_is_still_limited() {
    let active = active(document(1, "", ""), &ActiveConfig::default());
    let one = target(&active, "a");
    let limited = || AttemptFailure { hint_ms: Some(60_000), ..failed(ErrorKind::UpstreamRateLimited, Some(429)) };
    one.hold_against("m", &limited());
    assert!(matches!(one.begin("m", clock::monotonic_ms()), AttemptPermit::Closed(Some(_))));
    assert_eq!(one.begin("other", clock::monotonic_ms()), AttemptPermit::Free);
    let over_ms = clock::monotonic_ms() + 61_000;
    assert_eq!((one.begin("m", over_ms), one.begin("m", over_ms)), (AttemptPermit::Probe, AttemptPermit::Wait));
    one.give_up_probe("m");
    assert_eq!(one.begin("m", over_ms), AttemptPermit::Probe);
    one.answered("m");
    assert_eq!(one.begin("m", over_ms), AttemptPermit::Free);
}

#[test]
fn without_lockouts_a_limit_rests_the_connection() {
    let active =
        active(document(1, r#","resilience":{"model_lockout":{"enabled":false}}"#, ""), &ActiveConfig::default());
    let one = target(&active, "a");
    one.hold_against("m", &failed(ErrorKind::UpstreamRateLimited, Some(429)));
    assert_eq!(availability(&one, "other"), Availability::Closed);
}

#[test]
fn a_day_of_retry_after_is_honoured_for_an_hour() {
    let active = active(document(1, "", ""), &ActiveConfig::default());
    let one = target(&active, "a");
    one.hold_against(
        "m",
        &AttemptFailure { hint_ms: Some(864_000_000), ..failed(ErrorKind::UpstreamRateLimited, Some(429)) },
    );
    let (_, left_ms) = one.availability("m", clock::monotonic_ms());
    assert!((3_590_000..=3_600_000).contains(&left_ms), "{left_ms}");
}

#[test]
fn an_operator_says_which_statuses_are_about_the_model() {
    let extra = r#","resilience":{"model_lockout":{"status_codes":[429]}}"#;
    let active = active(document(1, extra, ""), &ActiveConfig::default());
    let one = target(&active, "a");
    one.hold_against(
        "m",
        &AttemptFailure { hint_ms: Some(60_000), ..failed(ErrorKind::UpstreamRateLimited, Some(429)) },
    );
    assert_eq!((availability(&one, "m"), availability(&one, "other")), (Availability::Closed, Availability::Able));
    one.hold_against("m2", &rejected(404, ""));
    assert_eq!(availability(&one, "m2"), Availability::Able);
    let off =
        self::active(document(1, r#","resilience":{"model_lockout":{"enabled":false}}"#, ""), &ActiveConfig::default());
    target(&off, "a").hold_against("m", &rejected(404, ""));
    assert_eq!(availability(&target(&off, "a"), "m"), Availability::Able);
}

#[test]
fn a_provider_that_fails_over_all_its_connections_rests_as_a_whole() {
    let active =
        active(document(1, r#","resilience":{"provider_breaker":{"open_after":4}}"#, ""), &ActiveConfig::default());
    let (one, other) = (target(&active, "a"), target(&active, "b"));
    for at in 0..4 {
        let target = if at % 2 == 0 { &one } else { &other };
        target.blame(ErrorKind::UpstreamStatus, None);
    }
    assert_eq!((availability(&one, "m"), availability(&other, "m")), (Availability::Closed, Availability::Closed));
    assert!(one.is_broken(clock::monotonic_ms()));
    assert!(matches!(one.begin("m", clock::monotonic_ms()), AttemptPermit::Closed(Some(_))));
    let over_ms = clock::monotonic_ms() + 60_000;
    assert_eq!(
        (one.begin("m", over_ms), other.begin("m", over_ms)),
        (AttemptPermit::Probe, AttemptPermit::Wait),
        "one for the provider"
    );
    one.answered("m");
    assert_eq!(other.begin("m", over_ms), AttemptPermit::Probe, "its own rest is half over too");
    one.served(Duration::ZERO, Duration::ZERO);
    assert!(!other.is_broken(clock::monotonic_ms()));
}

#[test]
fn credentials_and_limits_say_nothing_of_the_provider() {
    let active =
        active(document(1, r#","resilience":{"provider_breaker":{"open_after":2}}"#, ""), &ActiveConfig::default());
    for kind in
        [ErrorKind::UpstreamAuth, ErrorKind::UpstreamRateLimited, ErrorKind::UpstreamInvalid, ErrorKind::Draining]
    {
        for _ in 0..5 {
            target(&active, "a").blame(kind, None);
        }
    }
    assert_eq!(availability(&target(&active, "b"), "m"), Availability::Able);
}

#[test]
fn quotas_close_until_their_reset_and_rates_only_weigh() {
    let active = active(document(1, "", ""), &ActiveConfig::default());
    let (one, other) = (target(&active, "a"), target(&active, "b"));
    one.observe_head(
        "m",
        &head(&[
            ("x-ratelimit-limit-requests", "100"),
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", "6s"),
        ]),
    );
    assert_eq!(availability(&one, "m"), Availability::Able);
    let facts = one.facts("m", Facts::default(), clock::monotonic_ms());
    assert!(facts.headroom() < 0.01 && facts.session.is_some());
    let later = one.facts("m", Facts::default(), clock::monotonic_ms() + 6_001);
    assert!(later.headroom() > 0.99, "full again");
    other.observe_head(
        "m",
        &head(&[
            ("anthropic-ratelimit-unified-5h-utilization", "0.985"),
            ("anthropic-ratelimit-unified-7d-utilization", "0.5"),
            ("anthropic-ratelimit-unified-5h-reset", "4102444800"),
        ]),
    );
    assert_eq!(availability(&other, "m"), Availability::Closed, "two percent are kept back");
    let facts = other.facts("m", Facts::default(), clock::monotonic_ms());
    assert_eq!(facts.weekly.map(|window| window.remaining), Some(0.5));
    assert_eq!(other.hot.condition.lock().health.state(clock::monotonic_ms()), HealthState::PolicyBlocked);
}

#[test]
fn what_is_said_for_good_ends_a_connection_and_repeated_refusals_do() {
    let active = active(document(1, "", ""), &ActiveConfig::default());
    let (one, other) = (target(&active, "a"), target(&active, "b"));
    one.observe_refusal(429, Some("insufficient_quota"), "", clock::monotonic_ms());
    assert!(one.is_out_of_pool(clock::monotonic_ms()));
    assert_eq!(one.begin("m", u64::MAX / 2), AttemptPermit::Closed(None));
    for at in 0..3 {
        assert!(!other.is_out_of_pool(clock::monotonic_ms()), "after {at}");
        other.observe_refusal(401, None, "", clock::monotonic_ms() + 1_000);
    }
    assert_eq!(other.hot.condition.lock().health.terminal(), Some(TerminalState::Expired));
    other.observe_refusal(403, None, "", 0);
}

#[test]
fn an_operators_word_is_carried_out_once_and_by_who_was_there() {
    let first = active(document(1, "", ""), &ActiveConfig::default());
    target(&first, "a").observe_refusal(429, Some("insufficient_quota"), "", 0);
    target(&first, "b").hold_against("gone", &rejected(404, ""));
    let clears = |text: &str| format!(r#","resilience":{{"clears":[{text}]}}"#);
    let models = clears(r#"{"number":1,"provider":"p","model":"*"}"#);
    let second = active(document(2, &models, ""), &first);
    assert_eq!(availability(&target(&second, "b"), "gone"), Availability::Able);
    assert!(target(&second, "a").is_out_of_pool(clock::monotonic_ms()));
    let all = clears(r#"{"number":1,"provider":"p","model":"*"},{"number":2,"connection":"a"}"#);
    let third = active(document(3, &all, ""), &second);
    assert_eq!(availability(&target(&third, "a"), "m"), Availability::Able);
    target(&third, "a").observe_refusal(429, Some("insufficient_quota"), "", 0);
    let fourth = active(document(4, &all, ""), &third);
    assert!(target(&fourth, "a").is_out_of_pool(clock::monotonic_ms()), "not again with each snapshot");
}

#[test]
fn what_outlives_a_worker_is_known_to_the_next() {
    let terminal = r#","held":{"state":"terminal","reason":"banned"}"#;
    let one = active(document(1, "", terminal), &ActiveConfig::default());
    assert_eq!(target(&one, "a").hot.condition.lock().health.terminal(), Some(TerminalState::Banned));
    let until_ms = clock::unix_ms() + 60_000;
    let empty = format!(r#","held":{{"state":"quota-exhausted","until_ms":{until_ms}}}"#);
    let other = active(document(1, "", &empty), &ActiveConfig::default());
    let now_ms = clock::monotonic_ms();
    assert_eq!(target(&other, "a").hot.condition.lock().health.state(now_ms), HealthState::QuotaExhausted);
    assert_eq!(availability(&target(&other, "a"), "m"), Availability::Closed);
    assert_eq!(target(&other, "a").availability("m", now_ms + 60_001).0, Availability::Able);
}

#[test]
fn who_has_heard_of_a_quota_itself_does_not_take_the_word_of_others() {
    let until_ms = clock::unix_ms() + 60_000;
    let empty = format!(r#","held":{{"state":"quota-exhausted","until_ms":{until_ms}}}"#);
    let first = active(document(1, "", ""), &ActiveConfig::default());
    target(&first, "a").observe_head(
        "m",
        &head(&[
            ("anthropic-ratelimit-unified-5h-utilization", "0.1"),
            ("anthropic-ratelimit-unified-5h-reset", "4102444800"),
        ]),
    );
    let second = active(document(2, "", &empty), &first);
    assert_eq!(availability(&target(&second, "a"), "m"), Availability::Able);
    assert_eq!(availability(&target(&second, "b"), "m"), Availability::Closed);
    let third = active(document(3, "", ""), &second);
    assert_eq!(availability(&target(&third, "b"), "m"), Availability::Able, "what others saw is over");
}

#[test]
fn hosts_are_told_apart() {
    for host in ["127.0.0.1", "::1", "localhost", "ollama", "192.168.1.4", "10.0.0.1", "fd00::1"] {
        assert!(is_own_machine(host), "{host}");
    }
    for host in ["api.openai.com", "8.8.8.8", "2606:4700::1"] {
        assert!(!is_own_machine(host), "{host}");
    }
}
