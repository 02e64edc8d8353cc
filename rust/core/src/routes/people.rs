//! Fields that only people may change: signed-in operators and the local command line. The routes also accept other
//! fields, from keys and access tokens. A route that only people may call has the tier `Session`.
//!
//! These fields decide who may call the gateway (addresses, origins, sign-in) and where data is sent that operators
//! watch: mail, and the bodies of every caller.

/// The paths with such fields, and the names of the fields. A name that ends with `*` is a prefix.
pub const PEOPLES_FIELDS: &[(&str, &[&str])] = &[(
    "/api/settings",
    &[
        "requireLogin",
        "newPassword",
        "currentPassword",
        "oidc*",
        "corsOrigins",
        "bruteForceProtection",
        "captureBodies*",
    ],
)];

/// The guarded fields of a path; empty if it has none.
#[must_use]
pub fn peoples_fields(path: &str) -> &'static [&'static str] {
    PEOPLES_FIELDS.iter().find(|(guarded, _)| *guarded == path).map_or(&[], |(_, fields)| fields)
}

#[cfg(test)]
mod tests {
    use super::{peoples_fields, PEOPLES_FIELDS};
    use crate::routes::{all, Tier};

    #[test]
    fn every_guarded_path_is_written_by_programs_too() {
        for (path, fields) in PEOPLES_FIELDS {
            let mut writing = all().filter(|route| route.path == *path && route.method != "GET").peekable();
            assert!(writing.peek().is_some(), "{path}");
            assert!(writing.all(|route| route.tier == Tier::Admin), "{path}: keys and tokens do not come this far");
            assert!(!fields.is_empty(), "{path}");
        }
        assert_eq!(peoples_fields("/api/settings").len(), 7);
        assert!(peoples_fields("/api/settings/mail").is_empty());
    }

    #[test]
    fn only_people_decide_who_may_come_in() {
        let write = |method: &str| method != "GET";
        let guarded = [
            "/api/settings/ip-filter",
            "/api/settings/mail",
            "/api/settings/mail/test",
            "/api/settings/proxy/test",
            "/api/settings/require-login",
            "/api/users",
            "/api/users/{id}",
            "/api/auth/tokens",
            "/api/auth/tokens/{id}",
        ];
        for path in guarded {
            let mut writing = all().filter(|route| route.path == path && write(route.method)).peekable();
            assert!(writing.peek().is_some(), "{path}");
            assert!(writing.all(|route| route.tier == Tier::Session), "{path}");
        }
    }
}
