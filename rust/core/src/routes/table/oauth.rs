//! The authorization server for tool clients.

use crate::routes::builders::{account, oauth, JSON_64K, NO_BODY};
use crate::routes::Route;

pub(super) static ROUTES: &[Route] = &[
    oauth("GET", "/.well-known/oauth-authorization-server", NO_BODY, "Authorization server metadata (RFC 8414)."),
    oauth(
        "GET",
        "/.well-known/oauth-protected-resource",
        NO_BODY,
        "Protected resource metadata, at an alternative path.",
    ),
    oauth("GET", "/.well-known/oauth-protected-resource/mcp/rpc", NO_BODY, "Protected resource metadata (RFC 9728)."),
    oauth("POST", "/oauth/register", JSON_64K, "Register a tool client (RFC 7591)."),
    oauth("GET", "/oauth/authorize", NO_BODY, "The page on which a person signs in and approves."),
    oauth("POST", "/oauth/authorize", JSON_64K, "Approve or deny, from that page."),
    oauth("POST", "/oauth/token", JSON_64K, "Exchange a code, or refresh."),
    oauth("POST", "/oauth/device_authorization", JSON_64K, "Begin a sign-in by device code (RFC 8628)."),
    oauth("GET", "/oauth/device", NO_BODY, "The page on which a person enters the code that a device shows."),
    oauth("POST", "/oauth/device", JSON_64K, "Approve or deny a device, from that page."),
    oauth("POST", "/oauth/revoke", JSON_64K, "Revoke a token (RFC 7009)."),
    account("GET", "/api/auth/grants", NO_BODY, "List the tool clients that one has approved."),
    account("DELETE", "/api/auth/grants/{id}", NO_BODY, "Revoke an approval; its tokens end at once."),
];
