//! The listener, for the process that keeps it open.

use fairlead_listener::Listener;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The engine with a listener of its own. Python opens it, tells it what signals say, and closes it; what goes through it
/// never touches the interpreter. Make it after any fork.
#[pyclass(frozen, name = "Listener", module = "fairlead._core")]
#[derive(Debug)]
pub(crate) struct PyListener {
    listener: Listener,
}

#[pymethods]
impl PyListener {
    /// `config`: the relay configuration as JSON, `listener`: the listener's own (`docs/explanation/contracts.md`). `ValueError` says
    /// why it cannot be opened.
    #[new]
    fn new(py: Python<'_>, config: &[u8], listener: &[u8]) -> PyResult<Self> {
        let listener =
            py.detach(|| Listener::open(config, listener)).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self { listener })
    }

    /// Says that a drain is to come, and goes on serving. How long to wait before `drain`, milliseconds.
    fn announce_drain(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.listener.announce_drain())
    }

    /// No connection and no request more; what is open has until the configured deadline.
    fn drain(&self, py: Python<'_>) {
        py.detach(|| self.listener.drain());
    }

    /// Whether nothing is open any more, or what is has had its time. To be asked a few times a second.
    fn is_drained(&self, py: Python<'_>) -> bool {
        py.detach(|| self.listener.is_drained())
    }

    /// Reads the certificate and its key again.
    fn reload(&self, py: Python<'_>) {
        py.detach(|| self.listener.reload());
    }

    /// Ends every connection, seals the spool and ends the threads.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.listener.stop());
    }
}
