//! Leased connections. A leased connection serves only the session that presents the lease with each request.

use crate::active_config::ActiveConfig;
use crate::clock;
use crate::gate::request::Admission;
use crate::route::choice::Choice;
use fairlead_core::{Connection, Error, ErrorKind};

/// The `Retry-After` of a request that finds all connections leased.
const RETRY_AFTER_S: u64 = 30;

/// Returns the connection that is leased to the caller, if the request presents a lease.
pub fn claimed_connection<'a>(active: &'a ActiveConfig, admission: &Admission) -> Result<Option<&'a str>, Error> {
    let Some(claim) = &admission.lease else { return Ok(None) };
    if claim.generation.is_none() {
        let message = "X-Gateway-Lease-Generation is missing: send it together with X-Gateway-Lease-Owner.";
        return Err(Error::client(ErrorKind::InvalidRequest, message).about("x-gateway-lease-generation"));
    }
    let (key, now_ms) = (admission.principal.key(), clock::unix_ms());
    let mut connections = active.snapshot.connections.iter();
    let found = key.and_then(|key| {
        connections.find(|one| one.lease.as_ref().is_some_and(|lease| lease.is_held_by(&key.id, claim, now_ms)))
    });
    if let Some(connection) = found {
        return Ok(Some(&connection.id));
    }
    let message = "The lease has expired or was replaced: acquire one at /v1/session-leases.";
    Err(Error::client(ErrorKind::LeaseStale, message).about("x-gateway-lease-generation"))
}

/// Returns whether the caller may use this connection. `leased` is the connection that the caller has leased.
pub fn is_open(connection: &Connection, leased: Option<&str>) -> bool {
    match (leased, &connection.lease) {
        (Some(leased), _) => leased == connection.id,
        (None, None) => true,
        (None, Some(lease)) => !lease.is_live(clock::unix_ms()),
    }
}

/// Removes the connections from the choice that are leased to other callers.
pub fn narrow(choice: Choice, leased: Option<&str>) -> Result<Choice, Error> {
    let is_open = |at: &usize| is_open(&choice.targets[*at].connection, leased);
    let indices: Vec<usize> = (0..choice.targets.len()).filter(is_open).collect();
    if indices.len() == choice.targets.len() {
        return Ok(choice);
    }
    if indices.is_empty() {
        return Err(none_open(leased));
    }
    Ok(choice.narrowed(&indices))
}

/// The error when no connection is open to the caller.
pub fn none_open(leased: Option<&str>) -> Error {
    if leased.is_some() {
        let message = "The leased connection does not serve this model: acquire a lease for it.";
        return Error::client(ErrorKind::InvalidRequest, message).about("model");
    }
    Error::gateway(ErrorKind::LeaseUnavailable, "Every connection that could serve this request is leased.")
        .after_s(RETRY_AFTER_S)
}
