//! The decisions and counters of fairlead, without I/O, a runtime or Python.
//!
//! Read the modules in this order:
//! - [`error`]: what can go wrong, and whose fault it is.
//! - [`routes`] and [`tier`]: every route, and who may call it.
//! - [`snapshot`], [`group`], [`access`] and [`inexpressible`]: the configuration that decisions use.
//! - [`dialect`], [`facts`] and [`model_name`]: the wire formats, what models accept, and the canonical name of a model.
//! - [`ip_filter`], [`principal`], [`sessions`], [`session_lease`] and [`policy`]: who is calling, from where, and what
//!   they may do.
//! - [`usage`], [`price`] and [`record`]: what a request used and cost.
//! - [`limit`], [`schedule`], [`ledger`] and [`lease`]: the limits of keys and their use, on one node and on several.
//! - [`chaos`]: fault injection.
//! - [`strategy`]: which targets a combo tries, and in which order.
//! - [`health`], [`breaker`], [`cooldown`], [`quota`] and [`resilience`]: the state of providers that fail.
//! - [`guardrail`]: content that must not pass, in either direction.
//! - [`context`]: which part of a conversation is sent.
//! - [`pace`] and [`provider_rate`]: the rate limits of a connection, set by the operator or reported by the provider.
//! - [`multipart`] and [`json`]: body readers that rebuild nothing.
//! - [`secret`], [`jwt`], [`aws`] and [`service_account`]: keys, hashes, encryption, and credentials that need a
//!   signature.
//! - [`signature`]: webhook signatures.
//! - [`host`] and [`egress`]: host names, and where a connection may go.
//! - [`clock`]: the current time.

#![forbid(unsafe_code)]
#![allow(unreachable_pub, reason = "`pub` in a private module means the crate; the face is below")]

mod access;
// AWS names are qualified: `aws::sign`, `aws::Keys`.
pub mod aws;
mod breaker;
mod chaos;
mod clock;
mod context;
mod cooldown;
mod dialect;
mod egress;
mod error;
mod facts;
#[cfg(test)]
mod fuzz;
mod group;
// Names are qualified: `guardrail::merge`, `guardrail::Action`.
pub mod guardrail;
mod health;
// Functions on the text of a host are qualified: `host::name`, `host::is_loopback`.
pub mod host;
mod inexpressible;
mod ip_filter;
// Names are qualified because they are common: `json::Value`, `json::Kind`, `json::as_str`.
pub mod json;
mod jwt;
mod lease;
mod ledger;
mod limit;
// Functions on the text of a name are qualified: `model_name::canonical`, `model_name::address`.
pub mod model_name;
// Names are qualified: `multipart::Form`, `multipart::Part`, `multipart::Reader`.
pub mod multipart;
mod pace;
// The rules of a key are qualified: `policy::admit_model`, `policy::sees_model`.
pub mod policy;
mod price;
mod principal;
mod provider_rate;
mod quota;
mod record;
mod resilience;
// The route table is qualified: `routes::find`, `routes::all`, `routes::Match`, `routes::Answer`.
pub mod routes;
mod schedule;
mod secret;
mod service_account;
mod session_lease;
mod sessions;
// Webhook signatures are qualified: `signature::sign`, `signature::verify`.
pub mod signature;
mod snapshot;
// Names are qualified because they are common: `strategy::Facts`, `strategy::Rules`, `strategy::order`.
pub mod strategy;
mod tier;
mod usage;

pub use access::Access;
pub use breaker::{is_provider_failure, Breaker, BreakerLimits, BreakerPhase, Lockout};
pub use chaos::{Chaos, Fault};
pub use clock::{rfc3339, Moment};
pub use context::{
    Compression, OwnFilters, Pipeline, PipelineStage, RawOutputs, SystemPrompt, ThinkingBudget, WindowPolicy,
};
pub use cooldown::{parse_retry_after, CooldownLimits, MAX_RETRY_AFTER_MS};
pub use dialect::Dialect;
pub use egress::{EgressPolicy, Networks};
pub use error::{Error, ErrorKind, Origin, ProviderError, Retry};
pub use facts::{
    ApiType, BlankTexts, CapMember, FactTable, FactTables, ForcedTools, Letters, Level, Logprobs, ModelFacts, NameRule,
    Output, Prefill, Samplers, Schemas, StreamingUsage, Thinking,
};
pub use health::{AttemptPermit, Health, HealthState, QuotaReading, TerminalState};
pub use inexpressible::Inexpressible;
pub use ip_filter::AddressSet;
pub use lease::{grant_lease, LeaseGrant, LeaseTerms, StoreLoss, UseByNode};
pub use ledger::{
    Accepted, Amounts, Charge, Hold, LeaseAnswer, LeaseQuestion, LeaseSummary, Ledger, LimitQuestion, NeededCapacity,
    Reservation, Subject,
};
pub use limit::{Limit, LimitPeriod, LimitScope, LimitUnit, Served, Zone};
pub use pace::{AccountLimits, Pace, PaceWait, Remaining};
pub use price::{Cost, Price, PricesInUse};
pub use principal::{Credentials, Principal};
pub use provider_rate::{ProviderRates, RateName};
pub use quota::{read_quota_headers, QuotaSpan, QuotaThresholds, WindowReading};
pub use record::{
    read_record_lines, CacheKind, CacheOutcome, Cached, ColumnKind, FieldValue, Outcome, Record, RECORD_COLUMNS,
};
pub use resilience::{Clear, Resilience};
pub use schedule::Schedule;
pub use secret::{generate_key, hex, random_bytes, random_name, NoRandomness, Sealer, Secret, SecretHash};
pub use service_account::ServiceAccount;
pub use session_lease::SessionClaim;
pub use sessions::{SessionAnswer, SessionName, SessionQuestion, SessionReport, Sessions, IDLE_MS as SESSION_IDLE_MS};
pub use snapshot::{
    Auth, BareModels, CacheDefaultMode, CacheSettings, CaptureSettings, CatalogScope, Connection, Key, Model, ModelApi,
    PersistedState, PromptCacheMode, Protocol, ProxyRecord, ProxyScheme, ServiceMode, Snapshot, StreamDefaultMode,
    TokenScope, UnpricedModels, DIRECT,
};
pub use usage::{ServiceTier, Units, Usage, MAX_UNITS};
