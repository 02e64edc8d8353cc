//! Coding tools: which are installed, and their configuration files.

use crate::routes::builders::{session, JSON_64K, NO_BODY};
use crate::routes::Route;

pub(super) static ROUTES: &[Route] = &[
    session("GET", "/api/cli-tools", NO_BODY, "The coding tools that can be configured."),
    session("GET", "/api/cli-tools/all-statuses", NO_BODY, "Get the state of every coding tool."),
    session("GET", "/api/cli-tools/status", NO_BODY, "Get the state of a coding tool."),
    session("POST", "/api/cli-tools/apply", JSON_64K, "Write a tool's configuration, or show what would be written."),
    session("GET", "/api/cli-tools/backups", NO_BODY, "Backups of tools' configuration, newest first."),
    session("POST", "/api/cli-tools/backups", JSON_64K, "Back up every tool's configuration, or restore one backup."),
    session("GET", "/api/cli-tools/{*tool}-mitm", NO_BODY, "Get a tool that has its own endpoint, and its aliases."),
    session("POST", "/api/cli-tools/{*tool}-mitm/alias", JSON_64K, "Set which models such a tool's names stand for."),
];
