//! Who is calling. Resolves every form of credential from the snapshot, without a database.

use crate::error::{Error, ErrorKind};
use crate::host;
use crate::secret::{is_well_formed_key, SecretHash, KEY_PREFIX, TOKEN_PREFIX};
use crate::snapshot::{Key, ManagementToken, Snapshot, TokenScope};
use crate::tier::Tier;
use serde::Serialize;
use std::sync::Arc;

/// The resolved caller.
#[derive(Debug, Clone)]
pub enum Principal {
    /// The request had no credential.
    Anonymous,
    Key(Arc<Key>),
    Session {
        user_id: Arc<str>,
        /// The person may manage the gateway, and not only their own account.
        manages: bool,
    },
    /// A management access token.
    Token(Arc<ManagementToken>),
    /// The local command line.
    Local,
}

/// The principal as JSON for the control plane, in the internal header.
#[derive(Debug, Serialize)]
struct Wire<'a> {
    kind: &'a str,
    id: Option<&'a str>,
    scopes: &'a [String],
}

/// The credentials in the headers of a request.
#[derive(Debug, Default, Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts of one request")]
pub struct Credentials<'a> {
    /// From `Authorization: Bearer`, `x-api-key` or `x-goog-api-key`.
    pub bearer: Option<&'a str>,
    /// The request had two different bearer credentials.
    pub ambiguous: bool,
    /// The cookie `auth_token`.
    pub cookie: Option<&'a str>,
    /// `X-Gateway-Cli-Token`.
    pub local_token: Option<&'a str>,
    /// The peer is on loopback, and no proxy forwarded the request.
    pub is_local_peer: bool,
    /// The `Host` names only this machine.
    pub is_loopback_host: bool,
    /// A page of another origin may have made the request.
    pub is_cross_site: bool,
    /// The browser reports a page of another origin, or the `Host` is a name that such a page may have rebound.
    pub is_of_foreign_page: bool,
}

impl Principal {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Anonymous => "anonymous",
            Self::Key(_) => "key",
            Self::Session { .. } => "session",
            Self::Token(_) => "token",
            Self::Local => "local",
        }
    }

    pub fn key(&self) -> Option<&Arc<Key>> {
        match self {
            Self::Key(key) => Some(key),
            _ => None,
        }
    }

    /// The value of the internal principal header: JSON of ASCII ids and scopes.
    pub fn to_header(&self) -> String {
        let own: [String; 1];
        let (id, scopes): (Option<&str>, &[String]) = match self {
            Self::Key(key) => (Some(&key.id), &key.scopes),
            Self::Session { user_id, manages } => {
                own = ["manage".to_owned()];
                (Some(user_id), if *manages { &own } else { &[] })
            }
            Self::Token(token) => {
                own = [token.scope.name().to_owned()];
                (Some(&token.id), &own)
            }
            Self::Anonymous | Self::Local => (None, &[]),
        };
        serde_json::to_string(&Wire { kind: self.kind(), id, scopes }).unwrap_or_default()
    }

    /// Resolves the credentials. A credential must be valid even where none is required, because a caller that believes
    /// it is authenticated must not be served as anonymous. There is one exception: while keys are not required, a
    /// bearer that does not have this gateway's key format is ignored, because SDKs always send something.
    pub fn resolve(
        snapshot: &Snapshot,
        shown: &Credentials<'_>,
        require_api_key: bool,
        now_ms: u64,
    ) -> Result<Self, Error> {
        if let Some(token) = shown.local_token {
            let known = snapshot.local_token_hash.is_some_and(|hash| hash.same_as(&SecretHash::of(token.as_bytes())));
            return if known && shown.is_local_peer {
                Ok(Self::Local)
            } else {
                Err(Error::client(
                    ErrorKind::Unauthenticated,
                    "The local token is wrong, or the request did not come directly from this machine.",
                )
                .about("X-Gateway-Cli-Token"))
            };
        }
        if shown.ambiguous {
            return Err(Error::client(ErrorKind::Unauthenticated, "Two different credentials were sent; send one.")
                .about("Authorization"));
        }
        if let Some(text) = shown.bearer {
            if text.starts_with(TOKEN_PREFIX) {
                return Self::of_token(snapshot, &SecretHash::of(text.as_bytes()), now_ms);
            }
            return if require_api_key || text.starts_with(KEY_PREFIX) {
                resolve_key(snapshot, text, now_ms)
            } else {
                Ok(Self::Anonymous)
            };
        }
        if let Some(cookie) = shown.cookie {
            if let Some((user_id, manages)) = snapshot.session(&SecretHash::of(cookie.as_bytes()), now_ms) {
                if shown.is_cross_site {
                    return Err(Error::client(
                        ErrorKind::Forbidden,
                        "A request that changes something with a session cookie must come from the gateway's own pages: send Sec-Fetch-Site or Origin.",
                    )
                    .about("Origin"));
                }
                return Ok(Self::Session { user_id, manages });
            }
            // Browsers send an expired cookie for weeks. It makes the caller anonymous and is not an error.
        }
        Ok(Self::Anonymous)
    }

    /// The owner of the cookie's session, on a route where the control plane checks every other credential.
    pub fn of_session(snapshot: &Snapshot, shown: &Credentials<'_>, now_ms: u64) -> Self {
        shown
            .cookie
            .and_then(|cookie| snapshot.session(&SecretHash::of(cookie.as_bytes()), now_ms))
            .map_or(Self::Anonymous, |(user_id, manages)| Self::Session { user_id, manages })
    }

    /// The key on whose behalf the control plane calls. The key must be valid as if the caller had sent it.
    pub fn on_behalf(snapshot: &Snapshot, key_id: &str, now_ms: u64) -> Result<Self, Error> {
        let key = snapshot
            .key_of(key_id)
            .ok_or_else(|| Error::client(ErrorKind::Unauthenticated, "The API key that this is done for is gone."))?;
        active_key(key, now_ms)
    }

    /// The key with this hash, if it may be used now.
    pub fn of_key(snapshot: &Snapshot, hash: &SecretHash, now_ms: u64) -> Result<Self, Error> {
        let unknown =
            || Error::client(ErrorKind::Unauthenticated, "The API key is not known here.").about("Authorization");
        active_key(snapshot.key(hash).ok_or_else(unknown)?, now_ms)
    }

    /// The access token with this hash, if it has not expired.
    pub fn of_token(snapshot: &Snapshot, hash: &SecretHash, now_ms: u64) -> Result<Self, Error> {
        let refusal = |message: &'static str| Error::client(ErrorKind::Unauthenticated, message).about("Authorization");
        let token =
            snapshot.token(hash).ok_or_else(|| refusal("The access token is not known here, or was revoked."))?;
        if token.expires_at_ms.is_some_and(|at| at <= now_ms) {
            return Err(refusal("The access token has expired."));
        }
        Ok(Self::Token(Arc::clone(token)))
    }

    /// Refuses management requests of foreign pages. If no login is required, every page in a browser could make
    /// them.
    pub fn admit_page(&self, tier: Tier, shown: &Credentials<'_>) -> Result<(), Error> {
        let is_open =
            matches!(self, Self::Anonymous) && !matches!(tier, Tier::Public | Tier::Inference | Tier::Delegated);
        if is_open && shown.is_of_foreign_page {
            return Err(forbidden(
                "Without a login, management is for the gateway's own pages and programs, called by `localhost` or an IP address.",
            ));
        }
        Ok(())
    }

    /// Refuses unknown host names where no key is required. Models are then open to everybody who can reach the
    /// gateway, including a page that has rebound its name to it. `names` are the names that the operator has set.
    pub fn admit_host(&self, tier: Tier, host: &str, names: &[String]) -> Result<(), Error> {
        let is_open = matches!(self, Self::Anonymous) && tier == Tier::Inference;
        if is_open && !host::is_own(host, names) {
            let message = format!(
                "Without an API key the gateway is called by `localhost` or an IP address, and `{}` is another name. Send a \
                 key, or have the operator set SERVICE_PUBLIC_BASE_URL or FAIRLEAD_HOST_NAMES to this name.",
                host::name(host)
            );
            return Err(Error::client(ErrorKind::Forbidden, message).about("Host"));
        }
        Ok(())
    }

    /// Checks that the caller may call a route of this tier. `is_read` means that the method changes nothing.
    pub fn admit(&self, tier: Tier, is_read: bool, snapshot: &Snapshot, require_api_key: bool) -> Result<(), Error> {
        match (tier, self) {
            (Tier::Public | Tier::Delegated, _)
            | (Tier::Key | Tier::Inference, Self::Key(_))
            | (
                Tier::Inference | Tier::Management | Tier::Admin | Tier::Session | Tier::Account,
                Self::Local | Self::Session { manages: true, .. },
            )
            | (Tier::Account, Self::Session { .. }) => Ok(()),
            (Tier::Key, _) => {
                Err(Error::client(ErrorKind::Unauthenticated, "A gateway API key is required: send `X-API-Key: sk-fl-...`.")
                    .about("X-API-Key"))
            }
            (Tier::Inference, Self::Anonymous | Self::Session { .. }) if !require_api_key => Ok(()),
            (Tier::Inference, Self::Anonymous | Self::Session { .. }) => Err(Error::client(
                ErrorKind::Unauthenticated,
                "A gateway API key is required: send `Authorization: Bearer sk-fl-...`.",
            )
            .about("Authorization")),
            (Tier::Inference, Self::Token(_)) => {
                Err(forbidden("A management access token calls no models: send an API key, `sk-fl-...`."))
            }
            (Tier::Management | Tier::Admin | Tier::Session, Self::Session { .. }) => {
                Err(forbidden("This account may not manage the gateway: ask its owner for the role `admin`."))
            }
            (Tier::Management | Tier::Admin, Self::Key(key)) if key.may_manage() => Ok(()),
            (Tier::Management | Tier::Admin, Self::Key(_)) => Err(forbidden("This key lacks the scope `manage`, and has none that opens this route.")),
            (Tier::Management | Tier::Admin, Self::Token(token)) => {
                let needed = match tier {
                    Tier::Admin => TokenScope::Admin,
                    _ if is_read => TokenScope::Read,
                    _ => TokenScope::Write,
                };
                if token.scope >= needed {
                    return Ok(());
                }
                let message =
                    format!("This access token has the scope `{}`; `{}` is needed.", token.scope.name(), needed.name());
                Err(Error::client(ErrorKind::Forbidden, message))
            }
            (Tier::Session | Tier::Account, Self::Key(_) | Self::Token(_)) => Err(forbidden(
                "This needs a signed-in session or the local command-line token; no key or access token of any scope may do it.",
            )),
            (Tier::Management | Tier::Admin | Tier::Session, Self::Anonymous) if !snapshot.settings.require_login => {
                Ok(())
            }
            (Tier::Management | Tier::Admin | Tier::Session | Tier::Account, Self::Anonymous) => {
                Err(Error::client(ErrorKind::Unauthenticated, "Sign in, or send a management credential."))
            }
        }
    }
}

fn forbidden(message: &'static str) -> Error {
    Error::client(ErrorKind::Forbidden, message)
}

fn resolve_key(snapshot: &Snapshot, text: &str, now_ms: u64) -> Result<Principal, Error> {
    if !is_well_formed_key(text) {
        let message = if text.starts_with(KEY_PREFIX) {
            "The API key is mistyped or cut off: its checksum does not fit."
        } else {
            "The API key is not known here."
        };
        return Err(Error::client(ErrorKind::Unauthenticated, message).about("Authorization"));
    }
    Principal::of_key(snapshot, &SecretHash::of(text.as_bytes()), now_ms)
}

/// The key as a principal, if it is valid.
fn active_key(key: &Arc<Key>, now_ms: u64) -> Result<Principal, Error> {
    let refusal = if key.is_banned {
        Some("The API key is banned.")
    } else if !key.is_active {
        Some("The API key is switched off.")
    } else if key.expires_at_ms.is_some_and(|at| at <= now_ms) {
        Some("The API key has expired.")
    } else if let Some(group) = key.groups.iter().find(|group| !group.is_active) {
        let message = format!("The group `{}` of the API key is switched off.", group.name);
        return Err(Error::client(ErrorKind::Forbidden, message).about("Authorization"));
    } else {
        None
    };
    match refusal {
        Some(message) => Err(Error::client(ErrorKind::Forbidden, message).about("Authorization")),
        None => Ok(Principal::Key(Arc::clone(key))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIERS: [Tier; 6] =
        [Tier::Public, Tier::Inference, Tier::Account, Tier::Management, Tier::Admin, Tier::Session];

    fn token(scope: TokenScope) -> Principal {
        Principal::Token(Arc::new(ManagementToken {
            id: "t".to_owned(),
            hash: SecretHash([0; 32]),
            scope,
            expires_at_ms: None,
        }))
    }

    fn session(manages: bool) -> Principal {
        Principal::Session { user_id: Arc::from("u"), manages }
    }

    /// Every caller at each tier, reading and changing: `y` is allowed, `n` must sign in, `-` is forbidden.
    #[test]
    fn every_caller_at_every_tier() {
        let snapshot = Snapshot::default();
        for (who, reading, changing) in [
            (Principal::Anonymous, "ynnnnn", "ynnnnn"),
            (Principal::Local, "yyyyyy", "yyyyyy"),
            (session(true), "yyyyyy", "yyyyyy"),
            (session(false), "yny---", "yny---"),
            (token(TokenScope::Read), "y--y--", "y-----"),
            (token(TokenScope::Write), "y--y--", "y--y--"),
            (token(TokenScope::Admin), "y--yy-", "y--yy-"),
        ] {
            for (is_read, expected) in [(true, reading), (false, changing)] {
                let found: String = TIERS
                    .iter()
                    .map(|&tier| match who.admit(tier, is_read, &snapshot, true) {
                        Ok(()) => 'y',
                        Err(error) if error.kind == ErrorKind::Unauthenticated => 'n',
                        Err(_) => '-',
                    })
                    .collect();
                assert_eq!(found, expected, "{} {is_read}", who.kind());
            }
        }
    }

    #[test]
    fn without_login_nobody_manages_but_has_no_account() {
        let mut snapshot = Snapshot::default();
        snapshot.settings.require_login = false;
        for (tier, passes) in
            [(Tier::Management, true), (Tier::Admin, true), (Tier::Session, true), (Tier::Account, false)]
        {
            assert_eq!(Principal::Anonymous.admit(tier, false, &snapshot, true).is_ok(), passes, "{tier:?}");
        }
        assert!(token(TokenScope::Read).admit(Tier::Management, false, &snapshot, true).is_err());
    }

    #[test]
    fn nobody_from_a_foreign_page_does_not_manage() {
        let foreign = Credentials { is_of_foreign_page: true, ..Credentials::default() };
        for tier in [Tier::Management, Tier::Admin, Tier::Session] {
            assert!(Principal::Anonymous.admit_page(tier, &foreign).is_err());
            assert!(Principal::Anonymous.admit_page(tier, &Credentials::default()).is_ok());
            assert!(Principal::Local.admit_page(tier, &foreign).is_ok());
        }
        assert!(Principal::Anonymous.admit_page(Tier::Public, &foreign).is_ok());
    }

    #[test]
    fn nobody_calls_models_by_a_name_that_is_not_the_gateways() {
        let names = ["gateway.example".to_owned()];
        for (host, passes) in
            [("localhost:1", true), ("10.0.0.7", true), ("gateway.example:443", true), ("evil.example", false)]
        {
            assert_eq!(Principal::Anonymous.admit_host(Tier::Inference, host, &names).is_ok(), passes, "{host}");
            assert!(Principal::Anonymous.admit_host(Tier::Public, host, &names).is_ok());
            assert!(Principal::Local.admit_host(Tier::Inference, host, &names).is_ok());
            assert!(session(true).admit_host(Tier::Inference, host, &names).is_ok());
        }
    }

    #[test]
    fn where_control_judges_a_session_is_told_whatever_else_was_shown() {
        let json = format!(
            r#"{{"version": 1, "sessions": [{{"hash": "{}", "user_id": "u", "expires_at_ms": 10, "manages": false}}]}}"#,
            SecretHash::of(b"c").to_hex()
        );
        let snapshot = Snapshot::parse(json.as_bytes()).expect("a snapshot");
        let shown = Credentials {
            bearer: Some("sk-fl-no-key"),
            cookie: Some("c"),
            local_token: Some("no token"),
            is_cross_site: true,
            ..Credentials::default()
        };
        let who = Principal::of_session(&snapshot, &shown, 9);
        assert_eq!(who.to_header(), r#"{"kind":"session","id":"u","scopes":[]}"#);
        assert!(who.admit(Tier::Delegated, false, &snapshot, true).is_ok());
        assert!(matches!(Principal::of_session(&snapshot, &shown, 10), Principal::Anonymous));
        assert!(matches!(Principal::of_session(&snapshot, &Credentials::default(), 9), Principal::Anonymous));
    }

    #[test]
    fn an_access_token_counts_until_it_expires() {
        let text = "flm_x";
        let json = format!(
            r#"{{"version": 1, "tokens": [{{"id": "t", "hash": "{}", "scope": "write", "expires_at_ms": 10}}]}}"#,
            SecretHash::of(text.as_bytes()).to_hex()
        );
        let snapshot = Snapshot::parse(json.as_bytes()).expect("a snapshot");
        let resolve = |text: &str, now_ms| {
            let shown = Credentials { bearer: Some(text), ..Credentials::default() };
            Principal::resolve(&snapshot, &shown, false, now_ms)
        };
        let who = resolve(text, 9).expect("a token");
        assert_eq!(who.to_header(), r#"{"kind":"token","id":"t","scopes":["write"]}"#);
        assert!(resolve(text, 10).is_err());
        assert!(resolve("flm_y", 9).is_err());
    }
}
