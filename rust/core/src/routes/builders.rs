//! How a line of the table is written: one function for each kind of door, and the sizes of bodies.

use super::{Answer, Route, Surface, Tier};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;
pub(super) const NO_BODY: usize = 0;
pub(super) const FORM: usize = 64 * KIB;
/// What is read of a body that nobody asked for.
pub(super) const FORGOTTEN: usize = 64 * KIB;
pub(super) const RECORD: usize = MIB;
pub(super) const PROMPT: usize = 32 * MIB;
/// A document of 25 MiB in base64, and what stands around it.
pub(super) const DOCUMENT: usize = 34 * MIB;
/// A file of bytes; nothing else is as large.
pub(super) const FILE: usize = 100 * MIB;
pub(super) const UPLOAD: usize = 512 * MIB;

pub(super) const fn public(
    method: &'static str,
    path: &'static str,
    answer: Answer,
    body_limit_bytes: usize,
    summary: &'static str,
) -> Route {
    Route {
        method,
        path,
        tier: Tier::Public,
        answer,
        endpoint: "public",
        body_limit_bytes,
        takes_form: false,
        surface: Surface::Management,
        summary,
    }
}

pub(super) const fn inference(
    method: &'static str,
    path: &'static str,
    answer: Answer,
    endpoint: &'static str,
    body_limit_bytes: usize,
    summary: &'static str,
) -> Route {
    Route {
        method,
        path,
        tier: Tier::Inference,
        answer,
        endpoint,
        body_limit_bytes,
        takes_form: false,
        surface: Surface::OpenAi,
        summary,
    }
}

pub(super) const fn management(
    method: &'static str,
    path: &'static str,
    body_limit_bytes: usize,
    summary: &'static str,
) -> Route {
    Route {
        method,
        path,
        tier: Tier::Management,
        answer: Answer::Control,
        endpoint: "management",
        body_limit_bytes,
        takes_form: false,
        surface: Surface::Management,
        summary,
    }
}

pub(super) const fn of_tier(tier: Tier, route: Route) -> Route {
    Route { tier, ..route }
}

pub(super) const fn with_form(route: Route) -> Route {
    Route { takes_form: true, ..route }
}

pub(super) const fn page(
    method: &'static str,
    path: &'static str,
    body_limit_bytes: usize,
    summary: &'static str,
) -> Route {
    with_form(public(method, path, Answer::Control, body_limit_bytes, summary))
}

/// Any body goes through: control answers what is wrong with it in words of its protocol.
pub(super) const fn delegated(
    method: &'static str,
    path: &'static str,
    body_limit_bytes: usize,
    summary: &'static str,
) -> Route {
    of_tier(Tier::Delegated, public(method, path, Answer::Control, body_limit_bytes, summary))
}

pub(super) const fn account(
    method: &'static str,
    path: &'static str,
    body_limit_bytes: usize,
    summary: &'static str,
) -> Route {
    of_tier(Tier::Account, management(method, path, body_limit_bytes, summary))
}

pub(super) const fn session(
    method: &'static str,
    path: &'static str,
    body_limit_bytes: usize,
    summary: &'static str,
) -> Route {
    of_tier(Tier::Session, management(method, path, body_limit_bytes, summary))
}

pub(super) const fn admin(
    method: &'static str,
    path: &'static str,
    body_limit_bytes: usize,
    summary: &'static str,
) -> Route {
    of_tier(Tier::Admin, management(method, path, body_limit_bytes, summary))
}

pub(super) const fn oauth(
    method: &'static str,
    path: &'static str,
    body_limit_bytes: usize,
    summary: &'static str,
) -> Route {
    Route { surface: Surface::OAuth, ..delegated(method, path, body_limit_bytes, summary) }
}

pub(super) const fn scraping(
    method: &'static str,
    path: &'static str,
    body_limit_bytes: usize,
    summary: &'static str,
) -> Route {
    Route {
        method,
        path,
        tier: Tier::Key,
        answer: Answer::Control,
        endpoint: "scraping",
        body_limit_bytes,
        surface: Surface::Scraping,
        takes_form: false,
        summary,
    }
}
