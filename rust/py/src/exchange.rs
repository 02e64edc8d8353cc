//! One request and its answer, for an ASGI application.

use fairlead_engine::{Admitted, Engine, Exchange, Pending};
use parking_lot::Mutex;
use pyo3::exceptions::PyConnectionAbortedError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use std::sync::Arc;

/// Feed it the body, then take the head and the body of the answer. Whatever is not there yet is `None`, and the
/// exchange's id will be among the engine's ready ones.
#[pyclass(frozen, name = "Exchange", module = "fairlead._core")]
#[derive(Debug)]
pub(crate) struct PyExchange {
    engine: Arc<Engine>,
    exchange: Arc<Exchange>,
    pending: Mutex<Option<Pending>>,
    #[pyo3(get)]
    id: u64,
    /// Whether a request body is to be fed.
    #[pyo3(get)]
    wants_body: bool,
    /// Whether room is to be asked for between the pieces of the body.
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
    /// Takes a piece of the request's body. `True`: more is wanted.
    fn feed(&self, piece: &[u8], more: bool) -> bool {
        self.pending.lock().as_mut().is_some_and(|pending| self.engine.feed(pending, piece, more))
    }

    /// Whether more of an upload may be fed now. `False`: not yet, and the exchange's id will be among the ready ones.
    fn has_room(&self) -> bool {
        self.exchange.has_room()
    }

    /// The body did not come in time: the answer says so.
    fn time_out(&self) {
        if let Some(pending) = self.pending.lock().as_mut() {
            pending.time_out();
        }
    }

    /// The body ended before it was whole. For a caller who is still there the answer says so.
    fn end_early(&self) {
        if let Some(pending) = self.pending.lock().as_mut() {
            pending.end_early();
        }
    }

    /// Status and headers of the answer, once.
    fn head<'py>(&self, py: Python<'py>) -> PyResult<Option<(u16, Bound<'py, PyList>)>> {
        let Some(head) = self.exchange.take_head() else { return Ok(None) };
        let headers = PyList::empty(py);
        for (name, value) in &head.headers {
            let pair = [PyBytes::new(py, name.as_str().as_bytes()), PyBytes::new(py, value.as_bytes())];
            headers.append(PyTuple::new(py, pair)?)?;
        }
        Ok(Some((head.status.as_u16(), headers)))
    }

    /// The part of the answer's body that is there, and whether more will come. `ConnectionAbortedError` when the answer stops short:
    /// the connection must be broken, so that nobody takes what was sent for whole.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyBytes>, bool)>> {
        let Some(taken) = self.exchange.take() else { return Ok(None) };
        if taken.aborted {
            return Err(PyConnectionAbortedError::new_err("the answer stops short"));
        }
        let body = match taken.chunks.as_slice() {
            [one] => PyBytes::new(py, one),
            chunks => PyBytes::new_with(py, chunks.iter().map(bytes::Bytes::len).sum(), |mut out| {
                for chunk in chunks {
                    let (place, rest) = out.split_at_mut(chunk.len());
                    place.copy_from_slice(chunk);
                    out = rest;
                }
                Ok(())
            })?,
        };
        Ok(Some((body, !taken.ended)))
    }

    /// The client is gone: the work stops and settles.
    fn cancel(&self) {
        self.exchange.cancel();
        self.pending.lock().take();
    }
}
