//! Copies of the state: made, listed, taken away and put back. For people only: they hold what signs people in.

use crate::routes::builders::{session, FILE, NO_BODY, RECORD};
use crate::routes::Route;

pub(super) static ROUTES: &[Route] = &[
    session("GET", "/api/db-backups", NO_BODY, "List backups."),
    session("PUT", "/api/db-backups", RECORD, "Make a backup."),
    session("POST", "/api/db-backups", RECORD, "Put a backup back."),
    session("DELETE", "/api/db-backups/{id}", NO_BODY, "Delete a backup."),
    session("GET", "/api/db-backups/export", NO_BODY, "The state as a database file."),
    session("POST", "/api/db-backups/import", FILE, "Replace the state by a database file."),
    session("GET", "/api/db-backups/exportAll", NO_BODY, "State and usage as a compressed archive."),
    session("GET", "/api/settings/export-json", NO_BODY, "The settings as a document."),
    session("POST", "/api/settings/import-json", RECORD, "Replace the settings by such a document."),
];
