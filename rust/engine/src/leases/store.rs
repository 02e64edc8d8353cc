//! The shared store: one connection, and three scripts that each decide in one round trip.
//!
//! Keys and scripts include a version (`fairlead:1:`, `lease_1.lua`). A version of the gateway that counts differently
//! uses different names, so that two versions can run side by side during an upgrade.
//!
//! In a cluster all limits and their epoch are in one slot, because of the tag in their names. Replication between
//! servers is asynchronous, so a server that takes over may lack the latest leases. The epoch therefore includes the
//! server's name. A different server starts a new epoch, which is as careful as that of an emptied store.

use crate::shared_store::{StoreConfig, StoreConnection};
use fairlead_core::{
    LeaseAnswer, LeaseGrant, LeaseQuestion, SecretHash, SessionAnswer, SessionName, SessionQuestion, SessionReport,
    SESSION_IDLE_MS,
};
use redis::{Cmd, FromRedisValue as _, Pipeline, RedisError, Value};
use std::collections::BTreeSet;

const HELLO: &str = include_str!("hello_1.lua");
const LEASE: &str = include_str!("lease_1.lua");
const SESSION: &str = include_str!("session_1.lua");
const OF_SERVER: Names = Names {
    epoch: "fairlead:1:epoch",
    nodes: "fairlead:1:nodes",
    limit_prefix: "fairlead:1:limit:",
    sessions_prefix: "fairlead:1:sessions:",
};
const OF_CLUSTER: Names = Names {
    epoch: "fairlead:2:{limits}:epoch",
    nodes: "fairlead:2:{limits}:nodes",
    limit_prefix: "fairlead:2:{limits}:limit:",
    sessions_prefix: "fairlead:2:{limits}:sessions:",
};
/// The maximum clock difference between nodes. A window is stored this much longer for nodes whose clocks are late.
const WINDOW_MARGIN_MS: u64 = 10 * 60_000;
/// How long an emptied store grants nothing for limits that need not be exact. By then the nodes have reported their
/// leases.
const RETOLD_MS: u64 = 2_000;

/// Why the store gave no reply.
#[derive(Debug, thiserror::Error)]
pub enum StoreFault {
    #[error("the shared store is one server of a cluster: its address needs ?cluster=true or its other servers")]
    OfCluster,
    #[error("the shared store does not answer: {0}")]
    Redis(String),
    #[error("the shared store answered what its script does not say")]
    Unreadable,
}

impl From<RedisError> for StoreFault {
    fn from(error: RedisError) -> Self {
        // Only the category is logged, because the text may contain credentials from the address.
        let code = error.code().map(str::to_owned);
        Self::Redis(code.unwrap_or_else(|| error.category().to_owned()))
    }
}

/// The names of the keys in the store.
#[derive(Debug)]
struct Names {
    epoch: &'static str,
    nodes: &'static str,
    limit_prefix: &'static str,
    sessions_prefix: &'static str,
}

/// A connection with its scripts loaded.
#[derive(Debug)]
pub struct Store {
    connection: StoreConnection,
    names: &'static Names,
    hello: String,
    lease: String,
    session: String,
}

/// The counting period of the store, as its name encodes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Epoch {
    pub name: String,
    pub since_ms: u64,
    /// The epoch follows a store that was emptied while nodes had leases.
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

/// A node's announcement.
#[derive(Debug, Clone, Copy)]
pub struct Greeting<'a> {
    pub node: &'a str,
    pub epoch: &'a Epoch,
    pub new_epoch: &'a str,
    pub ttl_ms: u64,
    pub is_leaving: bool,
}

/// The requests and reports of one round trip.
#[derive(Debug, Clone, Copy, Default)]
pub struct StoreQuestions<'a> {
    pub leases: &'a [LeaseQuestion],
    pub sessions: &'a [SessionQuestion],
    pub session_reports: &'a [SessionReport],
}

impl<'a> StoreQuestions<'a> {
    pub fn of_leases(leases: &'a [LeaseQuestion]) -> Self {
        Self { leases, ..Self::default() }
    }
}

/// The replies to one pipeline.
#[derive(Debug, Default)]
pub struct StoreAnswers {
    pub epoch: Option<Epoch>,
    pub nodes: BTreeSet<String>,
    /// In the order of the questions; `None` if the store has a different epoch.
    pub leases: Vec<Option<LeaseAnswer>>,
    pub orphans: BTreeSet<String>,
    /// In the order of the questions.
    pub sessions: Vec<SessionAnswer>,
}

impl Store {
    /// Connects within the deadline.
    pub async fn connect(config: &StoreConfig) -> Result<Self, StoreFault> {
        let mut connection = config.connect().await?;
        // Loaded one by one, so that each script reaches all servers of a cluster.
        let hello = redis::cmd("SCRIPT").arg("LOAD").arg(HELLO).query_async(&mut connection).await?;
        let lease = redis::cmd("SCRIPT").arg("LOAD").arg(LEASE).query_async(&mut connection).await?;
        let session = redis::cmd("SCRIPT").arg("LOAD").arg(SESSION).query_async(&mut connection).await?;
        let names = if connection.is_cluster() { &OF_CLUSTER } else { &OF_SERVER };
        Ok(Self { connection, names, hello, lease, session })
    }

    /// Sends all requests in one round trip.
    pub async fn exchange(
        &mut self,
        greeting: Option<Greeting<'_>>,
        node: &str,
        epoch: &Epoch,
        ttl_ms: u64,
        questions: StoreQuestions<'_>,
    ) -> Result<StoreAnswers, StoreFault> {
        let StoreQuestions { leases, sessions, session_reports } = questions;
        let mut pipe = Pipeline::with_capacity(1 + leases.len() + sessions.len() + session_reports.len());
        if let Some(greeting) = greeting {
            pipe.add_command(self.greet(greeting));
        }
        for question in leases {
            pipe.add_command(self.lease(node, epoch, ttl_ms, question));
        }
        // Sessions in use come first, so that a store that was emptied knows them before it admits others.
        for report in session_reports {
            pipe.add_command(self.session(&report.name, 0, report.unused_ms));
        }
        for question in sessions {
            pipe.add_command(self.session(&question.name, question.max, 0));
        }
        let replies: Result<Vec<Value>, RedisError> = pipe.query_async(&mut self.connection).await;
        read(replies.map_err(|fault| self.fault(fault))?, greeting.is_some(), &questions)
    }

    /// Callers choose the names of sessions, so the store has only hashes of them.
    fn session(&self, name: &SessionName, max: usize, unused_ms: u64) -> Cmd {
        let mut cmd = redis::cmd("EVALSHA");
        cmd.arg(&self.session).arg(1).arg(format!("{}{}", self.names.sessions_prefix, name.key_id));
        cmd.arg(SecretHash::of(name.session_id.as_bytes()).to_hex()).arg(max).arg(SESSION_IDLE_MS).arg(unused_ms);
        cmd
    }

    fn fault(&self, error: RedisError) -> StoreFault {
        match error.code() {
            Some("CROSSSLOT" | "MOVED") if !self.connection.is_cluster() => StoreFault::OfCluster,
            _ => error.into(),
        }
    }

    fn greet(&self, greeting: Greeting<'_>) -> Cmd {
        let mut cmd = redis::cmd("EVALSHA");
        cmd.arg(&self.hello).arg(2).arg(self.names.epoch).arg(self.names.nodes);
        cmd.arg(greeting.node).arg(greeting.new_epoch).arg(u8::from(!greeting.epoch.name.is_empty()));
        cmd.arg(&greeting.epoch.name).arg(greeting.ttl_ms).arg(u8::from(greeting.is_leaving));
        cmd.arg(u8::from(self.connection.is_cluster()));
        cmd
    }

    fn lease(&self, node: &str, epoch: &Epoch, ttl_ms: u64, question: &LeaseQuestion) -> Cmd {
        let mut cmd = redis::cmd("EVALSHA");
        cmd.arg(&self.lease)
            .arg(2)
            .arg(format!("{}{}", self.names.limit_prefix, question.counter_name))
            .arg(self.names.epoch);
        match question.returned {
            None => cmd.arg(node),
            Some(time) => cmd.arg(format!("{node}+{time}")),
        };
        let claim = &question.claim;
        cmd.arg(&epoch.name).arg(u8::from(question.is_complete)).arg(question.limit).arg(claim.used).arg(claim.floor);
        cmd.arg(claim.need).arg(claim.want).arg(ttl_ms);
        cmd.arg(question.window.ends_ms.saturating_add(WINDOW_MARGIN_MS)).arg(u8::from(question.is_exact));
        let is_of_before = epoch.is_careful && question.window.starts_ms < epoch.since_ms;
        cmd.arg(match (is_of_before, question.is_exact) {
            (false, _) => 0,
            // An unreported lease may be valid for this long.
            (true, true) => ttl_ms,
            (true, false) => ttl_ms.min(RETOLD_MS),
        });
        for (other, used, has_ended) in question.past.iter().flatten() {
            cmd.arg(other).arg(used).arg(u8::from(*has_ended));
        }
        cmd
    }
}

fn read(values: Vec<Value>, has_greeting: bool, questions: &StoreQuestions<'_>) -> Result<StoreAnswers, StoreFault> {
    let mut answers = StoreAnswers::default();
    let mut values = values.into_iter();
    if has_greeting {
        let members: Vec<String> =
            values.next().map(Vec::from_redis_value).transpose().ok().flatten().unwrap_or_default();
        let mut members = members.into_iter();
        answers.epoch = Some(members.next().and_then(Epoch::parse).ok_or(StoreFault::Unreadable)?);
        answers.nodes = members.collect();
    }
    for value in values.by_ref().take(questions.leases.len()) {
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
    for value in values.skip(questions.session_reports.len()) {
        let wait_ms = u64::from_redis_value(value).map_err(|_| StoreFault::Unreadable)?;
        answers.sessions.push(if wait_ms == 0 { SessionAnswer::Entered } else { SessionAnswer::Full { wait_ms } });
    }
    if answers.sessions.len() != questions.sessions.len() {
        return Err(StoreFault::Unreadable);
    }
    Ok(answers)
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
