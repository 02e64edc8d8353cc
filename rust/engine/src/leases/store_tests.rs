//! Tests the scripts on a real server, which must decide like `fairlead_core::grant_lease`.

use super::*;
use crate::leases::Leases;
use crate::shared_store::OnLoss;
use fairlead_core::{
    grant_lease, Amounts, Hold, Key, LeaseTerms, Ledger, Moment, Served, Snapshot, StoreLoss, Subject,
};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const TTL_MS: u64 = 60_000;

/// A `redis-server` for one test, empty at the start and stopped at the end.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a cluster with one server.
    async fn start_cluster(folder: &Path) -> (Self, Store) {
        let folder = folder.to_str().expect("a name");
        let server = Self::start_with(&["--cluster-enabled", "yes", "--dir", folder]);
        let alone = server.connect().await;
        let mut connection = alone.connection.clone();
        let mut own = redis::cmd("CLUSTER");
        own.arg("ADDSLOTSRANGE").arg(0).arg(16_383);
        let _owned: String = own.query_async(&mut connection).await.expect("owned");
        let config =
            StoreConfig { url: format!("redis://127.0.0.1:{}?cluster=true", server.port).into(), ..server.config(3) };
        for _ in 0..200 {
            let key = redis::cmd("GET").arg("k").query_async::<Option<String>>(&mut connection).await;
            if key.is_ok() {
                return (server, Store::connect(&config).await.expect("a connection"));
            }
            // Polls until the server has all slots, because it sends no event.
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("the cluster does not answer");
    }

    fn start_with(options: &[&str]) -> Self {
        let probe = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = probe.local_addr().expect("an address").port();
        drop(probe);
        Self::start_at(port, options)
    }

    fn start_at(port: u16, options: &[&str]) -> Self {
        let mut command = Command::new("redis-server");
        command
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port"])
            .arg(port.to_string())
            .args(options);
        let child = command.current_dir(std::env::temp_dir()).stdout(Stdio::null()).spawn();
        Self { child: child.expect("redis-server is installed"), port }
    }

    fn config(&self, workers: u64) -> StoreConfig {
        let url = format!("redis://127.0.0.1:{}/0", self.port);
        StoreConfig { url: url.into(), timeout_ms: 5_000, lease_ms: TTL_MS, on_loss: OnLoss::default(), workers }
    }

    async fn connect(&self) -> Store {
        let config = self.config(3);
        for _ in 0..200 {
            match Store::connect(&config).await {
                Ok(store) => return store,
                // Polls until the server has started, because it sends no event.
                Err(_) => tokio::time::sleep(Duration::from_millis(25)).await,
            }
        }
        panic!("redis-server does not answer");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server may have ended already.
        let _ended = self.child.kill();
        let _waited = self.child.wait();
    }
}

struct Node {
    name: &'static str,
    ledger: Ledger,
    terms: Arc<LeaseTerms>,
    holds: Vec<Hold>,
}

fn key(unit: &str, amount: u64) -> Arc<Key> {
    let hash = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    let limit = format!(r#"{{"id":"l","name":"test","unit":"{unit}","amount":{amount},"period":{{"month":0}}}}"#);
    let json = format!(r#"{{"version":1,"keys":[{{"id":"k","hash":"{hash}","is_active":true,"limits":[{limit}]}}]}}"#);
    let snapshot = Snapshot::parse(json.as_bytes()).expect("a snapshot");
    let key = snapshot.keys().next().expect("a key");
    Arc::clone(key)
}

fn at(ms: u64) -> Moment {
    Moment { unix_ms: crate::clock::unix_ms() + ms, monotonic_ms: 1_000 + ms }
}

fn node(name: &'static str, key: &Arc<Key>) -> Node {
    let terms = Arc::new(LeaseTerms::new(TTL_MS, StoreLoss::FairShare));
    terms.set_lost(false);
    let ledger = Ledger::shared(Arc::clone(&terms));
    ledger.open([key].into_iter(), |_| true, at(0));
    Node { name, ledger, terms, holds: Vec::new() }
}

fn subject() -> Subject<'static> {
    Subject { model: "p/m", served: Served::default() }
}

async fn greet(store: &mut Store, node: &Node, known: &Epoch, new: &str) -> Epoch {
    let greeting = Greeting { node: node.name, epoch: known, new_epoch: new, ttl_ms: TTL_MS, is_leaving: false };
    let answers =
        store.exchange(Some(greeting), node.name, known, TTL_MS, StoreQuestions::default()).await.expect("an answer");
    answers.epoch.expect("an epoch")
}

#[tokio::test]
async fn the_script_grants_as_the_core_does() {
    let server = Server::start();
    let mut store = server.connect().await;
    for (unit, is_exact) in [("tokens", false), ("usd_micros", true)] {
        let limit = 2_003;
        let key = key(unit, limit);
        let mut nodes = [node("a1", &key), node("b2", &key), node("c3", &key)];
        let epoch = greet(&mut store, &nodes[0], &Epoch::default(), "e").await;
        let mut reports: Vec<Option<(u64, u64)>> = vec![None; 3];
        let (mut requests, mut let_through) = (0, 0);
        for step in 0_u64..400 {
            let which = (step * 7 % 5 % 3) as usize;
            let amount = step * 31 % 17 + 1;
            let node = &mut nodes[which];
            let most = Amounts { tokens: amount, usd_micros: amount };
            if let Ok(Some(hold)) = node.ledger.reserve(&key, subject(), most, at(step * 40)) {
                node.holds.push(hold);
                let_through += amount;
            }
            let questions = node.ledger.lease_questions(at(step * 40), 0, 10, false);
            if questions.is_empty() {
                continue;
            }
            requests += 1;
            let others: Vec<_> = (0..3)
                .filter(|other| *other != which)
                .filter_map(|other| reports[other].map(|(used, ceiling)| (used, ceiling, true)))
                .collect();
            let wanted = grant_lease(limit, questions[0].claim, &others, is_exact);
            let answers = store
                .exchange(None, node.name, &epoch, TTL_MS, StoreQuestions::of_leases(&questions))
                .await
                .expect("an answer");
            assert_eq!(answers.leases, [Some(LeaseAnswer::Grant(wanted))], "{:?} {others:?}", questions[0].claim);
            reports[which] = Some((questions[0].claim.used, wanted.ceiling));
            let answers: Vec<_> = answers.leases.into_iter().flatten().collect();
            node.ledger.take_leases(&questions, &answers, at(step * 40));
        }
        assert!(requests > 20 && let_through > limit / 2 && let_through <= limit, "{requests} {let_through}");
        assert!(!nodes[0].terms.is_lost());
    }
}

#[tokio::test]
async fn a_store_without_the_past_grants_nothing_until_it_is_told() {
    let server = Server::start();
    let mut store = server.connect().await;
    let key = key("usd_micros", 1_000);
    let one = node("a1", &key);
    let epoch = greet(&mut store, &one, &Epoch::default(), "e").await;
    assert!(!epoch.is_careful, "nobody can have a lease of a first store");
    let most = Amounts { tokens: 0, usd_micros: 10 };
    assert!(one.ledger.reserve(&key, subject(), most, at(0)).is_err());
    let mut questions = one.ledger.lease_questions(at(0), u64::MAX, 10, false);
    let past = std::mem::take(&mut questions[0].past);
    questions[0].is_complete = false;
    let answers =
        store.exchange(None, "a1", &epoch, TTL_MS, StoreQuestions::of_leases(&questions)).await.expect("an answer");
    assert_eq!(answers.leases, [Some(LeaseAnswer::PastUnknown)]);
    assert_eq!(past, Some(Vec::new()));
    questions[0].past = Some(vec![("d4".into(), 300, false), ("before".into(), 600, true)]);
    questions[0].is_complete = true;
    let answers =
        store.exchange(None, "a1", &epoch, TTL_MS, StoreQuestions::of_leases(&questions)).await.expect("an answer");
    let Some(LeaseAnswer::Grant(granted)) = answers.leases[0] else { panic!("{:?}", answers.leases) };
    assert_eq!((granted.others_used, granted.others), (900, 900));
    assert!(granted.ceiling >= 10 && granted.ceiling <= 100);
    // A node that knows less or more of the past changes nothing: known usage is kept and counts once.
    questions[0].past = Some(vec![("d4".into(), 200, false), ("before".into(), 900, true)]);
    let answers =
        store.exchange(None, "b2", &epoch, TTL_MS, StoreQuestions::of_leases(&questions)).await.expect("an answer");
    let Some(LeaseAnswer::Grant(granted)) = answers.leases[0] else { panic!("{:?}", answers.leases) };
    assert_eq!(granted.others_used, 900);
}

#[tokio::test]
async fn a_store_that_was_emptied_is_another_one_and_is_careful_with_money() {
    let server = Server::start();
    let mut store = server.connect().await;
    let key = key("usd_micros", 1_000);
    let one = node("a1", &key);
    let first = greet(&mut store, &one, &Epoch::default(), "e").await;
    let _emptied: String = redis::cmd("FLUSHALL").query_async(&mut store.connection).await.expect("emptied");
    let most = Amounts { tokens: 0, usd_micros: 10 };
    assert!(one.ledger.reserve(&key, subject(), most, at(0)).is_err());
    let questions = one.ledger.lease_questions(at(0), 0, 10, false);
    let answers =
        store.exchange(None, "a1", &first, TTL_MS, StoreQuestions::of_leases(&questions)).await.expect("an answer");
    assert_eq!(answers.leases, [None], "it counts anew");
    // A node that has just started begins a new epoch. A node that had leases makes the epoch careful.
    let fresh = greet(&mut store, &one, &Epoch::default(), "f").await;
    assert!(!fresh.is_careful);
    let second = greet(&mut store, &one, &first, "g").await;
    assert!(second.is_careful && second != first && second.since_ms == fresh.since_ms);
    let answers =
        store.exchange(None, "a1", &second, TTL_MS, StoreQuestions::of_leases(&questions)).await.expect("an answer");
    let Some(LeaseAnswer::Grant(granted)) = answers.leases[0] else { panic!("{:?}", answers.leases) };
    assert_eq!(granted.ceiling, 0, "another node may have an unreported lease of this day");
}

#[tokio::test]
async fn who_is_new_at_an_emptied_store_is_granted_no_money_before_the_others_are_heard() {
    let server = Server::start();
    let mut store = server.connect().await;
    let key = key("usd_micros", 1_000);
    let (old, new) = (node("a1", &key), node("b2", &key));
    let first = greet(&mut store, &old, &Epoch::default(), "e").await;
    let _emptied: String = redis::cmd("FLUSHALL").query_async(&mut store.connection).await.expect("emptied");
    // The new node comes first and knows of no earlier store.
    let fresh = greet(&mut store, &new, &Epoch::default(), "f").await;
    assert!(!fresh.is_careful);
    let leases = Leases::new(server.config(2));
    leases.note_nodes(BTreeSet::from(["b2".to_owned()]), 0);
    let most = Amounts { tokens: 0, usd_micros: 10 };
    assert!(new.ledger.reserve(&key, subject(), most, at(0)).is_err());
    let questions = new.ledger.lease_questions(at(0), 0, 10, false);
    let answers = store
        .exchange(None, "b2", &leases.trusted(&fresh), TTL_MS, StoreQuestions::of_leases(&questions))
        .await
        .expect("an answer");
    let Some(LeaseAnswer::Grant(granted)) = answers.leases[0] else { panic!("{:?}", answers.leases) };
    assert_eq!(granted.ceiling, 0, "the other node may have leased all of it");
    // Once every node is known, a first store is not careful.
    leases.note_nodes(BTreeSet::from(["a1".to_owned(), "b2".to_owned()]), 0);
    assert!(!leases.trusted(&fresh).is_careful);
    let answers = store
        .exchange(None, "b2", &leases.trusted(&fresh), TTL_MS, StoreQuestions::of_leases(&questions))
        .await
        .expect("an answer");
    let Some(LeaseAnswer::Grant(granted)) = answers.leases[0] else { panic!("{:?}", answers.leases) };
    assert!(granted.ceiling >= 10);
    // The old node reports its leases with its next request.
    let second = greet(&mut store, &old, &first, "g").await;
    assert!(second.is_careful && leases.trusted(&second).is_careful);
}

#[tokio::test]
async fn in_a_cluster_another_server_counts_anew_and_is_careful() {
    let folder = std::env::temp_dir().join(format!("fairlead-cluster-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (server, mut store) = Server::start_cluster(&folder).await;
    let key = key("usd_micros", 1_000);
    let one = node("a1", &key);
    let first = greet(&mut store, &one, &Epoch::default(), "e").await;
    assert!(!first.is_careful && first.name.starts_with("e@"), "{}", first.name);
    assert_eq!(greet(&mut store, &one, &first, "f").await, first);
    let most = Amounts { tokens: 0, usd_micros: 10 };
    assert!(one.ledger.reserve(&key, subject(), most, at(0)).is_err());
    let questions = one.ledger.lease_questions(at(0), 0, 10, false);
    let answers =
        store.exchange(None, "a1", &first, TTL_MS, StoreQuestions::of_leases(&questions)).await.expect("an answer");
    let Some(LeaseAnswer::Grant(granted)) = answers.leases[0] else { panic!("{:?}", answers.leases) };
    assert!(granted.ceiling >= 10);
    // A server that took over has the epoch of the previous server.
    let elsewhere = format!("e@{}:{}:0", "0".repeat(40), first.since_ms);
    let mut set = redis::cmd("SET");
    set.arg(OF_CLUSTER.epoch).arg(&elsewhere);
    let _set: String = set.query_async(&mut store.connection).await.expect("set");
    let known = Epoch { name: elsewhere, ..first };
    let answers =
        store.exchange(None, "a1", &known, TTL_MS, StoreQuestions::of_leases(&questions)).await.expect("an answer");
    assert_eq!(answers.leases, [None], "it counts anew");
    let second = greet(&mut store, &one, &known, "g").await;
    assert!(second.is_careful && second.name.starts_with("g@"));
    let answers =
        store.exchange(None, "a1", &second, TTL_MS, StoreQuestions::of_leases(&questions)).await.expect("an answer");
    let Some(LeaseAnswer::Grant(granted)) = answers.leases[0] else { panic!("{:?}", answers.leases) };
    assert_eq!(granted.ceiling, 0, "another node may have a lease that this server does not know");
    // Without the cluster option the error explains what is wrong.
    let mut alone = server.connect().await;
    let reply = alone.exchange(None, "a1", &second, TTL_MS, StoreQuestions::of_leases(&questions)).await;
    assert!(matches!(reply, Err(StoreFault::OfCluster)), "{reply:?}");
    drop((store, alone, server));
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}

#[tokio::test]
async fn a_server_that_was_started_again_counts_anew_whatever_it_still_has() {
    let folder = std::env::temp_dir().join(format!("fairlead-again-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let options = ["--appendonly", "yes", "--appendfsync", "always", "--dir", folder.to_str().expect("a name")];
    let server = Server::start_with(&options);
    let port = server.port;
    let key = key("usd_micros", 1_000);
    let one = node("a1", &key);
    let mut store = server.connect().await;
    let first = greet(&mut store, &one, &Epoch::default(), "e").await;
    assert_eq!(greet(&mut store, &one, &first, "f").await, first, "it stays while the server does");
    let most = Amounts { tokens: 0, usd_micros: 10 };
    assert!(one.ledger.reserve(&key, subject(), most, at(0)).is_err());
    let questions = one.ledger.lease_questions(at(0), 0, 10, false);
    let answers =
        store.exchange(None, "a1", &first, TTL_MS, StoreQuestions::of_leases(&questions)).await.expect("an answer");
    assert!(matches!(answers.leases[0], Some(LeaseAnswer::Grant(granted)) if granted.ceiling >= 10));
    drop((store, server));

    let again = Server::start_at(port, &options);
    let mut store = again.connect().await;
    let mut get = redis::cmd("GET");
    get.arg(OF_SERVER.epoch);
    let name: Option<String> = get.query_async(&mut store.connection).await.expect("an answer");
    assert_eq!(name.as_ref(), Some(&first.name), "nobody can see in what it has that it lost something");
    let answers =
        store.exchange(None, "a1", &first, TTL_MS, StoreQuestions::of_leases(&questions)).await.expect("an answer");
    assert_eq!(answers.leases, [None], "it counts anew");
    let second = greet(&mut store, &one, &first, "g").await;
    assert!(second.is_careful && second.name.starts_with('g'), "{}", second.name);
    assert_eq!(greet(&mut store, &one, &second, "h").await, second);
    let answers =
        store.exchange(None, "a1", &second, TTL_MS, StoreQuestions::of_leases(&questions)).await.expect("an answer");
    let Some(LeaseAnswer::Grant(granted)) = answers.leases[0] else { panic!("{:?}", answers.leases) };
    assert_eq!(granted.ceiling, 0, "another node may have a lease that was not written to the disk");
    drop((store, again));
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}

fn question(session_id: &str, max: usize) -> SessionQuestion {
    let name = SessionName { key_id: "key".to_owned(), session_id: session_id.to_owned() };
    SessionQuestion { name, max }
}

async fn exchange_sessions(
    store: &mut Store,
    sessions: &[SessionQuestion],
    session_reports: &[SessionReport],
) -> Vec<SessionAnswer> {
    let questions = StoreQuestions { sessions, session_reports, ..StoreQuestions::default() };
    store.exchange(None, "a1", &Epoch::default(), TTL_MS, questions).await.expect("an answer").sessions
}

/// Checks sessions that enter at two workers, and are used and left there.
async fn assert_sessions_are_counted_together(first: &mut Store, second: &mut Store) {
    let entered = exchange_sessions(first, &[question("a", 2)], &[]).await;
    assert_eq!(entered, [SessionAnswer::Entered]);
    let entered = exchange_sessions(second, &[question("b", 2), question("c", 2), question("a", 2)], &[]).await;
    assert_eq!((entered[0], entered[2]), (SessionAnswer::Entered, SessionAnswer::Entered));
    let SessionAnswer::Full { wait_ms } = entered[1] else { panic!("a third one") };
    assert!((SESSION_IDLE_MS - 5_000..=SESSION_IDLE_MS).contains(&wait_ms), "{wait_ms}");

    // A session that was unused for long is replaced. A used session stays, even if another worker considers it unused.
    let unused_ms = SESSION_IDLE_MS - 50;
    let SessionQuestion { name, .. } = question("old", 0);
    let answers = exchange_sessions(first, &[], &[SessionReport { name: name.clone(), unused_ms }]).await;
    assert!(answers.is_empty());
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(exchange_sessions(second, &[question("d", 3)], &[]).await, [SessionAnswer::Entered]);
    let used = SessionReport { name: question("d", 0).name, unused_ms: SESSION_IDLE_MS };
    assert!(exchange_sessions(first, &[], &[used]).await.is_empty());
    let full = exchange_sessions(first, &[question("e", 3)], &[]).await;
    assert!(matches!(full[..], [SessionAnswer::Full { .. }]), "an earlier use does not undo a later one: {full:?}");
}

#[tokio::test]
async fn sessions_of_a_key_are_counted_over_all_workers() {
    let server = Server::start();
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    assert_sessions_are_counted_together(&mut first, &mut second).await;
}

#[tokio::test]
async fn sessions_are_counted_in_a_cluster() {
    let folder = std::env::temp_dir().join(format!("fairlead-sessions-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (server, mut first) = Server::start_cluster(&folder).await;
    let config =
        StoreConfig { url: format!("redis://127.0.0.1:{}?cluster=true", server.port).into(), ..server.config(3) };
    let mut second = Store::connect(&config).await.expect("a connection");
    assert_sessions_are_counted_together(&mut first, &mut second).await;
    drop(server);
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}
