//! Narrow scopes of keys. Each allows only the routes that it names. Management routes in these scopes have the tier
//! `Management`, so a program that may create such a key may already call them. The control plane checks the other
//! routes.

use super::Route;

/// A scope of a key.
#[derive(Debug, Clone, Copy)]
pub struct KeyScope {
    pub name: &'static str,
    /// Method and path, as in the route table.
    pub routes: &'static [(&'static str, &'static str)],
    /// The control plane shows only the key's own rows, and those of the connections that it may use.
    pub is_own: bool,
    pub summary: &'static str,
}

const fn scope(name: &'static str, routes: &'static [(&'static str, &'static str)], summary: &'static str) -> KeyScope {
    KeyScope { name, routes, is_own: false, summary }
}

const fn own(name: &'static str, routes: &'static [(&'static str, &'static str)], summary: &'static str) -> KeyScope {
    KeyScope { is_own: true, ..scope(name, routes, summary) }
}

pub static SCOPES: &[KeyScope] = &[
    own(
        "self:usage",
        &[
            ("GET", "/api/usage/history"),
            ("GET", "/api/usage/logs"),
            ("GET", "/api/usage/request-logs"),
            ("GET", "/api/usage/token-limits"),
            ("GET", "/api/usage/unpriced"),
        ],
        "See the usage, the requests and the token limits of the key itself.",
    ),
    own(
        "self:account-quota",
        &[("GET", "/api/rate-limits")],
        "See the limits of the key itself and of the connections that it may use.",
    ),
    scope(
        "read:health",
        &[
            ("GET", "/api/cluster"),
            ("GET", "/api/monitoring/health"),
            ("GET", "/api/resilience"),
            ("GET", "/api/resilience/model-cooldowns"),
        ],
        "See the health of the gateway and its providers.",
    ),
    scope(
        "write:resilience",
        &[
            ("PATCH", "/api/resilience"),
            ("POST", "/api/resilience/reset"),
            ("DELETE", "/api/resilience/model-cooldowns"),
        ],
        "Change the resilience thresholds, and reset failures.",
    ),
    scope(
        "read:combos",
        &[
            ("GET", "/api/combos"),
            ("GET", "/api/combos/{id}"),
            ("GET", "/api/combos/metrics"),
            ("POST", "/api/combos/simulate"),
            ("GET", "/api/model-combo-mappings"),
            ("GET", "/api/model-combo-mappings/{id}"),
            ("GET", "/api/settings/combo-defaults"),
        ],
        "See combos, their mappings, their figures, and which targets they would try.",
    ),
    scope(
        "write:combos",
        &[
            ("POST", "/api/combos"),
            ("PUT", "/api/combos/{id}"),
            ("DELETE", "/api/combos/{id}"),
            ("POST", "/api/combos/{id}/duplicate"),
            ("POST", "/api/combos/reorder"),
            ("POST", "/api/model-combo-mappings"),
            ("PUT", "/api/model-combo-mappings/{id}"),
            ("DELETE", "/api/model-combo-mappings/{id}"),
        ],
        "Make, change and delete combos and their mappings.",
    ),
    scope(
        "read:quota",
        &[("GET", "/api/rate-limits"), ("GET", "/api/usage/{id}")],
        "See the limits of keys and connections, and the quota of connections.",
    ),
    scope(
        "read:usage",
        &[
            ("GET", "/api/usage/history"),
            ("GET", "/api/usage/logs"),
            ("GET", "/api/usage/logs/{id}/headers"),
            ("GET", "/api/usage/request-logs"),
            ("GET", "/api/usage/token-limits"),
            ("GET", "/api/usage/refused-callers"),
            ("GET", "/api/usage/unpriced"),
            ("GET", "/api/usage/model-latency-stats"),
            ("GET", "/api/usage/cache-health"),
            ("GET", "/api/sessions"),
        ],
        "See the usage of every key.",
    ),
    scope(
        "read:bodies",
        &[("GET", "/api/usage/logs/{id}/body")],
        "Read the stored request and response bodies of every key.",
    ),
    scope(
        "write:budget",
        &[("POST", "/api/usage/token-limits"), ("DELETE", "/api/usage/token-limits")],
        "Set and lift token limits of keys that may not manage.",
    ),
    scope(
        "read:models",
        &[
            ("GET", "/api/models/catalog"),
            ("GET", "/api/models/alias"),
            ("GET", "/api/provider-models"),
            ("GET", "/api/provider-models/facts"),
            ("GET", "/api/pricing"),
        ],
        "Read the catalogue, aliases, model overrides and prices.",
    ),
    scope(
        "pricing:write",
        &[("PUT", "/api/pricing"), ("PATCH", "/api/pricing"), ("DELETE", "/api/pricing")],
        "Set and remove prices.",
    ),
    scope(
        "read:compression",
        &[
            ("GET", "/api/settings/compression"),
            ("GET", "/api/compression/language-packs"),
            ("GET", "/api/compression/rules"),
            ("GET", "/api/context/caveman/config"),
            ("GET", "/api/context/rtk/config"),
            ("GET", "/api/context/rtk/filters"),
            ("GET", "/api/context/combos"),
            ("GET", "/api/context/combos/{id}"),
            ("GET", "/api/context/combos/{id}/assignments"),
            ("GET", "/api/context/analytics"),
        ],
        "Read the compression settings and the savings.",
    ),
    scope(
        "write:compression",
        &[
            ("POST", "/api/context/combos"),
            ("PUT", "/api/context/combos/{id}"),
            ("DELETE", "/api/context/combos/{id}"),
            ("PUT", "/api/context/combos/{id}/assignments"),
        ],
        "Make, change and delete pipelines, and assign them.",
    ),
    scope("lease:exclusive", &[("POST", "/v1/session-leases")], "Lease connections for one session."),
    scope("read:proxies", &[("GET", "/api/settings/proxy")], "See outbound proxies, without their credentials."),
];

/// Whether one of these scopes allows the route.
pub fn opens(scopes: &[String], route: &Route) -> bool {
    !scopes.is_empty()
        && SCOPES
            .iter()
            .filter(|known| scopes.iter().any(|scope| scope == known.name))
            .any(|known| known.routes.contains(&(route.method, route.path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::{all, Tier};

    #[test]
    fn every_scope_names_routes_of_management_that_there_are() {
        for scope in SCOPES {
            for &(method, path) in scope.routes {
                let route = all().find(|route| (route.method, route.path) == (method, path));
                let route = route.unwrap_or_else(|| panic!("{} names {method} {path}", scope.name));
                let is_managed = (route.tier, route.endpoint) == (Tier::Management, "management");
                assert!(is_managed || route.tier == Tier::Key, "{method} {path}");
            }
            let names = SCOPES.iter().filter(|other| other.name == scope.name);
            assert_eq!(names.count(), 1, "{}", scope.name);
        }
    }

    #[test]
    fn a_scope_opens_exactly_what_it_names() {
        for scope in SCOPES {
            let scopes = [scope.name.to_owned()];
            for route in all() {
                let is_named = scope.routes.contains(&(route.method, route.path));
                assert_eq!(opens(&scopes, route), is_named, "{} {} {}", scope.name, route.method, route.path);
            }
        }
        assert!(all().all(|route| !opens(&["read:everything".to_owned(), "chat".to_owned()], route)));
        assert!(all().all(|route| !opens(&[], route)));
    }
}
