//! Backups: created, listed, downloaded and restored. Only people may use these routes, because backups contain sign-in
//! secrets.

use crate::routes::builders::{session, FILE, NO_BODY, RECORD, SMALL};
use crate::routes::Route;

pub(super) static ROUTES: &[Route] = &[
    session("GET", "/api/db-backups", NO_BODY, "List backups."),
    session("PUT", "/api/db-backups", RECORD, "Make a backup."),
    session("POST", "/api/db-backups", RECORD, "Put a backup back."),
    session("DELETE", "/api/db-backups/{id}", NO_BODY, "Delete a backup."),
    session("GET", "/api/db-backups/export", NO_BODY, "The state as a database file."),
    session("POST", "/api/db-backups/import", FILE, "Replace the state by a database file."),
    session("GET", "/api/db-backups/exportAll", NO_BODY, "State, usage and files as a compressed archive."),
    session("POST", "/api/db-backups/uploads", SMALL, "Begin to upload an export."),
    session("GET", "/api/db-backups/uploads/{id}", NO_BODY, "How much of an upload is there."),
    session("PUT", "/api/db-backups/uploads/{id}", FILE, "Add the next part to an upload."),
    session("DELETE", "/api/db-backups/uploads/{id}", NO_BODY, "Forget an upload."),
    session("POST", "/api/db-backups/uploads/{id}/restore", SMALL, "Put an uploaded export back."),
    session("GET", "/api/settings/export-json", NO_BODY, "The settings as a document."),
    session("POST", "/api/settings/import-json", RECORD, "Replace the settings by such a document."),
];
