//! The snapshot in use: targets made ready, model lists prepared. Immutable; swapped in whole.

use crate::models::Lists;
use crate::target::{Hot, Target};
use fairlead_core::secret::Sealer;
use fairlead_core::snapshot::Snapshot;
use std::collections::HashMap;
use std::sync::Arc;

/// See the module's page.
#[derive(Debug, Default)]
pub struct Live {
    pub snapshot: Snapshot,
    /// One per connection of the snapshot, at the same index; `None` where the connection cannot be used.
    pub targets: Vec<Option<Arc<Target>>>,
    pub lists: Lists,
}

impl Live {
    /// Prepares a snapshot. What was learnt about a connection stays with it.
    pub fn build(snapshot: Snapshot, before: &Live, sealer: &Sealer, version: &str) -> Self {
        let known: HashMap<&str, &Arc<Hot>> =
            before.targets.iter().flatten().map(|target| (target.connection.id.as_str(), &target.hot)).collect();
        let targets = snapshot
            .connections
            .iter()
            .map(|connection| {
                let hot = known.get(connection.id.as_str()).map_or_else(Arc::default, |hot| Arc::clone(hot));
                match Target::build(Arc::clone(connection), sealer, hot, version) {
                    Ok(target) => Some(Arc::new(target)),
                    Err(reason) => {
                        tracing::error!(connection_id = %connection.id, %reason, "connection left out");
                        None
                    }
                }
            })
            .collect();
        let lists = Lists::build(&snapshot.models);
        Self { snapshot, targets, lists }
    }
}
