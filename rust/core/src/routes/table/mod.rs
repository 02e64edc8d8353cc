//! The table, one file for each part of the gateway.

use super::Route;

mod gateway;
mod health;
mod identity;
mod inference;
mod scraping;
mod surfaces;
mod webhooks;

/// Every part, those with the hottest doors first.
pub(super) static PARTS: &[&[Route]] = &[
    inference::ROUTES,
    surfaces::ROUTES,
    health::ROUTES,
    gateway::ROUTES,
    identity::ROUTES,
    webhooks::ROUTES,
    scraping::ROUTES,
];
