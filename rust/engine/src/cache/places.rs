//! Where the models of a prefix are served, as a part of what an answer is kept under: when a provider moves, its answers are others.

use fairlead_cache::digest;
use fairlead_core::{hex, Snapshot};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The places where models of a prefix are served, each once.
pub(super) fn of_prefix(snapshot: &Snapshot, prefix: &str, out: &mut String) {
    let places: BTreeSet<(&str, Option<&str>)> = snapshot
        .candidates(prefix)
        .iter()
        .map(|&index| &snapshot.connections[index])
        .map(|connection| (connection.base_url.as_str(), connection.chat_path.as_deref()))
        .collect();
    for (base_url, chat_path) in places {
        // Writing into a text cannot fail.
        let _written = writeln!(out, "{base_url} {}", chat_path.unwrap_or_default());
    }
}

/// A digest of everything that a combo may lead to.
pub fn places(snapshot: &Snapshot) -> String {
    let mut text = format!("{:?}\n", snapshot.combos);
    let prefixes: BTreeSet<&String> = snapshot.connections.iter().flat_map(|connection| &connection.prefixes).collect();
    for prefix in prefixes {
        text.push_str(prefix);
        text.push('\n');
        of_prefix(snapshot, prefix, &mut text);
    }
    for model in &snapshot.models {
        text.push_str(&model.id);
        text.push('\n');
    }
    hex(&digest(&[text.as_bytes()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_combo_that_leads_elsewhere_is_another() {
        let places_of = |json: &str| places(&Snapshot::parse(json.as_bytes()).expect("a snapshot"));
        let connection =
            r#"{"id":"a","provider":"n","prefixes":["n"],"dialect":"openai","base_url":"http://x","auth":"none"}"#;
        let twice = connection.replace(r#""id":"a""#, r#""id":"b""#);
        let moved = connection.replace("http://x", "http://y");
        let with = |connections: &str, combos: &str| {
            places_of(&format!(r#"{{"version":1,"connections":[{connections}],"combos":[{combos}]}}"#))
        };
        let combo = r#"{"id":"c","name":"c","strategy":"priority","steps":[{"kind":"model","model":"n/m"}]}"#;
        let own = with(connection, combo);
        assert_eq!(with(&format!("{connection},{twice}"), combo), own, "another credential at the same place");
        assert_ne!(with(&moved, combo), own);
        assert_ne!(with(connection, &combo.replace("n/m", "n/o")), own);
    }
}
