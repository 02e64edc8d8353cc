//! Control's command that lists the connections that may be leased to a session.

use crate::route::choose::{self, RoutingHints};
use crate::route::model;
use crate::shared::Shared;
use serde::Deserialize;
use serde_json::{json, Value};

/// A model for which a connection is requested.
#[derive(Deserialize)]
struct Question {
    model: String,
    key_id: String,
}

/// Returns the connections that may serve the model, leased or not, in the order in which calls would try them.
pub fn command(shared: &Shared, args: &str) -> Result<Value, &'static str> {
    let Ok(question) = serde_json::from_str::<Question>(args) else { return Err("the arguments cannot be read") };
    let active = shared.active.load_full();
    let Some(key) = active.snapshot.key_of(&question.key_id) else {
        return Ok(json!({"fault": "There is no active API key with this id."}));
    };
    let chosen = model::admitted_name(&active, Some(key), question.model).and_then(|model| {
        let name = active.snapshot.alias(&model).unwrap_or(&model);
        choose::choose(&active, name, Some(key), RoutingHints { passes_leases: true, ..RoutingHints::default() })
    });
    Ok(match chosen {
        Ok(choice) => json!({"connections": choice.targets.iter().map(|one| &one.connection.id).collect::<Vec<_>>()}),
        Err(fault) => {
            json!({"fault": fault.message, "param": fault.param, "kind": fault.kind.code(), "retry_after_s": fault.retry_after_s})
        }
    })
}
