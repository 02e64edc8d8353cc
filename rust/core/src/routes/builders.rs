//! Functions that build the entries of the route table, one for each kind of route, and the body kinds of routes.

use super::{Answer, Body, Reach, Route, Surface, Tier};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;
pub(super) const NO_BODY: Body = Body::None;
/// A few fields: a sign-in, a user, a token.
pub(super) const JSON_64K: Body = Body::Json { limit_bytes: 64 * KIB };
pub(super) const JSON_1M: Body = Body::Json { limit_bytes: MIB };
pub(super) const JSON_32M: Body = Body::Json { limit_bytes: 32 * MIB };
pub(super) const FORM_24M: Body = Body::Parts { limit_bytes: 24 * MIB };
/// A document of 25 MiB in base64, with its JSON.
pub(super) const JSON_34M: Body = Body::Json { limit_bytes: 34 * MIB };
pub(super) const FILE_100M: Body = Body::File { limit_bytes: 100 * MIB };
/// A form with a document of 25 MiB and its options.
pub(super) const UPLOAD_26M: Body = Body::Upload { limit_bytes: 26 * MIB };
pub(super) const UPLOAD_512M: Body = Body::Upload { limit_bytes: 512 * MIB };

pub(super) const fn public(
    method: &'static str,
    path: &'static str,
    answer: Answer,
    body: Body,
    summary: &'static str,
) -> Route {
    Route {
        method,
        path,
        tier: Tier::Public,
        answer,
        endpoint: "public",
        reach: Reach::Anywhere,
        body,
        surface: Surface::Management,
        summary,
    }
}

pub(super) const fn inference(
    method: &'static str,
    path: &'static str,
    answer: Answer,
    endpoint: &'static str,
    body: Body,
    summary: &'static str,
) -> Route {
    Route {
        method,
        path,
        tier: Tier::Inference,
        answer,
        endpoint,
        reach: Reach::Anywhere,
        body,
        surface: Surface::OpenAi,
        summary,
    }
}

pub(super) const fn management(method: &'static str, path: &'static str, body: Body, summary: &'static str) -> Route {
    Route {
        method,
        path,
        tier: Tier::Management,
        answer: Answer::Control,
        endpoint: "management",
        reach: Reach::Anywhere,
        body,
        surface: Surface::Management,
        summary,
    }
}

pub(super) const fn of_tier(tier: Tier, route: Route) -> Route {
    Route { tier, ..route }
}

pub(super) const fn page(method: &'static str, path: &'static str, body: Body, summary: &'static str) -> Route {
    public(method, path, Answer::Control, body.or_form(), summary)
}

/// Passes any body on. The control plane reports errors in the format of its protocol.
pub(super) const fn delegated(method: &'static str, path: &'static str, body: Body, summary: &'static str) -> Route {
    of_tier(Tier::Delegated, public(method, path, Answer::Control, body.unread(), summary))
}

pub(super) const fn account(method: &'static str, path: &'static str, body: Body, summary: &'static str) -> Route {
    of_tier(Tier::Account, management(method, path, body, summary))
}

pub(super) const fn session(method: &'static str, path: &'static str, body: Body, summary: &'static str) -> Route {
    of_tier(Tier::Session, management(method, path, body, summary))
}

pub(super) const fn admin(method: &'static str, path: &'static str, body: Body, summary: &'static str) -> Route {
    of_tier(Tier::Admin, management(method, path, body, summary))
}

pub(super) const fn oauth(method: &'static str, path: &'static str, body: Body, summary: &'static str) -> Route {
    Route { surface: Surface::OAuth, ..delegated(method, path, body, summary) }
}

pub(super) const fn scraping(method: &'static str, path: &'static str, body: Body, summary: &'static str) -> Route {
    Route {
        method,
        path,
        tier: Tier::Key,
        answer: Answer::Control,
        endpoint: "scraping",
        reach: Reach::Anywhere,
        body,
        surface: Surface::Scraping,
        summary,
    }
}
