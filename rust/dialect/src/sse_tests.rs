use proptest::prelude::*;

use super::*;

/// Pushes `stream`, split at `cuts`. Returns the parts shown, the bytes passed and the rest.
fn frame(
    stream: &[u8],
    cuts: &[usize],
    limits: Limits,
    verdict: impl Fn(&[u8]) -> Verdict,
) -> (Vec<Vec<u8>>, Vec<u8>, Rest) {
    let mut framer = Framer::new(limits);
    let (mut events, mut passed) = (Vec::new(), Vec::new());
    let mut cuts = cuts.to_vec();
    cuts.push(stream.len());
    let mut from = 0;
    for cut in cuts {
        let chunk = Bytes::copy_from_slice(&stream[from..cut]);
        from = cut;
        let (pieces, _) = framer.push(&chunk, |part| {
            let (Part::Event(bytes) | Part::Opening(bytes) | Part::More(bytes)) = part;
            events.push(bytes.to_vec());
            verdict(bytes)
        });
        pieces.iter().for_each(|piece| passed.extend_from_slice(piece));
    }
    (events, passed, framer.close())
}

fn events(stream: &str) -> Vec<String> {
    let (events, ..) = frame(stream.as_bytes(), &[], Limits::default(), |_| Verdict::Pass);
    events.into_iter().map(|event| String::from_utf8(event).expect("UTF-8")).collect()
}

fn data(event: &str) -> Option<String> {
    data_of(event.as_bytes()).map(|data| String::from_utf8(data.into_owned()).expect("UTF-8"))
}

#[test]
fn a_blank_line_of_any_kind_ends_an_event() {
    assert_eq!(["data: 1\n\n", "data: 2\r\n\r\n"], *events("data: 1\n\ndata: 2\r\n\r\n"));
    assert_eq!(
        ["data: 3\r\r", "data: 4\r\n\n", "data: 5\n\r\n"],
        *events("data: 3\r\rdata: 4\r\n\ndata: 5\n\r\ndata:")
    );
    assert_eq!([": ping\n\n", "\n", "id: 1\ndata: x\n\n"], *events(": ping\n\n\nid: 1\ndata: x\n\n"));
}

#[test]
fn data_fields_are_joined_and_others_ignored() {
    assert_eq!(Some("{}"), data("data: {}\n\n").as_deref());
    assert_eq!(Some("{}"), data("data:{}\r\n\r\n").as_deref());
    assert_eq!(Some(" two spaces"), data("event: x\rdata:  two spaces\r\r").as_deref());
    assert_eq!(Some("a\n\nb"), data("data: a\ndata\n: c\ndata:b\n\n").as_deref());
    assert_eq!(Some(""), data("data\n\n").as_deref());
    assert_eq!(None, data(": only a comment\n\n"));
    assert_eq!(None, data("database: x\n\n"));
    assert!(matches!(data_of(b"data: one\n\n"), Some(Cow::Borrowed(b"one"))));
}

#[test]
fn events_of_one_chunk_leave_as_one_slice_of_it() {
    let chunk = Bytes::from_static(b"data: 1\n\ndata: 2\n\ndata: 3");
    let mut framer = Framer::new(Limits::default());

    let (pieces, flow) = framer.push(&chunk, |_| Verdict::Pass);
    assert_eq!((1, Flow::Open), (pieces.len(), flow));
    assert_eq!((chunk.as_ptr(), 18), (pieces[0].as_ptr(), pieces[0].len()));
    assert_eq!(b"data: 3", &*framer.close().bytes);
}

#[test]
fn verdicts_hold() {
    let stream = b"data: 1\n\ndata: drop\n\ndata: 3\n\ndata: last\n\ndata: late\n\n";
    let verdict = |event: &[u8]| match event {
        b"data: drop\n\n" => Verdict::Drop,
        b"data: last\n\n" => Verdict::Last,
        _ => Verdict::Pass,
    };
    for cut in 0..stream.len() {
        let (_, passed, _) = frame(stream, &[cut], Limits::default(), verdict);
        assert_eq!(b"data: 1\n\ndata: 3\n\ndata: last\n\n", &*passed);
        let stop = |event: &[u8]| if event == b"data: 3\n\n" { Verdict::Stop } else { Verdict::Pass };
        let (_, passed, _) = frame(stream, &[cut], Limits::default(), stop);
        assert_eq!(b"data: 1\n\ndata: drop\n\n", &*passed);
    }
}

#[test]
fn a_byte_order_mark_passes_and_is_not_shown() {
    let stream = b"\xEF\xBB\xBFdata: 1\n\ndata: 2\n\n";
    for cut in 0..stream.len() {
        let (events, passed, _) = frame(stream, &[cut], Limits::default(), |_| Verdict::Pass);
        assert_eq!([b"data: 1\n\n".to_vec(), b"data: 2\n\n".to_vec()], *events);
        assert_eq!(stream, &*passed);
    }
}

#[test]
fn a_last_cr_waits_for_its_line_feed() {
    let (events, _, rest) = frame(b"data: 1\r\r", &[], Limits::default(), |_| Verdict::Pass);

    assert!(events.is_empty());
    assert!(rest.is_complete);
    assert_eq!(b"data: 1\r\r", &*rest.bytes);
}

#[test]
fn a_long_event_passes_in_parts_up_to_the_limit() {
    let limits = Limits { held_bytes: 10, event_bytes: 40 };
    let mut framer = Framer::new(limits);
    let mut kinds = Vec::new();
    let mut push = |text: &'static [u8]| {
        let (pieces, flow) = framer.push(&Bytes::from_static(text), |part| {
            kinds.push(match part {
                Part::Event(_) => "event",
                Part::Opening(_) => "opening",
                Part::More(_) => "more",
            });
            Verdict::Pass
        });
        (pieces.concat(), flow, framer.between_events())
    };

    assert_eq!((b"".to_vec(), Flow::Open, true), push(b"data: 123"));
    assert_eq!((b"data: 12345".to_vec(), Flow::Open, false), push(b"45"));
    assert_eq!((b"6".to_vec(), Flow::Open, false), push(b"6"));
    assert_eq!((b"7\n\ndata: 1\n\n".to_vec(), Flow::Open, true), push(b"7\n\ndata: 1\n\n"));
    assert_eq!((b"data: 901234567890123456789".to_vec(), Flow::Open, false), push(b"data: 901234567890123456789"));
    assert_eq!((b"".to_vec(), Flow::TooLong, false), push(b"01234567890123456789"));
    assert_eq!((b"".to_vec(), Flow::TooLong, false), push(b"\n\ndata: late\n\n"));
    assert_eq!(["opening", "more", "more", "event", "opening"], *kinds);
}

/// Mostly line ends and field names, split at random offsets.
fn stream_and_cuts() -> impl Strategy<Value = (Vec<u8>, Vec<usize>)> {
    let atoms = prop::sample::select(vec![
        &b"\n"[..],
        b"\r",
        b"\r\n",
        b"\n\n",
        b"data: {\"a\":1}",
        b"data:",
        b"data",
        b": c",
        b"id: 1",
        b"\xC3\xA9",
        b"\xEF\xBB\xBF",
    ]);
    prop::collection::vec(atoms, 0..40).prop_map(|atoms| atoms.concat()).prop_flat_map(|stream| {
        let cuts = prop::collection::vec(0..=stream.len(), 0..8).prop_map(|mut cuts| {
            cuts.sort_unstable();
            cuts
        });
        (Just(stream), cuts)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn cuts_change_nothing((stream, cuts) in stream_and_cuts()) {
        let every: Vec<usize> = (0..stream.len()).collect();
        let is_complete = frame(&stream, &[], Limits::default(), |_| Verdict::Pass);
        for cuts in [&cuts, &every] {
            prop_assert_eq!(&is_complete, &frame(&stream, cuts, Limits::default(), |_| Verdict::Pass));
        }
        let (events, mut passed, rest) = is_complete;
        prop_assert!(events.iter().all(|event| event.ends_with(b"\n") || event.ends_with(b"\r")));
        let bom = usize::from(passed.is_empty() && stream.starts_with(BOM)) * BOM.len();
        passed.extend_from_slice(&stream[..bom]);
        passed.extend_from_slice(&rest.bytes);
        prop_assert_eq!(&stream, &passed);
    }

    #[test]
    fn dropped_events_are_gone_and_the_rest_stays((stream, cuts) in stream_and_cuts()) {
        let keeps = |event: &[u8]| data_of(event).is_some();
        let verdict = |event: &[u8]| if keeps(event) { Verdict::Pass } else { Verdict::Drop };
        // The first line prevents a byte order mark, which would be skipped.
        let stream = [b": start\n", &*stream].concat();
        let (events, passed, _) = frame(&stream, &cuts, Limits::default(), verdict);
        prop_assert_eq!(events.iter().filter(|event| keeps(event)).flatten().copied().collect::<Vec<u8>>(), passed);
    }

    #[test]
    fn long_events_lose_no_byte((stream, cuts) in stream_and_cuts()) {
        let limits = Limits { held_bytes: 7, event_bytes: 1 << 20 };
        let (_, mut passed, rest) = frame(&stream, &cuts, limits, |_| Verdict::Pass);
        let bom = usize::from(passed.is_empty() && stream.starts_with(BOM) && rest.bytes.len() < stream.len()) * BOM.len();
        passed.extend_from_slice(&stream[..bom]);
        passed.extend_from_slice(&rest.bytes);
        prop_assert_eq!(stream, passed);
    }
}
