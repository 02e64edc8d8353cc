//! `fairlead._core`: what Python sees of the Rust side. Bytes in, bytes out; no Python code is called from here, and the
//! engine's thread never attaches to the interpreter: finished work waits in a queue, and one file descriptor tells the
//! event loop to fetch it.
//!
//! Failures on the data plane are values (status, headers, body); an exception from this module means misuse.
//!
//! `engine`, `exchange`, `ready` and `socket` serve the front that runs in Python, `listener` the native one; `records` hands usage
//! records to DuckDB without a copy; `context` previews what makes conversations shorter; `functions` has the other pure ones.

#![forbid(unsafe_code)]

mod context;
mod engine;
mod exchange;
mod functions;
mod listener;
mod ready;
mod records;
mod socket;

use pyo3::prelude::*;

/// A request makes a few dozen small allocations and frees most of them within it; the C library's allocator took nearly
/// twice the time of this one for them (`docs/explanation/decisions/2026-11-22-release.md`). It is the Rust side's alone: Python
/// keeps its own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The boundary, whole.
#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use crate::context::{context_catalogue, preview_context, read_output_filters};
    #[pymodule_export]
    use crate::engine::PyEngine;
    #[pymodule_export]
    use crate::exchange::PyExchange;
    #[pymodule_export]
    use crate::functions::{
        address_allowed, error_kinds, hash_secret, key_scopes, limit_window, new_key, pattern_fault, routes, seal,
        unseal, version,
    };
    #[pymodule_export]
    use crate::functions::{
        anthropic_error_type, canonical_model, model_address, model_is_named, model_without_folder, read_form,
    };
    #[pymodule_export]
    use crate::functions::{flattened, google_assertion, guardrails, judge_guardrails, read_page, sign_aws};
    #[pymodule_export]
    use crate::functions::{is_address_listed, is_schedule_open, PyAddressPatterns};
    #[pymodule_export]
    use crate::functions::{new_webhook_secret, sign_webhook, sign_webhook_token, verify_webhook};
    #[pymodule_export]
    use crate::listener::PyListener;
    #[pymodule_export]
    use crate::records::{read_records, record_columns, PyRecords};
    #[pymodule_export]
    use crate::socket::PySocket;

    #[pymodule_export]
    const SEND_PATIENCE_S: u64 = fairlead_engine::patience::SEND_PATIENCE_S;
    #[pymodule_export]
    const MIN_BODY_BYTES_PER_S: u64 = fairlead_engine::patience::MIN_BODY_BYTES_PER_S;
}
