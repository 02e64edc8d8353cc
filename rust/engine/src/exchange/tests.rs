use super::front::MAX_TAKE_BYTES;
use super::*;
use crate::gate::cors::Cors;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

#[derive(Debug, Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(&self, _: u64) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn head() -> Head {
    Head { status: StatusCode::OK, headers: HeaderMap::new() }
}

#[test]
fn a_front_is_woken_once_and_only_when_it_asked() {
    let wake = Arc::new(Count::default());
    let exchange = Exchange::new(1, wake.clone());
    exchange.start(head(), []);
    assert_eq!(wake.0.load(Ordering::Relaxed), 0);
    assert!(exchange.take_head().is_some());
    assert!(exchange.take().is_none());
    exchange.push([Bytes::from_static(b"a")]);
    exchange.push([Bytes::from_static(b"b")]);
    exchange.end([]);
    assert_eq!(wake.0.load(Ordering::Relaxed), 1);
    let taken = exchange.take().expect("bytes");
    assert_eq!((taken.chunks.concat(), taken.ended), (b"ab".to_vec(), true));
}

#[test]
fn a_full_buffer_holds_the_task_until_it_is_read() {
    let exchange = Exchange::new(1, Arc::new(Count::default()));
    let cx = &mut Context::from_waker(Waker::noop());
    exchange.start(head(), [Bytes::from(vec![0; HIGH_WATER_BYTES + 1])]);
    assert!(exchange.poll_capacity(cx).is_pending());
    assert_eq!(exchange.take().map(|taken| taken.chunks.concat().len()), Some(MAX_TAKE_BYTES));
    assert_eq!(exchange.poll_capacity(cx), Poll::Ready(Capacity::Free));
    while exchange.take().is_some() {}
    assert_eq!(exchange.poll_capacity(cx), Poll::Ready(Capacity::Free));
}

#[test]
fn a_head_says_which_pages_may_read_it_whichever_front_takes_it() {
    let origin = HeaderValue::from_static("https://app.example");
    let marked = |take: fn(&Exchange) -> Option<Head>| {
        let exchange = Exchange::new(1, Arc::new(Count::default()));
        exchange.set_cors(Some(Cors::Readable(origin.clone())));
        exchange.answer(head(), Bytes::new());
        take(&exchange).expect("a head").headers.get(http::header::ACCESS_CONTROL_ALLOW_ORIGIN).cloned()
    };
    assert_eq!(marked(Exchange::take_head), Some(origin.clone()));
    let polled = marked(|exchange| match exchange.poll_head(&Context::from_waker(Waker::noop())) {
        Poll::Ready(head) => head,
        Poll::Pending => None,
    });
    assert_eq!(polled, Some(origin.clone()));
}

#[test]
fn a_cancelled_exchange_keeps_nothing() {
    let exchange = Exchange::new(1, Arc::new(Count::default()));
    exchange.start(head(), [Bytes::from_static(b"a")]);
    exchange.cancel();
    exchange.push([Bytes::from_static(b"b")]);
    assert_eq!(exchange.poll_capacity(&Context::from_waker(Waker::noop())), Poll::Ready(Capacity::ClientGone));
    assert!(exchange.take().is_none());
}

#[test]
fn an_aborted_answer_is_told_from_a_whole_one() {
    let exchange = Exchange::new(1, Arc::new(Count::default()));
    exchange.start(head(), [Bytes::from_static(b"half")]);
    exchange.abort();
    assert!(exchange.take_head().is_some());
    assert!(exchange.take().is_some_and(|taken| taken.aborted));
    let whole = Exchange::new(2, Arc::new(Count::default()));
    whole.answer(head(), Bytes::new());
    whole.abort();
    assert!(whole.take().is_some_and(|taken| taken.ended && !taken.aborted));
}

#[test]
fn a_front_that_polls_gets_pieces_and_makes_room() {
    let exchange = Exchange::new(1, Arc::new(Count::default()));
    let cx = &Context::from_waker(Waker::noop());
    assert!(exchange.poll_head(cx).is_pending());
    exchange.start(head(), [Bytes::from(vec![0; HIGH_WATER_BYTES]), Bytes::from_static(b"b")]);
    assert!(matches!(exchange.poll_head(cx), Poll::Ready(Some(_))));
    assert!(exchange.poll_capacity(cx).is_pending());
    assert!(exchange.take_complete().is_none());
    assert!(matches!(exchange.poll_piece(cx), Poll::Ready(Piece::Bytes(piece)) if piece.len() == HIGH_WATER_BYTES));
    assert_eq!(exchange.poll_capacity(cx), Poll::Ready(Capacity::Free));
    exchange.end([]);
    assert!(exchange.take_complete().is_none(), "a stream, though all of it is there");
    assert!(matches!(exchange.poll_piece(cx), Poll::Ready(Piece::Bytes(piece)) if piece == "b"));
    assert!(matches!(exchange.poll_piece(cx), Poll::Ready(Piece::End)));
    let exchange = Exchange::new(2, Arc::new(Count::default()));
    exchange.answer(head(), Bytes::from_static(b"c"));
    assert_eq!(exchange.take_complete().as_deref(), Some(&b"c"[..]));
    assert!(matches!(exchange.poll_piece(cx), Poll::Ready(Piece::End)));
}
