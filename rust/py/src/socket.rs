//! A WebSocket connection, for an ASGI application.

use crate::exchange::PyExchange;
use fairlead_engine::{Admitted, Engine, FrameConnection, Handshake};
use pyo3::prelude::*;
use std::sync::Arc;

/// The messages to send, and the code and reason of the close that follows them.
type DrawnTexts = (Vec<String>, Option<(u16, String)>);

/// Pass in what was received and send what is taken. A result that is not available yet is `None`, and the socket's id
/// appears in the engine's `ready()` later.
#[pyclass(frozen, name = "Socket", module = "fairlead._core")]
#[derive(Debug)]
pub(crate) struct PySocket {
    pub(crate) engine: Arc<Engine>,
    pub(crate) socket: Box<dyn FrameConnection>,
}

#[pymethods]
impl PySocket {
    #[getter]
    fn id(&self) -> u64 {
        self.socket.id()
    }

    /// Whether the handshake may be accepted; `None` while that is undecided.
    fn is_accepted(&self) -> Option<bool> {
        match self.socket.handshake() {
            Handshake::Pending => None,
            Handshake::Accepted => Some(true),
            Handshake::Refused => Some(false),
        }
    }

    /// The exchange with the answer of a refused handshake.
    fn refusal(&self) -> Option<PyExchange> {
        let exchange = self.socket.refusal()?;
        Some(PyExchange::new(Arc::clone(&self.engine), Admitted::Answered(exchange)))
    }

    /// Passes in a received message; `None` for one that is not text.
    fn receive(&self, text: Option<&str>) {
        self.socket.receive(text);
    }

    /// Takes the messages to send, and the code and reason of the close that follows them.
    fn take(&self) -> Option<DrawnTexts> {
        self.socket.take().map(|drawn| (drawn.frames, drawn.close.map(|close| (close.code, close.reason))))
    }

    /// Whether no request is running.
    fn is_idle(&self) -> bool {
        self.socket.is_idle()
    }

    /// Reports that the caller has left. Running work ends and settles.
    fn close(&self) {
        self.socket.close();
    }
}
