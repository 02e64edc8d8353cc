//! A search of the web as a request that is paid for: control asks the engines and tells who answered and what it cost;
//! the relay holds it to the key's limits and settles it as every other call.

use crate::limits;
use crate::settle::Settlement;
use crate::shared::Shared;
use fairlead_core::error::{Error, Kind};
use fairlead_core::price::Cost;
use fairlead_core::record::Outcome;
use http::{HeaderMap, HeaderName, StatusCode};
use serde::Deserialize;

/// Of control's answer; it stays between the planes.
const BILL: HeaderName = HeaderName::from_static("x-fairlead-bill");

/// Who answered, and what one search costs there.
#[derive(Debug, Deserialize)]
struct Bill {
    provider: String,
    usd_micros: u64,
}

/// Reserves room for a search.
pub(crate) fn reserve(shared: &Shared, settlement: &mut Settlement) -> Result<(), Error> {
    let most = shared.live.load().snapshot.search_usd_micros;
    limits::reserve_sum(shared, settlement, most)?;
    settlement.attempts = 1;
    Ok(())
}

/// Writes down what control answered.
pub(crate) fn settle(mut settlement: Settlement, status: StatusCode, headers: &HeaderMap, is_whole: bool) {
    settlement.status = status.as_u16();
    let told = headers.get(BILL).and_then(|bill| serde_json::from_slice::<Bill>(bill.as_bytes()).ok());
    if let Some(bill) = told {
        settlement.serve_by(bill.provider, Cost::from_usd_micros(bill.usd_micros));
    }
    let fault = |kind| Some(Error::gateway(kind, "The search failed."));
    let (outcome, error) = match status {
        _ if !is_whole => (Outcome::UpstreamFailed, fault(Kind::ControlUnavailable)),
        status if status.is_success() => (Outcome::Completed, None),
        status if status.is_server_error() => (Outcome::UpstreamFailed, fault(Kind::UpstreamStatus)),
        _ => (Outcome::Refused, fault(Kind::InvalidRequest)),
    };
    settlement.settle(outcome, error.as_ref());
}
