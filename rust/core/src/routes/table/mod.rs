//! The table, one file for each part of the gateway.

use super::Route;

mod dialects;
mod gateway;
mod health;
mod identity;
mod inference;
mod scraping;
mod webhooks;

/// Every part, those with the hottest doors first.
pub(super) static PARTS: &[&[Route]] = &[
    inference::ROUTES,
    dialects::ROUTES,
    health::ROUTES,
    gateway::ROUTES,
    identity::ROUTES,
    webhooks::ROUTES,
    scraping::ROUTES,
];
