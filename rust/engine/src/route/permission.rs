//! Which names a key may ask for.

use crate::active_config::Live;
use fairlead_core::{policy, Error, Key};

/// Whether the key may ask for this name, which may be an alias's, a combo's or a model's.
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
