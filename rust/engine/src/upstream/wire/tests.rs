//! Runs both ends of a connection in one place: the provider's actions and their results.

use super::connection::Connection;
use super::incoming::Unanswered;
use super::pool::{Lease, Pool};
use super::{BodySlices, Chunk, Fault};
use crate::upstream::connector::{Connector, Origin, Socket};
use bytes::Bytes;
use fairlead_dialect::Pieces;
use http::{request, Method, Request, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

struct Pair {
    pool: Pool,
    origin: Arc<Origin>,
    lease: Lease,
    provider: UnixStream,
}

fn pair() -> Pair {
    let pool = Pool::new(Connector::default());
    let origin = Arc::new(Origin::Unix("provider".into()));
    let (ours, provider) = UnixStream::pair().expect("a pair");
    let lease = pool.lease(Box::new(Connection::new(Socket::Unix(ours))), None, &origin);
    Pair { pool, origin, lease, provider }
}

fn head() -> request::Parts {
    Request::builder().method(Method::POST).uri("/v1").body(()).expect("a request").into_parts().0
}

fn body(text: &'static str) -> BodySlices {
    BodySlices::new(Pieces::from_iter([Bytes::from_static(text.as_bytes())]))
}

/// Reads until a request with this body is complete.
async fn hear(provider: &mut UnixStream, body: &str) {
    let mut request = Vec::new();
    while !request.ends_with(format!("\r\n\r\n{body}").as_bytes()) {
        assert!(provider.read_buf(&mut request).await.expect("open") > 0, "{}", String::from_utf8_lossy(&request));
    }
}

#[tokio::test]
async fn a_connection_is_kept_once_its_answer_was_read_to_the_end() {
    let Pair { pool, origin, mut lease, mut provider } = pair();
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n",
    ] {
        let served = async {
            hear(&mut provider, "hello").await;
            provider.write_all(answer.as_bytes()).await.expect("written");
        };
        let head = head();
        let (response, ()) = tokio::join!(lease.send(&head, body("hello")), served);
        let response = response.expect("an answer");
        assert!(pool.idle(&origin).is_none(), "its body is not read");
        assert_eq!(response.into_body().collect().await.expect("a body").to_bytes(), "ok");
        lease = pool.idle(&origin).expect("kept");
        assert!(lease.is_reused);
    }
}

#[tokio::test]
async fn a_provider_that_says_that_it_works_has_heard_the_request() {
    let Pair { lease, mut provider, .. } = pair();
    provider.write_all(b"HTTP/1.1 102 Processing\r\n\r\n").await.expect("written");
    let served = async {
        hear(&mut provider, "hello").await;
        drop(provider);
    };
    let head = head();
    let (answer, ()) = tokio::join!(lease.send(&head, body("hello")), served);
    let Err(unanswered) = answer else { panic!("there is no answer") };
    assert!(matches!(unanswered.fault, Fault::Broken(_)), "{:?}", unanswered.fault);
}

#[tokio::test]
async fn an_answer_without_a_body_gives_its_connection_back_at_once() {
    let Pair { pool, origin, lease, mut provider } = pair();
    provider.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.expect("written");
    let response = lease.send(&head(), body("")).await.expect("an answer");
    assert!(response.body().is_end_stream() && pool.idle(&origin).is_some());
}

#[tokio::test]
async fn a_connection_is_not_kept_when_its_next_answer_could_be_another_ones() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok",
        "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nx",
    ] {
        let Pair { pool, origin, lease, mut provider } = pair();
        provider.write_all(answer.as_bytes()).await.expect("written");
        let response = lease.send(&head(), body("x")).await.expect("an answer");
        assert_eq!(response.into_body().collect().await.expect("a body").to_bytes(), "ok");
        assert!(pool.idle(&origin).is_none(), "{answer}");
    }
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_is_not_used_again() {
    let Pair { pool, origin, lease, mut provider } = pair();
    lease.give_back();
    drop(pool.idle(&origin).expect("kept"));
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    pool.lease(Box::new(Connection::new(Socket::Unix(ours))), None, &origin).give_back();
    drop(theirs);
    // The runtime reports the close at one of its next polls.
    let gone = async {
        while let Some(lease) = pool.idle(&origin) {
            lease.give_back();
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), gone).await.expect("found closed");
    assert_eq!(provider.read(&mut [0; 1]).await.expect("closed"), 0, "what is not given back is closed");
}

#[tokio::test]
async fn a_body_that_ends_with_its_connection_is_whole() {
    let Pair { lease, mut provider, .. } = pair();
    provider.write_all(b"HTTP/1.1 200 OK\r\n\r\nall of it").await.expect("written");
    provider.shutdown().await.expect("closed");
    let response = lease.send(&head(), body("x")).await.expect("an answer");
    assert_eq!(response.into_body().collect().await.expect("a body").to_bytes(), "all of it");
}

#[tokio::test]
async fn an_answer_that_stops_short_is_a_fault() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n",
    ] {
        let Pair { lease, mut provider, .. } = pair();
        provider.write_all(answer.as_bytes()).await.expect("written");
        provider.shutdown().await.expect("closed");
        let mut body = lease.send(&head(), body("x")).await.expect("an answer").into_body();
        assert_eq!(body.frame().await.expect("a frame").expect("bytes").into_data().expect("data"), "ok");
        assert!(matches!(body.frame().await, Some(Err(Fault::Closed))));
        assert!(body.frame().await.is_none() && body.is_end_stream());
    }
}

#[tokio::test]
async fn what_was_whole_before_a_fault_is_told() {
    let Pair { lease, mut provider, .. } = pair();
    let answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\nnonsense\r\n";
    provider.write_all(answer).await.expect("written");
    let mut body = lease.send(&head(), body("x")).await.expect("an answer").into_body();
    assert_eq!(body.frame().await.expect("a frame").expect("bytes").into_data().expect("data"), "ok");
    assert!(matches!(body.frame().await, Some(Err(Fault::Malformed))));
    assert!(body.frame().await.is_none());
}

#[tokio::test]
async fn what_can_be_sent_again_is_told_from_what_cannot() {
    let Pair { lease, provider, .. } = pair();
    drop(provider);
    let Unanswered { fault, unsent } = lease.send(&head(), body("hello")).await.expect_err("closed");
    assert!(matches!(fault, Fault::NothingSent), "{fault:?}");
    assert_eq!(unsent.map(|body| body.left_bytes()), Some(5));

    let Pair { lease, mut provider, .. } = pair();
    let served = async {
        hear(&mut provider, "hello").await;
        drop(provider);
    };
    let head = head();
    let (answer, ()) = tokio::join!(lease.send(&head, body("hello")), served);
    assert!(matches!(answer, Err(Unanswered { fault: Fault::Closed, unsent: None })));

    // The provider had started to respond.
    let Pair { lease, mut provider, .. } = pair();
    provider.write_all(b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 2").await.expect("written");
    provider.shutdown().await.expect("closed");
    let answer = lease.send(&head, body("hello")).await;
    assert!(matches!(answer, Err(Unanswered { fault: Fault::Broken(_), unsent: None })));

    let Pair { lease, mut provider, .. } = pair();
    provider.write_all(b"220 smtp ready\r\n").await.expect("written");
    let answer = lease.send(&head, body("hello")).await;
    assert!(matches!(answer, Err(Unanswered { fault: Fault::Malformed, .. })));
}

#[test]
fn a_body_that_cannot_be_read_is_nobody_elses_fault() {
    // The only thread for file reads is blocked until the head was read: reading the head does not wait for the disk.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build().expect("a runtime");
    let (disk_is_free, disk_is_busy) = std::sync::mpsc::channel::<()>();
    runtime.block_on(async {
        let busy = crate::blocking::disk(move || disk_is_busy.recv());
        let Pair { lease, mut provider, .. } = pair();
        let file = Arc::new(std::fs::File::open("/dev/null").expect("a file"));
        let upload = BodySlices::mixed([Chunk::File { file, start: 0, end: 10 }]);
        let served = async {
            let mut request = Vec::new();
            while !request.ends_with(b"content-length: 10\r\n\r\n") {
                assert!(provider.read_buf(&mut request).await.expect("open") > 0);
            }
            disk_is_free.send(()).expect("a busy disk");
            provider
        };
        let head = head();
        let (answer, _provider) = tokio::join!(lease.send(&head, upload), served);
        assert!(matches!(answer, Err(Unanswered { fault: Fault::Body(_), unsent: None })));
        busy.await.expect("joined").expect("told");
    });
}

#[tokio::test]
async fn a_provider_may_answer_before_it_has_heard_everything() {
    const MANY: usize = 8 * 1024 * 1024;
    let Pair { pool, origin, lease, mut provider } = pair();
    provider.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n").await.expect("written");
    let long = BodySlices::new(Pieces::from_iter([Bytes::from(vec![b'a'; MANY])]));
    let mut answer = lease.send(&head(), long).await.expect("an answer").into_body();
    let served = async {
        // The provider continues to read and sends the rest after it has read everything.
        let (mut space, mut read_bytes) = (vec![0; 65_536], 0);
        while read_bytes < MANY {
            read_bytes += provider.read(&mut space).await.expect("more");
        }
        provider.write_all(b"ok").await.expect("written");
        provider
    };
    let (frame, _provider) = tokio::join!(answer.frame(), served);
    assert_eq!(frame.expect("a frame").expect("bytes").into_data().expect("data"), "ok");
    assert!(pool.idle(&origin).is_some());
}

#[tokio::test]
async fn a_provider_that_refuses_and_hears_no_more_is_still_heard() {
    let Pair { pool, origin, lease, mut provider } = pair();
    provider.write_all(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno").await.expect("written");
    drop(provider);
    let long = BodySlices::new(Pieces::from_iter([Bytes::from(vec![b'a'; 8 * 1024 * 1024])]));
    let answer = lease.send(&head(), long).await;
    // The result is an error if the kernel accepted nothing, and the response otherwise.
    match answer {
        Ok(answer) => {
            assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
            assert_eq!(answer.into_body().collect().await.expect("a body").to_bytes(), "no");
        }
        Err(unanswered) => assert!(matches!(unanswered.fault, Fault::NothingSent)),
    }
    assert!(pool.idle(&origin).is_none());
}

#[tokio::test]
async fn a_head_in_pieces_is_read_when_it_is_whole() {
    let Pair { lease, mut provider, .. } = pair();
    let served = async {
        for byte in b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n!" {
            provider.write_all(&[*byte]).await.expect("written");
            tokio::task::yield_now().await;
        }
    };
    let head = head();
    let (response, ()) = tokio::join!(lease.send(&head, body("x")), served);
    assert_eq!(response.expect("an answer").into_body().collect().await.expect("a body").to_bytes(), "!");
}

#[tokio::test]
async fn connections_that_were_dialled_before_an_origin_changed_hands_are_not_kept() {
    let Pair { pool, origin, lease, provider: _provider } = pair();
    let (ours, _other) = UnixStream::pair().expect("a pair");
    pool.lease(Box::new(Connection::new(Socket::Unix(ours))), None, &origin).give_back();
    pool.forget(&origin);
    assert!(pool.idle(&origin).is_none(), "it was idle");
    lease.give_back();
    assert!(pool.idle(&origin).is_none(), "it was in use");
    let (ours, _third) = UnixStream::pair().expect("a pair");
    pool.lease(Box::new(Connection::new(Socket::Unix(ours))), None, &origin).give_back();
    pool.sweep();
    let lease = pool.idle(&origin).expect("it was dialled since");
    pool.forget(&origin);
    lease.give_back();
    assert!(pool.idle(&origin).is_none(), "a kept one is as old as its connection");
}
