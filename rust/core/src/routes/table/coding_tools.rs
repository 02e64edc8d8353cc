//! Coding tools: which are installed, and their configuration files.

use crate::routes::builders::{session, NO_BODY, SMALL};
use crate::routes::Route;

pub(super) static ROUTES: &[Route] = &[
    session("GET", "/api/cli-tools", NO_BODY, "The coding tools that can be configured."),
    session("GET", "/api/cli-tools/all-statuses", NO_BODY, "What is installed and configured, of every tool."),
    session("GET", "/api/cli-tools/status", NO_BODY, "What is installed and configured, of one tool."),
    session("POST", "/api/cli-tools/apply", SMALL, "Write a tool's configuration, or show what would be written."),
    session("GET", "/api/cli-tools/backups", NO_BODY, "Backups of tools' configuration, newest first."),
    session("POST", "/api/cli-tools/backups", SMALL, "Back up every tool's configuration, or restore one backup."),
    session("GET", "/api/cli-tools/{*tool}-mitm", NO_BODY, "A tool with an endpoint of its own, and its aliases."),
    session("POST", "/api/cli-tools/{*tool}-mitm/alias", SMALL, "Set which models such a tool's names stand for."),
];
