//! Provider wire formats as pure functions over bytes and events: no I/O, no clock, no runtime.
//!
//! Each folder holds one dialect: [`anthropic`], `gemini`, [`openai`] and `responses`. [`ollama`] is for callers only:
//! its requests become chat requests, and chat answers become its answers.
//!
//! For bodies that are forwarded, read in this order:
//!
//! - [`openai::request`]: the routing data of a chat body, and the body that is sent
//! - [`openai::answer`], [`sse`] and [`openai::stream`]: complete answers, event streams, streamed answers
//! - [`shapes`]: errors in the format of each surface
//! - `rejection`: why a provider rejected a request
//! - `rejected_member`: which member of it the error names
//! - [`fit`], `foreign` and `moved_images`: edits to a body for a model's limits, and for other vendors' signatures and
//!   images
//! - `api`, `passing` and `moved_turns`: the API that a request needs, and edits to a chat completion that its model would
//!   reject
//! - `stripped`: members that an operator declared as refused
//! - `provider_members`: size limits of members that only a provider reads
//! - [`account_objects`]: ids of objects in the provider's account
//!
//! For a caller and a provider of different dialects:
//!
//! - [`translate`]: requests and complete answers; [`stream`]: streamed answers, in one `step` per event
//! - `model` and `text`: the common form of a request; `url_params`: request data from the URL
//! - `system_turns` and `prompt_cache`: system messages in their position; cache keys and cache marks by
//!   `cache_hints`, which `prompt_cache_edits` adds to forwarded bodies
//! - `accepted`, `accepted_media`, `left_out` and `tool_names`: what a model accepts, members that are dropped, tools that
//!   are renamed
//! - `call_form`, `offered`, `caller_tools` and `text_argument`: tools that only the caller's dialect has, as functions;
//!   `result_parts`: pictures inside the text of a tool's result
//! - `signature`, `portable_id`, `call_ids` and `unique_ids`: reasoning signatures, and ids of tool calls
//! - `arguments`: arguments of tool calls in an answer; `media`: its images and audio
//! - `answer_context`: parts of an answer that depend on its request
//!
//! For providers with a separate protocol: [`protocol`], `converse` and `cohere`; [`cloud_call`] for calls that are not
//! conversations.
//!
//! For answers of any kind:
//!
//! - [`replay`]: answers served from the cache; `answer_text`: the text of a stream
//! - `stream_of_whole` and `whole_of_stream`: answers that are streamed against the request, or are not
//! - `ending`, `substance` and `diagnostics`: finish reasons, empty answers, and the error that ends a stream
//! - `lenient`: JSON that strict parsers reject
//! - [`embeddings`] and [`count`]: calls other than chat
//!
//! docs/explanation/dialects.md lists what is translated and what is dropped.
//!
//! Bytes that need no change are never copied: a body or a chunk arrives as `Bytes` and leaves as slices of it.

#![forbid(unsafe_code)]
#![allow(unreachable_pub, reason = "`pub` in a private module means the crate; the face is below")]

mod accepted;
mod accepted_media;
// Called by module path: `account_objects::first`.
pub mod account_objects;
mod answer_context;
mod answer_text;
mod anthropic;
mod api;
#[cfg(test)]
mod api_tests;
mod arguments;
mod cache_hints;
mod call_form;
mod call_ids;
#[cfg(test)]
mod call_samples;
mod caller_tools;
#[cfg(test)]
mod carried_tests;
// Called by module path: `cloud_call::CloudCall`.
pub mod cloud_call;
mod cohere;
mod converse;
#[cfg(test)]
mod conversion_tests;
mod count;
mod diagnostics;
mod ending;
// Called by module path: `embeddings::letter`, `embeddings::answer`.
pub mod embeddings;
#[cfg(test)]
mod fact_reader_tests;
#[cfg(test)]
mod facts_tests;
#[cfg(test)]
mod families_tests;
mod fit;
mod foreign;
#[cfg(test)]
#[path = "../../core/src/fuzz.rs"]
mod fuzz;
mod gemini;
mod left_out;
#[cfg(test)]
mod length_tests;
mod lenient;
mod media;
#[cfg(test)]
mod media_tests;
mod model;
mod moved_images;
mod moved_turns;
mod offered;
// A dialect of callers only. Called by module path: `ollama::read`, `ollama::answer`.
pub mod ollama;
// The engine uses these modules directly for chat without translation: `openai::request::read`, `openai::stream`.
pub mod openai;
mod passing;
mod portable_id;
mod prompt_cache;
mod prompt_cache_edits;
mod url_params;
// Called by module path: `protocol::request_for`, `protocol::answer`.
pub mod protocol;
mod provider_members;
mod rejected_member;
mod rejection;
// Called by module path: `replay::is_fit`, `replay::as_stream`.
pub mod replay;
#[cfg(test)]
mod replayed_tests;
mod responses;
mod result_parts;
mod shapes;
mod signature;
mod sse;
mod step;
// Called by module path: `stream::heartbeat`, `stream::terminal_error`.
pub mod stream;
#[cfg(test)]
mod stream_fuzz;
mod stream_of_whole;
mod stripped;
mod substance;
mod system_turns;
mod text;
mod text_argument;
mod tool_names;
#[cfg(test)]
mod tools_tests;
// Called by module path: `translate::read`, `translate::request`, `translate::answer`.
pub mod translate;
mod unique_ids;
mod whole_of_stream;

pub use answer_context::AnswerContext;
pub use answer_text::AnswerText;
pub use api::ApiNeed;
pub use cache_hints::CacheHints;
pub use count::{counted_bytes, estimate_tokens};
pub use diagnostics::add_diagnostics;
pub use fit::{Destination, Fit};
pub use rejected_member::member_of;
pub use rejection::{reason_of, RejectionReason};
pub use shapes::{anthropic_type, error_body, ErrorText};
pub use stream_of_whole::stream_of_whole;
pub use substance::answer_text;
pub use tool_names::ToolNames;
pub use translate::SentRequest;
pub use url_params::UrlParams;
pub use whole_of_stream::whole_of_stream;

/// Consecutive byte slices that together form one message or a part of one.
pub type Pieces = smallvec::SmallVec<[bytes::Bytes; 4]>;
