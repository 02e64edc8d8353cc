//! The authorization server for tool clients.

use crate::routes::builders::{account, oauth, NO_BODY, SMALL};
use crate::routes::Route;

pub(super) static ROUTES: &[Route] = &[
    oauth("GET", "/.well-known/oauth-authorization-server", NO_BODY, "What the authorization server does (RFC 8414)."),
    oauth(
        "GET",
        "/.well-known/oauth-protected-resource",
        NO_BODY,
        "The protected resource, for clients that look here.",
    ),
    oauth(
        "GET",
        "/.well-known/oauth-protected-resource/mcp/rpc",
        NO_BODY,
        "The protected resource and who grants access to it (RFC 9728).",
    ),
    oauth("POST", "/oauth/register", SMALL, "Register a tool client (RFC 7591)."),
    oauth("GET", "/oauth/authorize", NO_BODY, "The page on which a person signs in and approves."),
    oauth("POST", "/oauth/authorize", SMALL, "Approve or deny, from that page."),
    oauth("POST", "/oauth/token", SMALL, "Exchange a code, or refresh."),
    oauth("POST", "/oauth/device_authorization", SMALL, "Begin a sign-in by device code (RFC 8628)."),
    oauth("GET", "/oauth/device", NO_BODY, "The page on which a person enters the code that a device shows."),
    oauth("POST", "/oauth/device", SMALL, "Approve or deny a device, from that page."),
    oauth("POST", "/oauth/revoke", SMALL, "Revoke a token (RFC 7009)."),
    account("GET", "/api/auth/grants", NO_BODY, "List the tool clients that one has approved."),
    account("DELETE", "/api/auth/grants/{id}", NO_BODY, "Take an approval back; its tokens end at once."),
];
