//! The provider behind every gateway of a load run.
//!
//! One thread, HTTP/1.1 with keep-alive, TCP_NODELAY, answers made once at start. It reads of a request what it
//! must (path, length, whether a stream is asked for) and no more, so that it is far from being the bottleneck.
//!
//! - `POST .../chat/completions`: a fixed answer; with `"stream": true`, SSE chunks, one write each
//! - the same with a model whose name begins with `stall`: one chunk, then silence until the caller leaves
//! - `GET /v1/models`, and `/health` and its kin, which some gateways ask before they send anything
//!
//! `bench-upstream PORT [CHUNKS]`

mod answers;
mod request;

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use answers::Answers;
use request::{Ask, Read};

const READ_BYTES: usize = 16 * 1024;
/// A request longer than this is a mistake of the run.
const MAX_REQUEST_BYTES: usize = 64 * 1024 * 1024;

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let port = number(arguments.next(), 18080)?;
    let chunks = number(arguments.next(), 100)?;
    let answers = Arc::new(Answers::new(usize::from(chunks)));
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("ready {}", listener.local_addr()?);
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let answers = Arc::clone(&answers);
        // A caller that breaks off is no concern of the others.
        tokio::spawn(async move { serve(socket, &answers).await.ok() });
    }
}

fn number(text: Option<String>, default: u16) -> io::Result<u16> {
    text.map_or(Ok(default), |text| {
        text.parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, format!("not a number: {text}")))
    })
}

async fn serve(mut socket: TcpStream, answers: &Answers) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(READ_BYTES);
    loop {
        match request::read(&buffer) {
            Read::More if buffer.len() > MAX_REQUEST_BYTES => return Ok(()),
            Read::More => {
                if socket.read_buf(&mut buffer).await? == 0 {
                    return Ok(());
                }
            }
            Read::Whole { ask, length } => {
                buffer.drain(..length);
                answer(&mut socket, answers, ask).await?;
            }
        }
    }
}

async fn answer(socket: &mut TcpStream, answers: &Answers, ask: Ask) -> io::Result<()> {
    match ask {
        Ask::Unary => socket.write_all(&answers.unary).await,
        Ask::Models => socket.write_all(&answers.models).await,
        Ask::Health => socket.write_all(&answers.health).await,
        Ask::Unknown => socket.write_all(&answers.not_found).await,
        Ask::Stream { usage } => {
            socket.write_all(&answers.stream_head).await?;
            for _ in 0..answers.chunks {
                socket.write_all(&answers.chunk).await?;
            }
            if usage {
                socket.write_all(&answers.usage_chunk).await?;
            }
            socket.write_all(&answers.stream_end).await
        }
        Ask::Stall => {
            socket.write_all(&answers.stream_head).await?;
            socket.write_all(&answers.chunk).await?;
            // The caller sends nothing more: this ends when it leaves.
            let mut nothing = [0; 1];
            while socket.read(&mut nothing).await? > 0 {}
            Err(io::ErrorKind::ConnectionAborted.into())
        }
    }
}
