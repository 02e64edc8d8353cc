//! A connection of frames, for an ASGI application.

use fairlead_engine::FrameConnection;
use pyo3::prelude::*;

/// Hand over what is received and send what is taken. Whatever is not there yet is `None`, and the socket's id will be
/// among the engine's ready ones.
#[pyclass(frozen, name = "Socket", module = "fairlead._core")]
#[derive(Debug)]
pub(crate) struct PySocket {
    pub(crate) socket: Box<dyn FrameConnection>,
}

#[pymethods]
impl PySocket {
    #[getter]
    fn id(&self) -> u64 {
        self.socket.id()
    }

    /// A text came; `None` for what is no text.
    fn receive(&self, text: Option<&str>) {
        self.socket.receive(text);
    }

    /// Texts to send, and the code to close with after them.
    fn take(&self) -> Option<(Vec<String>, Option<u16>)> {
        self.socket.take().map(|drawn| (drawn.frames, drawn.close))
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
