//! Tests of the idempotency window: who joins which call, what a late reader receives, and back-pressure on the
//! provider.

use super::*;
use crate::task;
use fairlead_cache::digest;
use std::time::Duration;

#[derive(Debug)]
struct SilentWake;

impl Wake for SilentWake {
    fn wake(&self, _: u64) {}
}

fn name(principal: &str) -> Name {
    Name { principal: principal.into(), key: "once".into() }
}

fn caller() -> Arc<Exchange> {
    Exchange::new(1, Arc::new(SilentWake))
}

fn head(status: StatusCode) -> Head {
    Head { status, headers: HeaderMap::new() }
}

fn leader(recordings: &Recordings, now_ms: u64) -> Arc<Recording> {
    match recordings.enter(name("a"), [1; 32], now_ms) {
        Ok(Role::Leader(recording)) => recording,
        other => panic!("{other:?}"),
    }
}

/// Reads the caller's whole response.
async fn complete_chunks(exchange: &Exchange) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    tokio::time::timeout(Duration::from_secs(5), async {
        while exchange.take_head().is_none() {
            tokio::task::yield_now().await;
        }
        loop {
            match exchange.take() {
                Some(taken) => {
                    bytes.extend(taken.chunks.concat());
                    if taken.ended {
                        return taken.aborted;
                    }
                }
                None => tokio::task::yield_now().await,
            }
        }
    })
    .await
    .map(|aborted| (bytes, aborted))
    .expect("an end")
}

async fn settle_down() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_follower_that_comes_in_the_middle_gets_all_and_the_leader_may_leave() {
    let recordings = Recordings::default();
    let (first, second) = (caller(), caller());
    let leading = Leader::new(&leader(&recordings, 0), 1);
    let source = Arc::clone(&leading.source);
    let own = Arc::clone(&first);
    let lead = task::spawn(async move { leading.lead(&own, std::future::ready(())).await });
    source.start(head(StatusCode::OK), [Bytes::from_static(b"one ")]);
    settle_down().await;

    let Ok(Role::Follower(recording)) = recordings.enter(name("a"), [1; 32], 1_000) else { panic!("a follower") };
    let own = Arc::clone(&second);
    let follow = task::spawn(async move { follow(recording, &own, |head| head.status = StatusCode::ACCEPTED).await });
    settle_down().await;
    first.cancel();
    lead.await.expect("left");
    assert!(!source.is_cancelled(), "the follower still listens");
    source.push([Bytes::from_static(b"two ")]);
    source.end([Bytes::from_static(b"three")]);
    assert_eq!(complete_chunks(&second).await, (b"one two three".to_vec(), false));
    assert_eq!(follow.await.expect("no panic"), Followed::Complete);
}

#[tokio::test]
async fn a_key_is_its_callers_and_its_requests() {
    let recordings = Recordings::default();
    let _first = leader(&recordings, 0);
    assert!(matches!(recordings.enter(name("b"), [1; 32], 0), Ok(Role::Leader(_))), "another caller");
    let refused = recordings.enter(name("a"), [2; 32], 0).expect_err("another body");
    assert_eq!(refused.kind, ErrorKind::Conflict);
    assert_ne!(digest(&[b"a", b"bc"]), digest(&[b"ab", b"c"]));
}

#[tokio::test]
async fn what_ended_well_is_given_for_five_seconds_and_a_failure_never() {
    let recordings = Recordings::default();
    let recording = leader(&recordings, 0);
    recording.begin(head(StatusCode::OK));
    recording.add(vec![Bytes::from_static(b"x")]);
    recording.end(false, false, 1_000);
    assert!(matches!(recordings.enter(name("a"), [1; 32], 1_000 + WINDOW_MS - 1), Ok(Role::Follower(_))));
    recordings.sweep(1_000 + WINDOW_MS);
    assert!(recordings.is_empty());
    drop(recording);
    assert_eq!(recordings.total_bytes.load(Ordering::Relaxed), 0);

    for (status, failed) in [(StatusCode::BAD_GATEWAY, false), (StatusCode::OK, true)] {
        let recording = leader(&recordings, 0);
        recording.begin(head(status));
        recording.end(false, failed, 1_000);
        drop(leader(&recordings, 1_001));
        recordings.sweep(u64::MAX);
        recordings.entries.lock().clear();
    }
}

#[tokio::test]
async fn when_all_have_left_the_work_ends() {
    let recordings = Recordings::default();
    let first = caller();
    let leading = Leader::new(&leader(&recordings, 0), 1);
    let source = Arc::clone(&leading.source);
    let own = Arc::clone(&first);
    let lead = task::spawn(async move { leading.lead(&own, std::future::ready(())).await });
    settle_down().await;
    first.cancel();
    lead.await.expect("left");
    settle_down().await;
    assert!(source.is_cancelled());
    assert_eq!(recordings.len(), 1);
    assert!(
        matches!(recordings.enter(name("a"), [1; 32], u64::MAX), Ok(Role::Leader(_))),
        "nobody waits for what was cut off"
    );
}

#[tokio::test]
async fn the_slowest_reader_holds_the_provider_back() {
    let recordings = Recordings::default();
    let first = caller();
    let recording = leader(&recordings, 0);
    let leading = Leader::new(&recording, 1);
    let source = Arc::clone(&leading.source);
    let own = Arc::clone(&first);
    let lead = task::spawn(async move { leading.lead(&own, std::future::ready(())).await });
    source.start(head(StatusCode::OK), []);
    let piece = Bytes::from(vec![b'x'; 64 * 1024]);
    for _ in 0..64 {
        source.push([piece.clone()]);
        settle_down().await;
    }
    // The caller read nothing. The data is limited to its buffer, one step of the recording and the source's buffer.
    assert!(recording.state.lock().bytes <= 3 * HIGH_WATER_BYTES, "{}", recording.state.lock().bytes);
    source.end([]);
    assert_eq!(complete_chunks(&first).await.0.len(), 64 * 64 * 1024);
    lead.await.expect("no panic");
}

#[tokio::test]
async fn a_long_answer_is_not_kept_but_reaches_its_caller() {
    let recordings = Recordings::default();
    let first = caller();
    let leading = Leader::new(&leader(&recordings, 0), 1);
    let source = Arc::clone(&leading.source);
    let own = Arc::clone(&first);
    let lead = task::spawn(async move { leading.lead(&own, std::future::ready(())).await });
    let count = MAX_RECORDING_BYTES / (64 * 1024) + 20;
    let feed = task::spawn(async move {
        source.start(head(StatusCode::OK), []);
        for _ in 0..count {
            source.push([Bytes::from(vec![b'x'; 64 * 1024])]);
            settle_down().await;
        }
        source.end([]);
    });
    assert_eq!(complete_chunks(&first).await.0.len(), count * 64 * 1024);
    feed.await.expect("no panic");
    lead.await.expect("no panic");
    assert!(matches!(recordings.enter(name("a"), [1; 32], 0), Ok(Role::Leader(_))));
    assert!(recordings.total_bytes.load(Ordering::Relaxed) < 2 * HIGH_WATER_BYTES);
}

/// A caller that is delayed before it reads, as by a key's `throttleDelayMs`.
#[tokio::test]
async fn who_comes_to_read_when_the_beginning_is_gone_gets_nothing_of_it() {
    let recordings = Recordings::default();
    let (first, second) = (caller(), caller());
    let leading = Leader::new(&leader(&recordings, 0), 1);
    let source = Arc::clone(&leading.source);
    let own = Arc::clone(&first);
    let lead = task::spawn(async move { leading.lead(&own, std::future::ready(())).await });
    source.start(head(StatusCode::OK), [Bytes::from_static(b"beginning")]);
    settle_down().await;

    let Ok(Role::Follower(recording)) = recordings.enter(name("a"), [1; 32], 0) else { panic!("a follower") };
    let count = MAX_RECORDING_BYTES / (64 * 1024) + 20;
    let own = Arc::clone(&source);
    let (given, is_given) = tokio::sync::oneshot::channel();
    let feed = task::spawn(async move {
        for _ in 0..count {
            own.push([Bytes::from(vec![b'x'; 64 * 1024])]);
            settle_down().await;
        }
        given.send(()).expect("somebody waits");
    });
    let own = Arc::clone(&first);
    let reading = task::spawn(async move { complete_chunks(&own).await });
    is_given.await.expect("all was pushed");
    assert_eq!(follow(recording, &second, |_| {}).await, Followed::TooLate);
    assert!(second.take_head().is_none(), "a follower that comes too late gets no head");
    source.end([]);
    assert_eq!(reading.await.expect("no panic").0.len(), count * 64 * 1024 + 9);
    feed.await.expect("no panic");
    lead.await.expect("no panic");
}

#[test]
fn a_reader_goes_on_where_it_was_whatever_was_dropped() {
    let recording = Arc::new(Recording::new(Arc::default()));
    let (fast, slow) = (recording.open().expect("the beginning"), recording.open().expect("the beginning"));
    recording.begin(head(StatusCode::OK));
    let size = MAX_RECORDING_BYTES / 16;
    let (mut of_fast, mut of_slow) = (Vec::new(), Vec::new());
    for number in 0..64_u8 {
        recording.add(vec![Bytes::from(vec![number; size])]);
        of_fast.extend(fast.take().chunks.iter().map(|chunk| chunk[0]));
        if number % 3 == 0 {
            of_slow.extend(slow.take().chunks.iter().map(|chunk| chunk[0]));
        }
    }
    of_slow.extend(slow.take().chunks.iter().map(|chunk| chunk[0]));
    assert!(recording.state.lock().dropped > 0 && recording.open().is_none());
    let all: Vec<u8> = (0..64).collect();
    assert_eq!((of_fast, of_slow), (all.clone(), all));
}
