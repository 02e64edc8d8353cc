//! Groups of keys: teams and their parents. The settings of a group apply to every key in it and in the groups below
//! it, together with the key's own: the narrowest access, the strictest guardrail, and the limits of every level.

use crate::access::Access;
use crate::guardrail::Guardrails;
use crate::inexpressible::Inexpressible;
use crate::limit::{Holder, Limit};
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::Arc;

/// The number of groups that a key can be in: its own, the parent, and the topmost.
pub const LEVELS_MAX: usize = 3;

/// A group, with the fields that the relay needs.
#[derive(Debug, Clone, Deserialize)]
pub struct Group {
    pub id: String,
    #[serde(default)]
    pub name: String,
    /// The id of the parent group.
    #[serde(default)]
    pub parent: Option<String>,
    #[serde(default = "yes")]
    pub is_active: bool,
    #[serde(flatten)]
    pub access: Access,
    /// The minimum guardrail actions for the group's keys. Settings, keys and calls cannot weaken them.
    #[serde(default)]
    pub guardrails: Guardrails,
    #[serde(default)]
    pub limits: Vec<Limit>,
    /// How members that a provider does not accept are handled for keys that do not choose themselves. Absent: as the
    /// parent group says.
    #[serde(default)]
    pub inexpressible: Option<Inexpressible>,
}

fn yes() -> bool {
    true
}

/// The groups of a configuration document, each with its path to the topmost group.
#[derive(Debug, Default)]
pub struct GroupTree {
    by_id: HashMap<String, Arc<Group>>,
}

impl GroupTree {
    /// Builds the tree and names each limit after its group, so that a refusal reports the level that caused it.
    pub fn new(groups: Vec<Group>) -> Self {
        let named = |mut group: Group| {
            let holder = Arc::new(Holder { id: group.id.clone(), name: group.name.clone() });
            for limit in &mut group.limits {
                limit.id = format!("{}:{}", group.id, limit.id);
                limit.group = Some(Arc::clone(&holder));
            }
            (group.id.clone(), Arc::new(group))
        };
        Self { by_id: groups.into_iter().map(named).collect() }
    }

    /// The group with this id and its ancestors, nearest first. At most three, without repeats.
    pub fn path(&self, id: Option<&str>) -> Vec<Arc<Group>> {
        let mut path: Vec<Arc<Group>> = Vec::new();
        let mut next = id;
        while let Some(group) = next.and_then(|id| self.by_id.get(id)) {
            if path.len() == LEVELS_MAX || path.iter().any(|below| below.id == group.id) {
                break;
            }
            path.push(Arc::clone(group));
            next = group.parent.as_deref();
        }
        path
    }

    pub fn contains(&self, id: &str) -> bool {
        self.by_id.contains_key(id)
    }
}

/// The ids of a path from the topmost group down, separated by `/`; `None` for an empty path.
pub fn path_text(path: &[Arc<Group>]) -> Option<String> {
    let ids: Vec<&str> = path.iter().rev().map(|group| group.id.as_str()).collect();
    (!ids.is_empty()).then(|| ids.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(id: &str, parent: Option<&str>) -> Group {
        serde_json::from_value(serde_json::json!({"id": id, "parent": parent})).expect("a group")
    }

    fn ids(path: &[Arc<Group>]) -> Vec<&str> {
        path.iter().map(|group| group.id.as_str()).collect()
    }

    #[test]
    fn a_path_leads_from_a_group_to_the_topmost() {
        let tree = GroupTree::new(vec![group("team", Some("area")), group("area", Some("firm")), group("firm", None)]);
        assert_eq!(ids(&tree.path(Some("team"))), ["team", "area", "firm"]);
        assert_eq!(ids(&tree.path(Some("firm"))), ["firm"]);
        assert_eq!(path_text(&tree.path(Some("team"))).as_deref(), Some("firm/area/team"));
        assert!(tree.path(None).is_empty() && tree.path(Some("gone")).is_empty());
    }

    #[test]
    fn a_path_ends_after_three_levels_and_where_it_would_come_round() {
        let round = GroupTree::new(vec![group("a", Some("b")), group("b", Some("a"))]);
        assert_eq!(ids(&round.path(Some("a"))), ["a", "b"]);
        let deep = ["b", "c", "d", "e"];
        let tree = GroupTree::new(["a", "b", "c", "d"].iter().zip(deep).map(|(id, up)| group(id, Some(up))).collect());
        assert_eq!(ids(&tree.path(Some("a"))), ["a", "b", "c"]);
    }
}
