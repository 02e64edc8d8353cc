//! One call, from its body to its record (docs/explanation/planes.md).
//!
//! Read [`context`] first: its [`context::Call`] passes through all phases.
//!
//! Phases, in this order:
//! - [`admit`]: the call starts. [`idempotency`] makes it follow an equal call.
//! - [`choose`]: model, key and capacity
//! - [`attempt`]: tries the targets in order
//! - [`relay`]: sends the response to the caller
//! - [`settle`]: updates health and statistics, and writes the record
//!
//! Kinds of call ([`kind`]):
//! - [`conversation`]: read, changed, translated and answered
//! - [`passthrough`]: only the model changes
//! - [`ollama`]: a conversation or embeddings in Ollama's API
//! - [`work`]: searches and videos, which control performs
//!
//! [`guardrails`] check requests and responses. [`account_objects`] refuses ids of objects in the provider's account that
//! the caller may not name. [`chaos`] injects faults.

pub(crate) mod account_objects;
pub(crate) mod admit;
pub(crate) mod attempt;
pub(crate) mod chaos;
pub(crate) mod choose;
pub(crate) mod context;
pub(crate) mod conversation;
pub(crate) mod guardrails;
pub(crate) mod idempotency;
pub(crate) mod kind;
pub(crate) mod ollama;
pub(crate) mod passthrough;
pub(crate) mod relay;
pub(crate) mod settle;
pub(crate) mod work;
