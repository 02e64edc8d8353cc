//! One request and its answer, for an ASGI application.

use fairlead_engine::{Admitted, Engine, Exchange, Pending};
use parking_lot::Mutex;
use pyo3::exceptions::PyConnectionAbortedError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use std::sync::Arc;

/// Feed it the body, then take the head and the body of the answer. A result that is not available yet is `None`, and
/// the exchange's id appears in the engine's `ready()` later.
#[pyclass(frozen, name = "Exchange", module = "fairlead._core")]
#[derive(Debug)]
pub(crate) struct PyExchange {
    engine: Arc<Engine>,
    exchange: Arc<Exchange>,
    pending: Mutex<Option<Pending>>,
    #[pyo3(get)]
    id: u64,
    /// Whether a request body must be fed.
    #[pyo3(get)]
    wants_body: bool,
    /// Whether `has_capacity` must be checked between the pieces of the body.
    #[pyo3(get)]
    is_upload: bool,
}

impl PyExchange {
    pub(crate) fn new(engine: Arc<Engine>, admitted: Admitted) -> Self {
        let (exchange, pending) = match admitted {
            Admitted::Answered(exchange) => (exchange, None),
            Admitted::Pending(mut pending) => {
                let exchange = Arc::clone(&pending.exchange);
                let wants_body = pending.wants_body();
                if !wants_body {
                    engine.feed(&mut pending, b"", false);
                }
                (exchange, wants_body.then_some(pending))
            }
        };
        let is_upload = pending.as_ref().is_some_and(Pending::is_upload);
        Self {
            engine,
            id: exchange.id(),
            wants_body: pending.is_some(),
            is_upload,
            exchange,
            pending: Mutex::new(pending),
        }
    }
}

#[pymethods]
impl PyExchange {
    /// Feeds a piece of the request's body. Returns `True` if more is wanted.
    fn feed(&self, piece: &[u8], more: bool) -> bool {
        self.pending.lock().as_mut().is_some_and(|pending| self.engine.feed(pending, piece, more))
    }

    /// Whether more of an upload may be fed now. If `False`, the exchange's id appears in the engine's `ready()` later.
    fn has_capacity(&self) -> bool {
        self.exchange.has_capacity()
    }

    /// Reports that the body did not arrive in time, which the answer then states.
    fn time_out(&self) {
        if let Some(pending) = self.pending.lock().as_mut() {
            pending.time_out();
        }
    }

    /// Reports that the body ended before it was complete. If the caller is still connected, the answer states it.
    fn end_early(&self) {
        if let Some(pending) = self.pending.lock().as_mut() {
            pending.end_early();
        }
    }

    /// Takes the status and headers of the answer, once.
    fn head<'py>(&self, py: Python<'py>) -> PyResult<Option<(u16, Bound<'py, PyList>)>> {
        let Some(head) = self.exchange.take_head() else { return Ok(None) };
        let headers = PyList::empty(py);
        for (name, value) in &head.headers {
            let pair = [PyBytes::new(py, name.as_str().as_bytes()), PyBytes::new(py, value.as_bytes())];
            headers.append(PyTuple::new(py, pair)?)?;
        }
        Ok(Some((head.status.as_u16(), headers)))
    }

    /// Takes the available part of the answer's body, and whether more will come. Raises `ConnectionAbortedError` if
    /// the answer was aborted: the connection must then be closed abnormally, so that nobody takes the answer for
    /// complete.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyBytes>, bool)>> {
        let Some(taken) = self.exchange.take() else { return Ok(None) };
        if taken.aborted {
            return Err(PyConnectionAbortedError::new_err("the answer stops short"));
        }
        let body = match taken.chunks.as_slice() {
            [one] => PyBytes::new(py, one),
            chunks => PyBytes::new_with(py, chunks.iter().map(bytes::Bytes::len).sum(), |mut out| {
                for chunk in chunks {
                    let (slot, rest) = out.split_at_mut(chunk.len());
                    slot.copy_from_slice(chunk);
                    out = rest;
                }
                Ok(())
            })?,
        };
        Ok(Some((body, !taken.ended)))
    }

    /// Reports that the client has left. The work stops and settles.
    fn cancel(&self) {
        self.exchange.cancel();
        self.pending.lock().take();
    }
}
