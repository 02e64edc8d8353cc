//! The snapshot in use: targets made ready, model lists prepared. Immutable; swapped in whole.

use crate::combos::Combos;
use crate::models::Lists;
use crate::target::{Hot, Target};
use fairlead_core::secret::Sealer;
use fairlead_core::snapshot::{Connection, Snapshot};
use std::collections::HashMap;
use std::sync::Arc;

/// See the module's page.
#[derive(Debug, Default)]
pub struct Live {
    pub snapshot: Snapshot,
    /// One per connection of the snapshot, at the same index; `None` where the connection cannot be used.
    pub targets: Vec<Option<Arc<Target>>>,
    pub lists: Lists,
    pub combos: Combos,
    /// Of everything that a combo may lead to: combos, and the places behind each prefix.
    pub places: String,
}

impl Live {
    /// Prepares a snapshot. What was learnt about a connection stays with it while its address and credential do.
    pub fn build(snapshot: Snapshot, before: &Live, sealer: &Sealer, version: &str) -> Self {
        let known: HashMap<&str, &Arc<Target>> =
            before.targets.iter().flatten().map(|target| (target.connection.id.as_str(), target)).collect();
        let targets: Vec<Option<Arc<Target>>> = snapshot
            .connections
            .iter()
            .map(|connection| {
                let kept = known.get(connection.id.as_str()).filter(|target| is_same(&target.connection, connection));
                let hot: Arc<Hot> = kept.map_or_else(Arc::default, |target| Arc::clone(&target.hot));
                match Target::build(Arc::clone(connection), sealer, hot, version) {
                    Ok(target) => Some(Arc::new(target)),
                    Err(reason) => {
                        tracing::error!(connection_id = %connection.id, %reason, "connection left out");
                        None
                    }
                }
            })
            .collect();
        let lists = Lists::build(&snapshot.models, &snapshot.combos);
        let combos = Combos::build(&snapshot, &targets, &before.combos);
        let places = crate::cache::places(&snapshot);
        Self { snapshot, targets, lists, combos, places }
    }
}

fn is_same(before: &Connection, now: &Connection) -> bool {
    before.credentials_sealed == now.credentials_sealed && before.base_url == now.base_url && before.auth == now.auth
}
