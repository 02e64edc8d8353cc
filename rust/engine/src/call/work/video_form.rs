//! Converts the form that OpenAI's clients send for a video to JSON, which guardrails, limits and control parse.

use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use bytes::Bytes;
use fairlead_core::multipart::{boundary_of, Part, Reader};
use fairlead_core::{Error, ErrorKind};
use http::header::{self, HeaderMap, HeaderValue};
use serde_json::{Map, Value};

/// The only file that the form may contain: the first image of the video.
const PICTURE: &str = "input_reference";
const PICTURE_MAX_BYTES: usize = 16 * 1024 * 1024;
const PICTURE_TYPES: [&str; 3] = ["image/jpeg", "image/png", "image/webp"];

/// Converts the body to JSON, with the image as a data URL, and adjusts `headers`. A body that is not a form is
/// returned unchanged.
pub(crate) fn into_json(headers: &mut HeaderMap, body: &Bytes) -> Result<Bytes, Error> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let Some(boundary) = content_type.and_then(boundary_of) else { return Ok(body.clone()) };
    let mut reader = Reader::new(boundary);
    let read = reader.push(body).and_then(|()| reader.finish());
    let form = read.map_err(|fault| wrong(format!("The body cannot be read. {fault}")))?;
    let mut members = Map::new();
    for part in &form.parts {
        let value = match &part.value {
            Some(text) => Value::from(text.clone()),
            None => picture(part, body)?,
        };
        put(&mut members, &part.name, value)?;
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(Bytes::from(Value::Object(members).to_string()))
}

/// Adds a field. A member of an object is written as `input_reference[image_url]`.
fn put(members: &mut Map<String, Value>, name: &str, value: Value) -> Result<(), Error> {
    let twice = || wrong(format!("`{name}` occurs twice in the form.")).about(name.to_owned());
    let Some((outer, rest)) = name.split_once('[') else {
        return members.insert(name.to_owned(), value).map_or(Ok(()), |_| Err(twice()));
    };
    let inner = rest.strip_suffix(']').filter(|inner| !inner.is_empty() && !inner.contains(['[', ']']));
    let inner = inner.ok_or_else(|| wrong(format!("`{name}` is not a valid field name.")).about(name.to_owned()))?;
    let object = members.entry(outer).or_insert_with(|| Value::Object(Map::new()));
    let object = object.as_object_mut().ok_or_else(twice)?;
    object.insert(inner.to_owned(), value).map_or(Ok(()), |_| Err(twice()))
}

fn picture(part: &Part, body: &Bytes) -> Result<Value, Error> {
    let known = PICTURE_TYPES.into_iter().find(|known| part.content_type.as_deref() == Some(*known));
    let Some(kind) = known.filter(|_| part.name == PICTURE) else {
        let message = "The form takes one file, `input_reference`: a picture as image/jpeg, image/png or image/webp.";
        return Err(wrong(message.to_owned()).about(part.name.clone()));
    };
    let content = &body[part.start as usize..part.end as usize];
    if content.len() > PICTURE_MAX_BYTES {
        return Err(
            Error::client(ErrorKind::TooLarge, "`input_reference` must be at most 16 MiB large.").about(PICTURE)
        );
    }
    let url = format!("data:{kind};base64,{}", STANDARD.encode(content));
    Ok(serde_json::json!({"image_url": url}))
}

fn wrong(message: String) -> Error {
    Error::client(ErrorKind::InvalidRequest, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers() -> HeaderMap {
        let kind = HeaderValue::from_static("multipart/form-data; boundary=b");
        HeaderMap::from_iter([(header::CONTENT_TYPE, kind)])
    }

    fn form(parts: &[(&str, &str)]) -> Bytes {
        let shown = |(about, content): &(&str, &str)| {
            format!("--b\r\nContent-Disposition: form-data; {about}\r\n\r\n{content}\r\n")
        };
        let parts: Vec<String> = parts.iter().map(shown).collect();
        Bytes::from(parts.concat() + "--b--\r\n")
    }

    #[test]
    fn fields_become_members_and_a_picture_its_data_url() {
        let picture = "name=\"input_reference\"; filename=\"a.png\"\r\nContent-Type: image/png";
        let mut head = headers();
        let json =
            into_json(&mut head, &form(&[("name=\"model\"", "p/m"), ("name=\"seconds\"", "8"), (picture, "PNG")]))
                .expect("read");
        assert_eq!(
            serde_json::from_slice::<Value>(&json).expect("JSON"),
            serde_json::json!({"model": "p/m", "seconds": "8",
                "input_reference": {"image_url": "data:image/png;base64,UE5H"}})
        );
        assert_eq!(head[header::CONTENT_TYPE], "application/json");
        let url = ("name=\"input_reference[image_url]\"", "https://a/b");
        let json = into_json(&mut headers(), &form(&[url])).expect("read");
        assert_eq!(&json[..], br#"{"input_reference":{"image_url":"https://a/b"}}"#);
    }

    #[test]
    fn json_stays_as_it_is() {
        let mut head = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        assert_eq!(into_json(&mut head, &Bytes::from_static(b"{ }")).expect("read"), "{ }");
    }

    #[test]
    fn a_form_with_two_meanings_is_refused() {
        let file = |name: &str, kind: &str| format!("name=\"{name}\"; filename=\"a\"\r\nContent-Type: {kind}");
        let (page, other) = (file("input_reference", "text/html"), file("video", "image/png"));
        let picture = file("input_reference", "image/png");
        for parts in [
            vec![("name=\"a[b]\"", "1"), ("name=\"a[b]\"", "2")],
            vec![("name=\"a\"", "1"), ("name=\"a[b]\"", "2")],
            vec![("name=\"a[b][c]\"", "1")],
            vec![("name=\"a[]\"", "1")],
            vec![("name=\"a[b\"", "1")],
            vec![(page.as_str(), "x")],
            vec![(other.as_str(), "x")],
            vec![(picture.as_str(), "x"), (picture.as_str(), "y")],
        ] {
            assert!(into_json(&mut headers(), &form(&parts)).is_err(), "{parts:?}");
        }
        assert!(into_json(&mut headers(), &Bytes::from_static(b"--b\r\n")).is_err());
    }
}
