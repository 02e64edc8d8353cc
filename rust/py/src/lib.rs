//! `fairlead._core`: the interface of the Rust engine for Python. Functions take and return bytes. Rust calls no Python
//! code, and the engine's thread never attaches to the interpreter: finished work waits in a queue, and a file
//! descriptor wakes the event loop to fetch it.
//!
//! Failures on the data plane are values (status, headers, body). An exception from this module means that it was used
//! incorrectly.
//!
//! `engine`, `exchange`, `ready` and `socket` serve the Python front, and `listener` the native one. `records` passes
//! usage records to DuckDB without a copy. `context` previews compression. `functions` has the other functions.

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

/// A request makes a few dozen small allocations and frees most of them before it ends. The C library's allocator took
/// nearly twice as long for them (`docs/explanation/decisions/2026-11-22-release.md`). Only the Rust side uses this
/// allocator; Python keeps its own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The complete Python module.
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
        address_allowed, error_kinds, hash_secret, key_scopes, limit_window, new_key, pattern_fault, person_may,
        routes, seal, tier_of, unseal, version,
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
