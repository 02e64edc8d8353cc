use super::*;
use crate::fuzz;
use proptest::prelude::*;

const BODY: &str = "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nopenai/whisper-1\r\n\
    --b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\n\
    RI\r\n--FF\r\n--\r\n--b--\r\n";

fn read(body: &[u8], step: usize) -> Result<Form, FormFault> {
    let mut reader = Reader::new("b");
    for piece in body.chunks(step.max(1)) {
        reader.push(piece)?;
    }
    reader.finish()
}

#[test]
fn parts_are_the_same_however_the_body_is_cut() {
    let whole = read(BODY.as_bytes(), BODY.len()).expect("a form");
    assert_eq!(whole.field("model"), Some("openai/whisper-1"));
    let file = whole.part("file").expect("a file");
    assert_eq!((file.file_name.as_deref(), file.content_type.as_deref()), (Some("a.wav"), Some("audio/wav")));
    assert_eq!(&BODY[file.start as usize..file.end as usize], "RI\r\n--FF\r\n--");
    let model = whole.part("model").expect("a field");
    assert_eq!(&BODY[model.start as usize..model.end as usize], "openai/whisper-1");
    for step in 1..BODY.len() {
        assert_eq!(read(BODY.as_bytes(), step).as_ref(), Ok(&whole), "{step}");
    }
}

fn fault(body: &str) -> String {
    read(body.as_bytes(), 7).expect_err(body).to_string()
}

#[test]
fn what_two_readers_could_take_differently_is_refused() {
    let part = |headers: &str| format!("--b\r\n{headers}\r\n\r\nx\r\n--b--");
    for (body, reason) in [
        (String::new(), "is empty"),
        ("hello --b".into(), "begin"),
        ("--b\r\n".into(), "end with its boundary"),
        (BODY[..BODY.len() - 8].into(), "end with its boundary"),
        ("--b rest".into(), "behind a boundary"),
        (part("Content-Disposition: form-data"), "without a name"),
        (part("Content-Disposition: form-data; name=\"a\0b\""), "control"),
        (part("Content-Disposition: form-data; name=\"f\"; filename=\"a\0.txt\""), "control"),
        (part("Content-Disposition: form-data; name=\"f\"; filename=\"a"), "quote"),
        (part("Content-Disposition: attachment; name=\"f\""), "form-data"),
        (part("nothing"), "no header"),
        (part("--b--Content-Disposition: form-data; name=\"model\""), "among the headers"),
        (part("Content-Disposition: form-data; name=a\r\n--b: model"), "among the headers"),
        (part("Content-Transfer-Encoding: base64"), "coding"),
        (format!("{}{}", part("Content-Disposition: form-data; name=a"), "\r\nmore"), "behind its last"),
    ] {
        assert!(fault(&body).contains(reason), "{body:?}: {}", fault(&body));
    }
    let twice = "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\na".to_owned();
    assert!(fault(&format!("{twice}\r\n{twice}\r\n--b--")).contains("twice"));
}

fn field(name: &str) -> String {
    format!("--b\r\nContent-Disposition: form-data; {name}\r\n\r\nx\r\n")
}

#[test]
fn no_reader_finds_other_fields_than_this_one() {
    let model = field("name=\"model\"");
    for (more, reason) in [
        (field("name=\"model\"; name=\"x\""), "twice"),
        (field("name=\"x\"; name=\"model\""), "twice"),
        (field("name=\"x\"; filename=\"a\"; filename=\"b\""), "twice"),
        (field("name=\"x\"; name*=UTF-8''model"), "extended"),
        (field("name*=UTF-8''model"), "extended"),
        (field("name*0=\"mod\"; name*1=\"el\""), "extended"),
        (field("name=\"x\"; filename*0=\"a\""), "pieces"),
        (field("name=\"x\"; filename*=UTF-16''a"), "UTF-8"),
        (field("name=\"model\"; filename=\"a\""), "a field"),
        (field("name=\"n\"; filename*=UTF-8''a"), "a field"),
        (field("name=\"Model\""), "spelling"),
        (field("name=\"model[]\""), "spelling"),
        (field("name=\"model[0]\""), "spelling"),
        (field("name=\"a\"") + &field("name=\"A\""), "twice"),
        (field("name=\"a\"") + &field("name=\"a[]\""), "twice"),
        (field("name=\"a\"") + &field("name=\"a\"; filename=\"f\""), "twice"),
        (field("name=\"_charset_\""), "_charset_"),
        (field("name=\" model\""), "blanks"),
        (field("name=\"%6dodel\""), "escapes"),
        (field("name=\"=?utf-8?q?model?=\""), "escapes"),
        (field("name=\"mo\\del\""), "escapes"),
        (field("name=\"x\\\"; name=\\\"model\""), "quotes"),
        (field("name=\"x;name=model\""), "semicolons"),
        (field("name='model'"), "quotes"),
        (field("name=mo del"), "must be quoted"),
        (field("name=\"x\" name=\"model\""), "disposition"),
        (field("name=\"x\", name=\"model\""), "disposition"),
        (field("name=\"x\"\r\n name=\"model\""), "folded"),
        (field("name=\"x\";\r\n\tname=\"model\""), "folded"),
        (field("name=\"x\"\nContent-Disposition: form-data; name=\"model\""), "CR LF"),
        (field("name=\"x\"\r\nContent-Type: text/plain\r\nContent-Type: text/html"), "twice"),
        (field("name=\"x\"\r\nContent-Type: text/plain; charset=utf-16"), "charset"),
        (field("name=\"x\"\r\nContent-Type: multipart/mixed; boundary=c"), "itself"),
        (field("name=\"x\"\r\nContent-Disposition : form-data; name=\"model\""), "no header"),
        (field("name=\"x\"\r\nX: a\u{1}b"), "control"),
        (field("name=\"x\"").replace("x\r\n", "x\n--b\nmore\r\n"), "CR LF"),
        (field("name=\"x\"").replace("\r\n\r\nx", "\r\n\r\n--b--"), "CR LF"),
        (field("name=\"x\"").replace("x\r\n", "x\r--b--\r\n"), "CR LF"),
    ] {
        let body = format!("{model}{more}--b--");
        for step in [1, 7, body.len()] {
            let fault = read(body.as_bytes(), step).expect_err(&body).to_string();
            assert!(fault.contains(reason), "{more:?}: {fault}");
        }
    }
}

#[test]
fn what_clients_send_is_taken() {
    for more in [
        field("name=image; filename=a.png") + &field("name=image; filename=b.png"),
        field("name=\"a[]\"") + &field("name=\"a[]\""),
        field("name=\"meta[a]\"") + &field("name=\"meta[b]\""),
        field("name=\"file\"; filename*=utf-8''na%C3%AFve.txt"),
        field("name=\"f\"; filename=\"a \\\"b\\\".txt\"\r\nContent-Length: 1"),
        field("name=\"x\"\r\nContent-Type: text/plain; charset=\"UTF-8\""),
        field("name=\"größe\""),
        field("name=\"x\";"),
        field("name=\"x\"").replace("x\r\n", "x\n-- b\n---b-\n--\r\n"),
    ] {
        let body = format!("{}{more}--b--\r\n", field("name=\"model\""));
        for step in [1, 5, body.len()] {
            assert!(read(body.as_bytes(), step).is_ok(), "{more:?}: {:?}", read(body.as_bytes(), step));
        }
    }
}

#[test]
fn sizes_are_bounded() {
    let many = "--b\r\nContent-Disposition: form-data; name=\"x[]\"\r\n\r\n\r\n".repeat(10_000);
    assert!(fault(&many).contains("128 parts"));
    let long = format!("--b\r\nX: {}", "x".repeat(MAX_HEADER_BYTES + 1));
    assert!(fault(&long).contains("8 KiB"));
    let field = format!("--b\r\nContent-Disposition: form-data; name=a\r\n\r\n{}", "x".repeat(MAX_FIELD_BYTES + 64));
    assert!(fault(&field).contains("256 KiB"));
}

#[test]
fn a_file_name_is_no_path() {
    for (sent, name) in [("../../etc/passwd", "passwd"), ("C:\\temp\\a.txt", "a.txt"), ("a%22b", "a\"b"), ("/", "")] {
        let body = format!("--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"{sent}\"\r\n\r\nx\r\n--b--");
        let form = read(body.as_bytes(), 5).expect("a form");
        assert_eq!(form.files().next().and_then(|part| part.file_name.as_deref()), Some(name), "{sent}");
    }
    let body = "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x\"; filename*=UTF-8''na%C3%AFve.txt\r\n\r\nx\r\n--b--";
    assert_eq!(read(body.as_bytes(), 9).expect("a form").parts[0].file_name.as_deref(), Some("naïve.txt"));
}

#[test]
fn a_boundary_is_read_from_the_content_type() {
    assert_eq!(boundary_of("multipart/form-data; boundary=abc"), Some("abc"));
    assert_eq!(boundary_of("Multipart/Form-Data; charset=utf-8; boundary=\"a b\""), Some("a b"));
    for bad in [
        "multipart/form-data",
        "multipart/mixed; boundary=a",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=a\u{1}",
        "multipart/form-data; boundary=a; boundary=b",
        "multipart/form-data; boundary=a; Boundary=a",
        "multipart/form-data; boundary*=UTF-8''a",
        "multipart/form-data; boundary*0=a",
        "multipart/form-data; x=\"; boundary=b\"; boundary=a",
        "multipart/form-data; boundary=\"a\\b\"",
        "multipart/form-data; charset=utf-16; boundary=a",
        "multipart/form-data; boundary=\"a \"",
    ] {
        assert_eq!(boundary_of(bad), None, "{bad}");
    }
    assert_eq!(boundary_of(&format!("multipart/form-data; boundary={}", "a".repeat(71))), None);
}

/// Almost valid forms: parts that parsers disagree about, between parts that they agree about.
fn any_form() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        &b"--b\r\n"[..],
        b"\r\n--b\r\n",
        b"\r\n--b--",
        b"\n--b\n",
        b"\r\n",
        b"\r\n\r\n",
        b"\n",
        b"\r",
        b"Content-Disposition: form-data; name=\"model\"",
        b"Content-Disposition: form-data; name=x; filename=\"f\"",
        b"; name=\"y\"",
        b"Content-Type: text/plain",
        b" ",
        b"a",
        b"--",
        b"\xc3\xa9",
        b"\xff",
    ]);
    let piece = prop_oneof![4 => piece.prop_map(<[u8]>::to_vec), 1 => proptest::collection::vec(any::<u8>(), 0..6)];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

#[test]
fn fuzz_multipart() {
    fuzz::check(&(any_form(), 1_usize..40), |(more, step)| {
        for body in [more.clone(), [b"--b\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n", &more[..]].concat()] {
            let whole = read(&body, body.len());
            prop_assert_eq!(&read(&body, step), &whole, "however it is cut");
            let Ok(form) = whole else { continue };
            for part in &form.parts {
                let content = body.get(part.start as usize..part.end as usize);
                prop_assert!(content.is_some());
                let content = content.unwrap_or_default();
                if let Some(value) = &part.value {
                    prop_assert_eq!(content, value.as_bytes());
                }
                // No parser finds a boundary in a line of a content.
                let lines = content.split(|byte| matches!(byte, b'\r' | b'\n'));
                prop_assert!(!lines.into_iter().any(|line| line.starts_with(b"--b")));
            }
            let borders = memmem::find_iter(&body, b"\r\n--b").count() + usize::from(body.starts_with(b"--b"));
            prop_assert_eq!(borders, form.parts.len() + 1);
        }
        Ok(())
    });
}

proptest! {
    #[test]
    fn any_content_is_found_where_it_lies(content in proptest::collection::vec(any::<u8>(), 0..200), step in 1_usize..64) {
        let mut body = b"--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n".to_vec();
        let start = body.len();
        body.extend_from_slice(&content);
        body.extend_from_slice(b"\r\n--b--");
        prop_assume!(memmem::find(&content, b"--b").is_none());
        let form = read(&body, step).expect("a form");
        prop_assert_eq!((form.parts[0].start as usize, form.parts[0].end as usize), (start, start + content.len()));
    }

    #[test]
    fn any_bytes_are_read_or_refused(body in proptest::collection::vec(any::<u8>(), 0..300), step in 1_usize..64) {
        let mut whole = b"--b\r\n".to_vec();
        whole.extend_from_slice(&body);
        let _either_way = read(&whole, step);
    }
}
