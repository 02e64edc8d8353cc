//! The shared store: one connection, and two scripts that decide in one round trip each.
//!
//! Keys and scripts carry the version of what is said with them (`fairlead:1:`, `lease_1.lua`): another version of the gateway
//! that counts otherwise uses other names, so two may run side by side during an upgrade, each true to its own.

use super::StoreConfig;
use fairlead_core::{LeaseAnswer, LeaseGrant, LeaseQuestion};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue as _, Pipeline, Value};
use std::collections::BTreeSet;
use std::time::Duration;

const HELLO: &str = include_str!("hello_1.lua");
const LEASE: &str = include_str!("lease_1.lua");
const EPOCH_KEY: &str = "fairlead:1:epoch";
const NODES_KEY: &str = "fairlead:1:nodes";
const LIMIT_PREFIX: &str = "fairlead:1:limit:";
/// Clocks of nodes may be apart by so much: a window is kept for those that are late.
const WINDOW_MARGIN_MS: u64 = 10 * 60_000;
/// How long after a store was emptied nothing but money is granted at once again: nodes tell it what they have by then.
const RETOLD_MS: u64 = 2_000;

/// Why the store gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreFault {
    #[error("the address of the shared store cannot be used: {0}")]
    Address(&'static str),
    #[error("the shared store does not answer: {0}")]
    Redis(String),
    #[error("the shared store answered what its script does not say")]
    Unreadable,
}

impl From<redis::RedisError> for StoreFault {
    fn from(error: redis::RedisError) -> Self {
        // The category alone: the text may name what the address does.
        let code = error.code().map(str::to_owned);
        Self::Redis(code.unwrap_or_else(|| error.category().to_owned()))
    }
}

/// A connection with its scripts loaded.
#[derive(Debug)]
pub struct Store {
    connection: MultiplexedConnection,
    hello: String,
    lease: String,
}

/// Since when the store counts, as its name says it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Epoch {
    pub name: String,
    pub since_ms: u64,
    /// The grant follows a store that was emptied while nodes had leases.
    pub is_careful: bool,
}

impl Epoch {
    fn parse(name: String) -> Option<Self> {
        let mut parts = name.split(':').skip(1);
        let since_ms = parts.next()?.parse().ok()?;
        let is_careful = parts.next()? == "1";
        Some(Self { name, since_ms, is_careful })
    }
}

/// The node as it says hello.
#[derive(Debug, Clone, Copy)]
pub struct Greeting<'a> {
    pub node: &'a str,
    pub epoch: &'a Epoch,
    pub new_epoch: &'a str,
    pub ttl_ms: u64,
    pub is_leaving: bool,
}

/// The answers to one pipeline.
#[derive(Debug, Default)]
pub struct StoreAnswers {
    pub epoch: Option<Epoch>,
    pub nodes: BTreeSet<String>,
    /// In the order of the questions; `None` where the store counts by another epoch.
    pub leases: Vec<Option<LeaseAnswer>>,
    pub orphans: BTreeSet<String>,
}

impl Store {
    /// Connects within `deadline`.
    pub async fn connect(config: &StoreConfig, deadline: Duration) -> Result<Self, StoreFault> {
        let client = Client::open(config.url.expose()).map_err(|_| StoreFault::Address("it is no redis address"))?;
        let options = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(deadline))
            .set_response_timeout(Some(deadline))
            .set_pipeline_buffer_size(64);
        let connecting = client.get_multiplexed_async_connection_with_config(&options);
        let late = |_| StoreFault::Redis("no connection in time".to_owned());
        let mut connection = tokio::time::timeout(deadline, connecting).await.map_err(late)??;
        let mut load = Pipeline::new();
        load.cmd("SCRIPT").arg("LOAD").arg(HELLO).cmd("SCRIPT").arg("LOAD").arg(LEASE);
        let (hello, lease) = load.query_async(&mut connection).await?;
        Ok(Self { connection, hello, lease })
    }

    /// Asks everything in one round trip.
    pub async fn ask(
        &mut self,
        greeting: Option<Greeting<'_>>,
        node: &str,
        epoch: &Epoch,
        ttl_ms: u64,
        questions: &[LeaseQuestion],
    ) -> Result<StoreAnswers, StoreFault> {
        let mut pipe = Pipeline::with_capacity(questions.len() + 1);
        if let Some(greeting) = greeting {
            pipe.add_command(self.greet(greeting));
        }
        for question in questions {
            pipe.add_command(self.lease(node, epoch, ttl_ms, question));
        }
        let values: Vec<Value> = pipe.query_async(&mut self.connection).await?;
        read(values, greeting.is_some())
    }

    fn greet(&self, greeting: Greeting<'_>) -> Cmd {
        let mut cmd = redis::cmd("EVALSHA");
        cmd.arg(&self.hello).arg(2).arg(EPOCH_KEY).arg(NODES_KEY);
        cmd.arg(greeting.node).arg(greeting.new_epoch).arg(u8::from(!greeting.epoch.name.is_empty()));
        cmd.arg(&greeting.epoch.name).arg(greeting.ttl_ms).arg(u8::from(greeting.is_leaving));
        cmd
    }

    fn lease(&self, node: &str, epoch: &Epoch, ttl_ms: u64, question: &LeaseQuestion) -> Cmd {
        let mut cmd = redis::cmd("EVALSHA");
        cmd.arg(&self.lease).arg(2).arg(format!("{LIMIT_PREFIX}{}", question.place)).arg(EPOCH_KEY);
        match question.returned {
            None => cmd.arg(node),
            Some(time) => cmd.arg(format!("{node}+{time}")),
        };
        let claim = &question.claim;
        cmd.arg(&epoch.name).arg(u8::from(question.is_whole)).arg(question.limit).arg(claim.used).arg(claim.floor);
        cmd.arg(claim.need).arg(claim.want).arg(ttl_ms);
        cmd.arg(question.window.ends_ms.saturating_add(WINDOW_MARGIN_MS)).arg(u8::from(question.is_exact));
        let is_of_before = epoch.is_careful && question.window.starts_ms < epoch.since_ms;
        cmd.arg(match (is_of_before, question.is_exact) {
            (false, _) => 0,
            // A lease that is not told here may be good for so long.
            (true, true) => ttl_ms,
            (true, false) => ttl_ms.min(RETOLD_MS),
        });
        for (other, used, has_ended) in question.past.iter().flatten() {
            cmd.arg(other).arg(used).arg(u8::from(*has_ended));
        }
        cmd
    }
}

fn read(values: Vec<Value>, has_greeting: bool) -> Result<StoreAnswers, StoreFault> {
    let mut answers = StoreAnswers::default();
    let mut values = values.into_iter();
    if has_greeting {
        let told: Vec<String> = values.next().map(Vec::from_redis_value).transpose().ok().flatten().unwrap_or_default();
        let mut told = told.into_iter();
        answers.epoch = Some(told.next().and_then(Epoch::parse).ok_or(StoreFault::Unreadable)?);
        answers.nodes = told.collect();
    }
    for value in values {
        let items = Vec::<Value>::from_redis_value(value).map_err(|_| StoreFault::Unreadable)?;
        let number = |at: usize| match items.get(at) {
            Some(Value::Int(number)) => u64::try_from(*number).map_err(|_| StoreFault::Unreadable),
            _ => Err(StoreFault::Unreadable),
        };
        answers.leases.push(match number(0)? {
            0 => None,
            1 => Some(LeaseAnswer::PastUnknown),
            _ => Some(LeaseAnswer::Grant(LeaseGrant {
                ceiling: number(1)?,
                others: number(2)?,
                others_used: number(3)?,
                orphaned: number(4)?,
            })),
        });
        for orphan in items.into_iter().skip(5) {
            answers.orphans.insert(String::from_redis_value(orphan).map_err(|_| StoreFault::Unreadable)?);
        }
    }
    Ok(answers)
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
