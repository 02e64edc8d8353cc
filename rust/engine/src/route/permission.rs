//! Which names a key may call.

use crate::active_config::ActiveConfig;
use fairlead_core::{policy, Error, Key};

/// Checks that the key may call this name. The name can be an alias, a combo or a model.
pub fn admit(active: &ActiveConfig, key: &Key, model: &str) -> Result<(), Error> {
    let name = active.snapshot.alias(model).unwrap_or(model);
    if name != model {
        policy::admit_unblocked(key, model)?;
    }
    match active.combos.book.find(name).and_then(|at| active.combos.book.get(at)) {
        Some(ready) => policy::admit_combo(key, &ready.name, ready.is_auto),
        None => policy::admit_model(key, name).and_then(|()| policy::admit_listed(key, &active.snapshot, name)),
    }
}
