//! The URLs and deployments that serve the models of a prefix, as a part of the cache key. When a provider moves, or a
//! model has another deployment, cached responses no longer match.

use fairlead_cache::digest;
use fairlead_core::{hex, Snapshot};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Appends the URLs and deployments that serve models of a prefix, without duplicates.
pub(super) fn of_prefix(snapshot: &Snapshot, prefix: &str, out: &mut String) {
    let route_fingerprint: BTreeSet<(&str, Option<&str>)> = snapshot
        .candidates(prefix)
        .iter()
        .map(|&index| &snapshot.connections[index])
        .map(|connection| (connection.base_url.as_str(), connection.chat_path.as_deref()))
        .collect();
    for (base_url, chat_path) in route_fingerprint {
        // Writing to a string cannot fail.
        let _written = writeln!(out, "{base_url} {}", chat_path.unwrap_or_default());
    }
    let deployments: BTreeSet<(Option<&str>, &str, &str)> = snapshot
        .candidates(prefix)
        .iter()
        .map(|&index| &snapshot.connections[index])
        .flat_map(|connection| connection.deployments.iter().map(move |deployment| (connection, deployment)))
        .map(|(connection, (model, name))| (connection.api_version.as_deref(), model.as_str(), name.as_str()))
        .collect();
    for (version, model, name) in deployments {
        let _written = writeln!(out, "{} {model} {name}", version.unwrap_or_default());
    }
}

/// Returns a digest of everything that the combos may lead to.
pub fn of_combos(snapshot: &Snapshot) -> String {
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
        let places_of = |json: &str| of_combos(&Snapshot::parse(json.as_bytes()).expect("a snapshot"));
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
        let deployed = |name: &str| connection.replace('}', &format!(r#","deployments":{{"m":"{name}"}}}}"#));
        assert_ne!(with(&deployed("one"), combo), own);
        assert_ne!(with(&deployed("one"), combo), with(&deployed("two"), combo));
    }
}
