//! The native listener, for the process that owns it.

use fairlead_listener::Listener;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The engine with the native listener. Python opens it, forwards signals to it, and closes it; requests never enter
/// the interpreter. Create it after any fork.
#[pyclass(frozen, name = "Listener", module = "fairlead._core")]
#[derive(Debug)]
pub(crate) struct PyListener {
    listener: Listener,
}

#[pymethods]
impl PyListener {
    /// `config` is the relay configuration as JSON, and `listener` the configuration of the listener
    /// (`docs/explanation/contracts.md`). Raises `ValueError` with the reason if it cannot be opened.
    #[new]
    fn new(py: Python<'_>, config: &[u8], listener: &[u8]) -> PyResult<Self> {
        let listener =
            py.detach(|| Listener::open(config, listener)).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self { listener })
    }

    /// Announces a drain and continues to serve. Returns how long to wait before `drain`, in milliseconds.
    fn announce_drain(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.listener.announce_drain())
    }

    /// Accepts no more connections or requests. Open ones may continue until the configured deadline.
    fn drain(&self, py: Python<'_>) {
        py.detach(|| self.listener.drain());
    }

    /// Whether nothing is open any more, or the deadline has passed. Call it a few times a second.
    fn is_drained(&self, py: Python<'_>) -> bool {
        py.detach(|| self.listener.is_drained())
    }

    /// Reads the certificate and its key again.
    fn reload(&self, py: Python<'_>) {
        py.detach(|| self.listener.reload());
    }

    /// Closes every connection, seals the spool and ends the threads.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.listener.stop());
    }
}
