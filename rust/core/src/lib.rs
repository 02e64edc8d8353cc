//! What fairlead decides and counts: no I/O, no runtime, no Python.
//!
//! Read in this order: [`error`] (what can go wrong and whose fault it is), [`routes`] with [`tier`] (every route and who may pass),
//! [`snapshot`] with [`group`] and [`access`] (the configuration a decision is made from), [`dialect`] (what callers and providers speak), [`facts`] (what models accept), [`model_name`] (the one
//! name of a model), [`ip_filter`] (from where), [`principal`], [`sessions`], [`session_lease`] and [`policy`] (who
//! is calling, and may they), [`usage`], [`price`] and [`record`]
//! (what a request came to), [`limit`], [`schedule`], [`ledger`] and [`lease`] (what keys may use, and have, on one node and on several), [`chaos`] (faults on purpose), [`strategy`] (which targets a combo
//! tries, in which order), [`health`] with [`breaker`], [`cooldown`], [`quota`] and [`resilience`] (what is learnt of providers that
//! fail), [`guardrail`] (what must not be said, either way), [`context`] (what of a conversation is sent), [`pace`] and [`provider_rate`] (what an operator
//! lets one connection take, and what its provider tells of that), [`multipart`] and [`json`] (readers of bodies that rebuild nothing),
//! [`secret`] (keys, hashes, sealing), [`jwt`], [`aws`] and [`service_account`] (credentials that are more than a header),
//! [`signature`] (how webhooks are signed), [`host`] and [`egress`] (names, and where a connection may go), [`clock`].

#![forbid(unsafe_code)]
#![allow(unreachable_pub, reason = "`pub` in a private module means the crate; the face is below")]

mod access;
// The words of AWS: `aws::sign`, `aws::Keys`.
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
// Its verbs and nouns are read with it: `guardrail::merge`, `guardrail::Action`.
pub mod guardrail;
mod health;
// Functions on the text of a host: `host::name`, `host::is_loopback`.
pub mod host;
mod ip_filter;
// A reader has common words: `json::Value`, `json::Kind`, `json::as_str`.
pub mod json;
mod jwt;
mod lease;
mod ledger;
mod limit;
// Functions on the text of a name: `model_name::canonical`, `model_name::address`.
pub mod model_name;
// The words of a format: `multipart::Form`, `multipart::Part`, `multipart::Reader`.
pub mod multipart;
mod pace;
// Questions to the rules of a key: `policy::admit_model`, `policy::sees_model`.
pub mod policy;
mod price;
mod principal;
mod provider_rate;
mod quota;
mod record;
mod resilience;
// A table is asked: `routes::find`, `routes::all`, and a `routes::Match` has a `routes::Answer`.
pub mod routes;
mod schedule;
mod secret;
mod service_account;
mod session_lease;
mod sessions;
// Of webhooks: `signature::sign`, `signature::verify`.
pub mod signature;
mod snapshot;
// A room of its own, whose words are common ones: `strategy::Facts`, `strategy::Rules`, `strategy::order`.
pub mod strategy;
mod tier;
mod usage;

pub use breaker::{is_provider_failure, Breaker, BreakerLimits, BreakerPhase, Lockout};
pub use chaos::{Chaos, Fault};
pub use clock::{rfc3339, Moment};
pub use context::{
    Compression, OwnFilters, Pipeline, PipelineStage, RawOutputs, SystemPrompt, ThinkingBudget, WindowPolicy,
};
pub use cooldown::{parse_retry_after, Rests, MAX_RETRY_AFTER_MS};
pub use dialect::Dialect;
pub use egress::{EgressPolicy, Networks};
pub use error::{Error, ErrorKind, Origin, ProviderError, Retry};
pub use facts::{
    BlankTexts, CapMember, FactTable, FactTables, ForcedTools, Letters, Level, ModelFacts, NameRule, Prefill, Samplers,
    Schemas, StreamingUsage, Thinking,
};
pub use health::{AttemptPermit, Health, HealthState, QuotaReading, TerminalState};
pub use ip_filter::AddressSet;
pub use lease::{grant_lease, LeaseGrant, LeaseTerms, StoreLoss, UseByNode};
pub use ledger::{
    Amounts, Ask, Charge, Hold, LeaseAnswer, LeaseQuestion, LeaseSummary, Ledger, LimitQuestion, Reservation, Subject,
};
pub use limit::{Limit, LimitPeriod, LimitScope, LimitUnit, Served, Zone};
pub use pace::{AccountLimits, Pace, PaceWait, Remaining};
pub use price::{Cost, PricesInUse};
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
    Auth, BareModels, CacheDefaultMode, CacheSettings, CaptureSettings, CatalogScope, Connection, Inexpressible, Key,
    Model, PersistedState, ProxyRecord, ProxyScheme, ServiceMode, Snapshot, StreamDefaultMode, UnpricedModels, DIRECT,
};
pub use usage::{ServiceTier, Units, Usage, MAX_UNITS};
