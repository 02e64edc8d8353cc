//! A connection of frames, for an ASGI application.

use crate::exchange::PyExchange;
use fairlead_engine::{Admitted, Engine, FrameConnection, Handshake};
use pyo3::prelude::*;
use std::sync::Arc;

/// Texts, and the code and the reason to close with after them.
type DrawnTexts = (Vec<String>, Option<(u16, String)>);

/// Hand over what is received and send what is taken. Whatever is not there yet is `None`, and the socket's id will be
/// among the engine's ready ones.
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

    /// Whether the handshake may be accepted; `None` while that is not known.
    fn is_accepted(&self) -> Option<bool> {
        match self.socket.handshake() {
            Handshake::Pending => None,
            Handshake::Accepted => Some(true),
            Handshake::Refused => Some(false),
        }
    }

    /// The exchange with the answer of a handshake that is refused.
    fn refusal(&self) -> Option<PyExchange> {
        let exchange = self.socket.refusal()?;
        Some(PyExchange::new(Arc::clone(&self.engine), Admitted::Answered(exchange)))
    }

    /// A text came; `None` for what is no text.
    fn receive(&self, text: Option<&str>) {
        self.socket.receive(text);
    }

    /// Texts to send, and the code and the reason to close with after them.
    fn take(&self) -> Option<DrawnTexts> {
        self.socket.take().map(|drawn| (drawn.frames, drawn.close.map(|close| (close.code, close.reason))))
    }

    /// No request is under way.
    fn is_idle(&self) -> bool {
        self.socket.is_idle()
    }

    /// The caller is gone: what runs ends and settles.
    fn close(&self) {
        self.socket.close();
    }
}
