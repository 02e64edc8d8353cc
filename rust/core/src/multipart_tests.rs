use super::*;
use proptest::prelude::*;

const BODY: &str = "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nopenai/whisper-1\r\n\
    --b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\n\
    RI\r\n--FF\r\n--\r\n--b--\r\n";

fn read(body: &[u8], step: usize) -> Result<Form, Fault> {
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
    for (body, said) in [
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
        (part("Content-Transfer-Encoding: base64"), "coding"),
        (format!("{}{}", part("Content-Disposition: form-data; name=a"), "\r\nmore"), "behind its last"),
    ] {
        assert!(fault(&body).contains(said), "{body:?}: {}", fault(&body));
    }
    let twice = "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\na".to_owned();
    assert!(fault(&format!("{twice}\r\n{twice}\r\n--b--")).contains("twice"));
}

#[test]
fn sizes_are_bounded() {
    let many = "--b\r\nContent-Disposition: form-data; name=\"n[]\"\r\n\r\n\r\n".repeat(10_000);
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
    ] {
        assert_eq!(boundary_of(bad), None, "{bad}");
    }
    assert_eq!(boundary_of(&format!("multipart/form-data; boundary={}", "a".repeat(71))), None);
}

proptest! {
    #[test]
    fn any_content_is_found_where_it_lies(content in proptest::collection::vec(any::<u8>(), 0..200), step in 1_usize..64) {
        let mut body = b"--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n".to_vec();
        let start = body.len();
        body.extend_from_slice(&content);
        body.extend_from_slice(b"\r\n--b--");
        prop_assume!(memmem::find(&content, b"\r\n--b").is_none());
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
