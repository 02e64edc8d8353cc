//! The client handshake with a provider (RFC 6455, section 4.1). Its result is a connection that has switched to
//! WebSocket, or an error.

use crate::shared::Shared;
use crate::socket::query;
use crate::upstream::attempt::{self, Contents};
use crate::upstream::connector::Socket;
use crate::upstream::target::Target;
use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use fairlead_core::{random_bytes, Error, ErrorKind, Retry};
use http::header;
use ring::digest::{digest, SHA1_FOR_LEGACY_USE_ONLY};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// The text that is hashed in every handshake (RFC 6455, section 1.3).
const ACCEPT_SALT: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Opens a conversation. Returns the connection after the provider has switched protocols, and the bytes received after
/// the head.
pub async fn connect(shared: &Shared, target: &Target, model: &str) -> Result<(Socket, Vec<u8>), Error> {
    let timeouts = &target.connection.timeouts;
    let dialled =
        tokio::time::timeout(Duration::from_millis(timeouts.connect_ms), shared.pool.dial(&target.origin)).await;
    let mut stream = dialled.map_err(|_| target.origin.late(timeouts.connect_ms))??;
    let nonce = random_bytes::<16>().map_err(|_| Error::gateway(ErrorKind::Internal, "There is no randomness."))?;
    let nonce = STANDARD.encode(nonce);
    let uri = if target.connection.api_version.is_some() {
        target.uri_of("/realtime", model)?
    } else {
        let name = query::encode(target.connection.called_name(model));
        target.uri_of(&format!("/realtime?model={name}"), model)?
    };
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
    let (head, early) =
        tokio::time::timeout(Duration::from_millis(timeouts.header_ms), answering).await.map_err(|_| {
            Error::upstream(ErrorKind::UpstreamTimeout, Retry::Never, "The provider sent no answer in time.")
        })??;
    let judged = check_switch(&String::from_utf8_lossy(&head), &nonce);
    if judged.as_ref().is_err_and(|error| error.kind == ErrorKind::UpstreamAuth) {
        target.hot.access_token.forget();
    }
    judged.map(|()| (stream, early))
}

fn cut() -> Error {
    Error::upstream(
        ErrorKind::UpstreamReset,
        Retry::NothingSent,
        "The provider closed the connection before it answered.",
    )
}

/// Checks that the provider has switched protocols, and for this conversation.
fn check_switch(head: &str, nonce: &str) -> Result<(), Error> {
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap_or_default().split(' ').nth(1).unwrap_or_default();
    let fail = |kind, message: String| Err(Error::upstream(kind, Retry::Elsewhere, message));
    match status {
        "101" => {}
        "401" | "402" | "403" => {
            return fail(
                ErrorKind::UpstreamAuth,
                format!("The provider refused the connection's credential ({status})."),
            )
        }
        "429" => return fail(ErrorKind::UpstreamRateLimited, "The provider limits this connection.".into()),
        "503" | "529" => return fail(ErrorKind::UpstreamOverloaded, format!("The provider is overloaded ({status}).")),
        "400" | "404" => {
            let message = format!("The provider has no such conversation ({status}).");
            return Err(Error::upstream(ErrorKind::InvalidRequest, Retry::Never, message));
        }
        _ => return fail(ErrorKind::UpstreamStatus, "The provider did not switch to a WebSocket.".into()),
    }
    let accept = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("sec-websocket-accept").then(|| value.trim())
    });
    let expected = STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{nonce}{ACCEPT_SALT}").as_bytes()));
    if accept == Some(expected.as_str()) {
        return Ok(());
    }
    fail(ErrorKind::UpstreamInvalid, "The provider's handshake is not as the protocol says.".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_is_held_to_its_nonce() {
        // The example of RFC 6455, section 1.3.
        let nonce = "dGhlIHNhbXBsZSBub25jZQ==";
        let head = |accept: &str| format!("HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: {accept}");
        assert!(check_switch(&head("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), nonce).is_ok());
        assert!(check_switch(&head("x"), nonce).is_err());
        let refused = check_switch("HTTP/1.1 401 Unauthorized", nonce).map_err(|error| error.kind);
        assert_eq!(refused, Err(ErrorKind::UpstreamAuth));
    }
}
