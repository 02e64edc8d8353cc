//! Who is calling. One resolver for every credential form, fed from the snapshot; it touches no database.

use crate::error::{Error, Kind};
use crate::routes::Tier;
use crate::secret::{is_well_formed_key, SecretHash, KEY_PREFIX};
use crate::snapshot::{Key, Snapshot};
use serde::Serialize;
use std::sync::Arc;

/// The resolved caller.
#[derive(Debug, Clone)]
pub enum Principal {
    /// No credential was shown.
    Anonymous,
    Key(Arc<Key>),
    Session {
        user_id: Arc<str>,
    },
    /// The local command line.
    Local,
}

/// What control is told, in the internal header.
#[derive(Debug, Serialize)]
struct Wire<'a> {
    kind: &'a str,
    id: Option<&'a str>,
    scopes: &'a [String],
}

/// The credentials of a request, as its headers carry them.
#[derive(Debug, Default, Clone, Copy)]
pub struct Credentials<'a> {
    /// From `Authorization: Bearer`, `x-api-key` or `x-goog-api-key`.
    pub bearer: Option<&'a str>,
    /// Two different bearer credentials were shown.
    pub ambiguous: bool,
    /// The cookie `auth_token`.
    pub cookie: Option<&'a str>,
    /// `X-Gateway-Cli-Token`.
    pub local_token: Option<&'a str>,
    /// The peer is loopback and no proxy spoke for another.
    pub is_local_peer: bool,
    /// The request may have been made by a page of another origin.
    pub is_cross_site: bool,
}

impl Principal {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Anonymous => "anonymous",
            Self::Key(_) => "key",
            Self::Session { .. } => "session",
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
        let (id, scopes): (Option<&str>, &[String]) = match self {
            Self::Key(key) => (Some(&key.id), &key.scopes),
            Self::Session { user_id } => (Some(user_id), &[]),
            Self::Anonymous | Self::Local => (None, &[]),
        };
        serde_json::to_string(&Wire { kind: self.kind(), id, scopes }).unwrap_or_default()
    }

    /// Resolves what was shown. A credential that is shown must be good, also where none is needed: a caller that
    /// believes it is somebody must not be served as nobody. One exception: while keys are not required, a bearer that
    /// is no key of this gateway's form counts as none, because SDKs insist on sending something.
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
                    Kind::Unauthenticated,
                    "The local token is wrong, or the request did not come directly from this machine.",
                )
                .about("X-Gateway-Cli-Token"))
            };
        }
        if shown.ambiguous {
            return Err(Error::client(Kind::Unauthenticated, "Two different credentials were sent; send one.")
                .about("Authorization"));
        }
        if let Some(text) = shown.bearer {
            return if require_api_key || text.starts_with(KEY_PREFIX) {
                resolve_key(snapshot, text, now_ms)
            } else {
                Ok(Self::Anonymous)
            };
        }
        if let Some(cookie) = shown.cookie {
            if let Some(session) = snapshot.session(&SecretHash::of(cookie.as_bytes()), now_ms) {
                if shown.is_cross_site {
                    return Err(Error::client(
                        Kind::Forbidden,
                        "A request that changes something with a session cookie must come from the gateway's own pages: send Sec-Fetch-Site or Origin.",
                    )
                    .about("Origin"));
                }
                return Ok(Self::Session { user_id: session });
            }
            // An expired cookie is sent by browsers for weeks; it makes the caller nobody, not a failure.
        }
        Ok(Self::Anonymous)
    }

    /// The key that control acts for, in a call of its own; it must be in force as if it had been shown.
    pub fn on_behalf(snapshot: &Snapshot, key_id: &str, now_ms: u64) -> Result<Self, Error> {
        let key = snapshot
            .key_of(key_id)
            .ok_or_else(|| Error::client(Kind::Unauthenticated, "The API key that this is done for is gone."))?;
        standing(key, now_ms)
    }

    /// Whether the caller may pass a door of this tier.
    pub fn admit(&self, tier: Tier, snapshot: &Snapshot, require_api_key: bool) -> Result<(), Error> {
        match (tier, self) {
            (Tier::Public, _)
            | (Tier::Key, Self::Key(_))
            | (Tier::Inference, Self::Key(_) | Self::Session { .. } | Self::Local)
            | (Tier::Management | Tier::Session, Self::Session { .. } | Self::Local) => Ok(()),
            (Tier::Key, _) => {
                Err(Error::client(Kind::Unauthenticated, "A gateway API key is required: send `X-API-Key: sk-fl-...`.")
                    .about("X-API-Key"))
            }
            (Tier::Inference, Self::Anonymous) if !require_api_key => Ok(()),
            (Tier::Inference, Self::Anonymous) => Err(Error::client(
                Kind::Unauthenticated,
                "A gateway API key is required: send `Authorization: Bearer sk-fl-...`.",
            )
            .about("Authorization")),
            (Tier::Management, Self::Key(key)) if key.may_manage() => Ok(()),
            (Tier::Management, Self::Key(_)) => {
                Err(Error::client(Kind::Forbidden, "This key lacks the scope `manage`."))
            }
            (Tier::Session, Self::Key(_)) => Err(Error::client(
                Kind::Forbidden,
                "This needs a signed-in session or the local command-line token; no key of any scope may do it.",
            )),
            (Tier::Management | Tier::Session, Self::Anonymous) if !snapshot.settings.require_login => Ok(()),
            (Tier::Management | Tier::Session, Self::Anonymous) => {
                Err(Error::client(Kind::Unauthenticated, "Sign in, or send a management credential."))
            }
        }
    }
}

fn resolve_key(snapshot: &Snapshot, text: &str, now_ms: u64) -> Result<Principal, Error> {
    let unknown = || Error::client(Kind::Unauthenticated, "The API key is not known here.").about("Authorization");
    if !is_well_formed_key(text) {
        return Err(if text.starts_with(KEY_PREFIX) {
            Error::client(Kind::Unauthenticated, "The API key is mistyped or cut off: its checksum does not fit.")
                .about("Authorization")
        } else {
            unknown()
        });
    }
    let key = snapshot.key(&SecretHash::of(text.as_bytes())).ok_or_else(unknown)?;
    standing(key, now_ms)
}

/// The key as a principal, if it is in force.
fn standing(key: &Arc<Key>, now_ms: u64) -> Result<Principal, Error> {
    let refusal = if key.is_banned {
        Some("The API key is banned.")
    } else if !key.is_active {
        Some("The API key is switched off.")
    } else if key.expires_at_ms.is_some_and(|at| at <= now_ms) {
        Some("The API key has expired.")
    } else {
        None
    };
    match refusal {
        Some(message) => Err(Error::client(Kind::Forbidden, message).about("Authorization")),
        None => Ok(Principal::Key(Arc::clone(key))),
    }
}
