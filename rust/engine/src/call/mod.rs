//! One call, from its body to its record: admit, choose, attempt, relay, settle (docs/explanation/planes.md).
//!
//! Read [`context`] first: its [`context::Call`] passes through all phases.
//!
//! Phases:
//! - [`admit`]: the call starts, or follows another one through `idempotency` and a recording of `coalesce`; [`ticket`]
//!   names requests that must run once
//! - [`choose`]: model, key and capacity
//! - [`attempt`]: tries the targets in order, with [`failover`], [`deadline`], [`rounds`] and [`hedge`]
//! - [`relay`]: sends the response to the caller, after a [`head`]
//! - [`settle`]: updates health and statistics, sends responses and errors, writes the record
//!
//! Kinds of call ([`kind`]):
//! - [`conversation`]: parsed by [`read`], changed by [`combo_body`], [`compression`] and [`window`], translated by
//!   [`translation`], and answered by [`plain`] or [`conversation_stream`]. [`fusion_and_pipeline`] and [`handoff`] make calls that
//!   come first, [`reasoning`] stores reasoning for later turns, [`progress`] adds events to a stream. [`stream`]
//!   relays every stream, with [`stream_error`] and [`stream_judge`].
//! - [`passthrough`] and [`passthrough_stream`]: only the model changes; [`endpoints`] is the table of these calls,
//!   [`counting`] their units
//! - [`ollama`]: a conversation or embeddings in Ollama's API
//! - [`count`]: counts the tokens of a request
//! - [`searches`], [`videos`] and [`video_form`]: paid work that control performs
//! - [`shadow`]: calls for comparison only; [`simulate`]: a decision without a call
//!
//! [`guardrails`] check requests and responses, [`account_objects`] checks ids of objects at the provider, [`chaos`] injects faults, and [`usage_command`] answers a key's
//! question about its usage.

pub mod account_objects;
pub mod admit;
pub mod attempt;
pub mod chaos;
pub mod choose;
pub mod coalesce;
pub mod combo_body;
pub mod compression;
pub mod context;
pub mod conversation;
pub mod conversation_stream;
pub mod count;
pub mod counting;
pub mod deadline;
pub mod endpoints;
pub mod failover;
pub mod fusion_and_pipeline;
pub mod guardrails;
pub mod handoff;
pub mod head;
pub mod hedge;
pub mod idempotency;
pub mod kind;
pub mod ollama;
pub mod passthrough;
pub mod passthrough_stream;
pub mod plain;
pub mod progress;
pub mod read;
pub mod reasoning;
pub mod relay;
pub mod rounds;
pub mod searches;
pub mod settle;
pub mod shadow;
pub mod simulate;
pub mod stream;
pub mod stream_error;
pub mod stream_judge;
pub mod ticket;
pub mod translation;
pub mod usage_command;
pub mod video_form;
pub mod videos;
pub mod window;
