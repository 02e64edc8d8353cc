//! The snapshot in use, with targets and model lists prepared. It is immutable and replaced as a whole.

use crate::clock;
use crate::context::plans::Plans;
use crate::models::openai::Lists;
use crate::route::accounts::Accounts;
use crate::route::combos::{Combos, Reach};
use crate::route::outbound::Outbound;
use crate::upstream::auth::Unusable;
use crate::upstream::health::Provider;
use crate::upstream::target::{ConnectionMeasures, Target};
use fairlead_core::{AccountLimits, Connection, Sealer, Snapshot};
use std::collections::HashMap;
use std::sync::Arc;

/// The active configuration: a snapshot with everything that is prepared from it.
#[derive(Debug, Default)]
pub struct ActiveConfig {
    pub snapshot: Snapshot,
    /// One per connection of the snapshot, at the same index; `None` if the connection cannot be used.
    pub targets: Vec<Option<Arc<Target>>>,
    pub lists: Lists,
    pub combos: Combos,
    /// Compression pipelines.
    pub plans: Plans,
    pub accounts: Accounts,
    pub outbound: Outbound,
    /// A digest of everything that a combo may lead to: the combos, and the URLs behind each prefix.
    pub route_fingerprint: String,
}

impl ActiveConfig {
    /// The candidates of combos.
    pub fn reach(&self) -> Reach<'_> {
        Reach { snapshot: &self.snapshot, targets: &self.targets }
    }

    /// Prepares a snapshot. A connection keeps its state while its address and credential are unchanged.
    pub fn build(snapshot: Snapshot, before: &ActiveConfig, sealer: &Sealer, version: &str) -> Self {
        let known: HashMap<&str, &Arc<Target>> =
            before.targets.iter().flatten().map(|target| (target.connection.id.as_str(), target)).collect();
        let mut providers: HashMap<&str, Arc<Provider>> = before
            .targets
            .iter()
            .flatten()
            .map(|target| (target.connection.provider.as_str(), Arc::clone(&target.provider)))
            .collect();
        forget(&snapshot, before);
        let outbound = Outbound::build(&snapshot, sealer);
        let (now_ms, now_unix_ms) = (clock::monotonic_ms(), clock::unix_ms());
        let targets: Vec<Option<Arc<Target>>> = snapshot
            .connections
            .iter()
            .map(|connection| {
                let before = known.get(connection.id.as_str()).filter(|target| is_same(&target.connection, connection));
                let hot: Arc<ConnectionMeasures> = before.map_or_else(Arc::default, |target| Arc::clone(&target.hot));
                let was_stored = before.is_some_and(|target| target.connection.stored_state.is_some());
                match &connection.stored_state {
                    Some(state) => hot.condition.lock().hold(state, now_ms, now_unix_ms),
                    None if was_stored => hot.condition.lock().release(&snapshot.resilience.quota, now_ms),
                    None => {}
                }
                let learns = connection.limits.learns && snapshot.resilience.quota.learn_limits;
                hot.limiter.set(&AccountLimits { learns, ..connection.limits });
                let provider = Arc::clone(providers.entry(&connection.provider).or_default());
                let proxy = connection.proxy.as_deref().and_then(|id| outbound.named(id));
                let build = |connection: Arc<Connection>| {
                    let mut target = Target::build(connection, sealer, Arc::clone(&hot), version)?;
                    target.provider = Arc::clone(&provider);
                    target.resilience = Arc::clone(&snapshot.resilience);
                    if let Some(proxy) = &proxy {
                        target.set_proxy(proxy);
                    }
                    Ok(target)
                };
                match whole(connection, build) {
                    Ok(target) => Some(Arc::new(target)),
                    Err(reason) => {
                        tracing::error!(connection_id = %connection.id, %reason, "connection left out");
                        None
                    }
                }
            })
            .collect();
        let combos = Combos::build(&snapshot, &targets, &before.combos);
        let channels = combos.book.all().iter().filter(|ready| ready.is_auto && !ready.candidates.is_empty());
        let channels = channels.map(|ready| ready.name.as_str());
        let lists = Lists::follow((&before.snapshot, &before.lists), &snapshot, channels);
        let accounts = Accounts::build(&snapshot, &before.accounts);
        let route_fingerprint = crate::cache::route_fingerprint::of_combos(&snapshot);
        let plans = Plans::build(&snapshot.context.compression);
        Self { snapshot, targets, lists, combos, plans, accounts, outbound, route_fingerprint }
    }
}

/// Builds a connection's target with one for each of its other APIs.
fn whole(
    connection: &Arc<Connection>,
    build: impl Fn(Arc<Connection>) -> Result<Target, Unusable>,
) -> Result<Target, Unusable> {
    let mut target = build(Arc::clone(connection))?;
    let apis = connection.apis.iter().map(|api| build(Arc::new(connection.by_api(api))).map(Arc::new));
    target.apis = apis.collect::<Result<_, _>>()?;
    Ok(target)
}

/// Applies the operator's resets since the previous snapshot. A worker without a previous snapshot has nothing to
/// reset.
fn forget(snapshot: &Snapshot, before: &ActiveConfig) {
    if before.snapshot.version == 0 {
        return;
    }
    let done = before.snapshot.resilience.newest_clear();
    for clear in snapshot.resilience.clears.iter().filter(|clear| clear.number > done) {
        for target in before.targets.iter().flatten() {
            if clear.is_about(&target.connection.provider, &target.connection.id) {
                target.hot.condition.lock().forget(clear);
                if clear.model.is_none() {
                    target.hot.limiter.forget();
                }
                if clear.model.is_none() && clear.connection.is_none() {
                    target.provider.breaker.lock().succeed();
                }
                target.provider.turned.notify_waiters();
            }
        }
    }
}

fn is_same(before: &Connection, now: &Connection) -> bool {
    let is_same_account = before.account.is_some() && before.account == now.account;
    (is_same_account || before.credentials_sealed == now.credentials_sealed)
        && before.base_url == now.base_url
        && before.auth == now.auth
}
