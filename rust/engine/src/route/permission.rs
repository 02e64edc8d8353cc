//! Which names a key may call.

use crate::active_config::Live;
use fairlead_core::{policy, Error, Key};

/// Checks that the key may call this name. The name can be an alias, a combo or a model.
pub fn admit(live: &Live, key: &Key, model: &str) -> Result<(), Error> {
    let name = live.snapshot.alias(model).unwrap_or(model);
    if name != model {
        policy::admit_unblocked(key, model)?;
    }
    match live.combos.book.find(name).and_then(|at| live.combos.book.get(at)) {
        Some(ready) => policy::admit_combo(key, &ready.name, ready.is_auto),
        None => policy::admit_model(key, name).and_then(|()| policy::admit_listed(key, &live.snapshot, name)),
    }
}
