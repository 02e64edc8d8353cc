//! The engine for an ASGI application.

use crate::exchange::PyExchange;
use crate::ready::ReadyQueue;
use crate::socket::PySocket;
use fairlead_engine::{Engine, Inbound, Wake};
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PySequence, PyString, PyTuple};
use std::net::IpAddr;
use std::os::fd::RawFd;
use std::sync::Arc;

/// The engine of one relay worker. Create it after any fork.
#[pyclass(frozen, name = "Engine", module = "fairlead._core")]
#[derive(Debug)]
pub(crate) struct PyEngine {
    engine: Arc<Engine>,
    ready: Arc<ReadyQueue>,
    wake: Arc<dyn Wake>,
}

#[pymethods]
impl PyEngine {
    /// `config` is the relay configuration as JSON (`docs/explanation/contracts.md`).
    #[new]
    fn new(py: Python<'_>, config: &[u8]) -> PyResult<Self> {
        let ready = Arc::new(ReadyQueue::new()?);
        let engine = py.detach(|| Engine::start(config)).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let wake: Arc<dyn Wake> = Arc::clone(&ready) as Arc<dyn Wake>;
        Ok(Self { engine: Arc::new(engine), ready, wake })
    }

    /// The file descriptor that becomes readable when `ready()` has something.
    fn ready_descriptor(&self) -> RawFd {
        self.ready.descriptor()
    }

    /// The ids of exchanges that requested a wake-up and are now ready.
    fn ready(&self) -> Vec<u64> {
        self.ready.drain()
    }

    /// Admits the head of an ASGI HTTP scope.
    fn admit(&self, scope: &Bound<'_, PyDict>) -> PyResult<PyExchange> {
        let method = item(scope, intern!(scope.py(), "method"))?.cast_into::<PyString>()?;
        with_head(scope, method.to_str()?, |inbound| {
            let admitted = self.engine.admit(inbound, Arc::clone(&self.wake));
            PyExchange::new(Arc::clone(&self.engine), admitted)
        })
    }

    /// Admits the head of an ASGI WebSocket scope. Returns a `Socket`, or an `Exchange` with the refusal.
    fn admit_socket<'py>(&self, scope: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
        let py = scope.py();
        let opened = with_head(scope, "GET", |inbound| self.engine.admit_socket(inbound, &self.wake))?;
        match opened {
            Ok(socket) => Ok(Bound::new(py, PySocket { engine: Arc::clone(&self.engine), socket })?.into_any()),
            Err(admitted) => Ok(Bound::new(py, PyExchange::new(Arc::clone(&self.engine), *admitted))?.into_any()),
        }
    }

    /// Announces that this worker will drain, and continues to serve. Returns how long to wait before `begin_drain`, in
    /// milliseconds.
    fn announce_drain(&self) -> u64 {
        self.engine.announce_drain()
    }

    /// Accepts no more requests. Open ones may continue until the configured deadline.
    fn begin_drain(&self) {
        self.engine.begin_drain();
    }

    /// The number of unfinished requests.
    fn in_flight(&self) -> usize {
        self.engine.in_flight()
    }

    /// How long open requests may continue after `begin_drain`, in milliseconds.
    fn drain_ms(&self) -> u64 {
        self.engine.drain_ms()
    }

    /// The longest pause within a request body, in milliseconds.
    fn body_idle_ms(&self) -> u64 {
        self.engine.body_idle_ms()
    }

    /// Seals the spool and ends the engine's thread.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.engine.stop());
    }
}

/// Passes on the head of a scope while the scope's bytes are borrowed.
fn with_head<T>(scope: &Bound<'_, PyDict>, method: &str, work: impl FnOnce(&Inbound<'_>) -> T) -> PyResult<T> {
    let py = scope.py();
    let raw_path = item(scope, intern!(py, "raw_path"))?.cast_into::<PyBytes>()?;
    let query = item(scope, intern!(py, "query_string"))?.cast_into::<PyBytes>()?;
    let version = item(scope, intern!(py, "http_version"))?.cast_into::<PyString>()?;
    let scheme = item(scope, intern!(py, "scheme"))?.cast_into::<PyString>()?;
    let pairs = header_pairs(&item(scope, intern!(py, "headers"))?)?;
    let headers: Vec<(&[u8], &[u8])> = pairs.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
    // Some ASGI servers include the query in the path, which ends where the query begins.
    let path = raw_path.as_bytes().split(|&byte| byte == b'?').next().unwrap_or_default();
    Ok(work(&Inbound {
        method,
        // A path that is not UTF-8 matches no route.
        path: std::str::from_utf8(path).unwrap_or("\u{fffd}"),
        query: query.as_bytes(),
        headers: &headers,
        // ASGI does not pass the request target.
        authority: None,
        peer: peer(scope)?,
        is_tls: matches!(scheme.to_str()?, "https" | "wss"),
        is_http2: version.to_str()?.starts_with('2'),
    }))
}

fn item<'py>(scope: &Bound<'py, PyDict>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
    scope.get_item(name)?.ok_or_else(|| PyKeyError::new_err(name.clone().unbind()))
}

type Pair<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

fn header_pairs<'py>(headers: &Bound<'py, PyAny>) -> PyResult<Vec<Pair<'py>>> {
    if let Ok(list) = headers.cast::<PyList>() {
        return list.iter().map(|entry| pair(&entry)).collect();
    }
    headers.try_iter()?.map(|entry| pair(&entry?)).collect()
}

fn pair<'py>(entry: &Bound<'py, PyAny>) -> PyResult<Pair<'py>> {
    if let Ok(tuple) = entry.cast::<PyTuple>() {
        return Ok((tuple.get_item(0)?.cast_into()?, tuple.get_item(1)?.cast_into()?));
    }
    let sequence = entry.cast::<PySequence>()?;
    Ok((sequence.get_item(0)?.cast_into()?, sequence.get_item(1)?.cast_into()?))
}

/// `None` for a Unix socket, which has no address.
fn peer(scope: &Bound<'_, PyDict>) -> PyResult<Option<IpAddr>> {
    let Some(client) = scope.get_item(intern!(scope.py(), "client"))?.filter(|client| !client.is_none()) else {
        return Ok(None);
    };
    let host = client.get_item(0)?.cast_into::<PyString>()?;
    host.to_str()?.parse().map(Some).map_err(|_| PyRuntimeError::new_err("the server gave a peer that is no address"))
}
