//! Backups: created, listed, downloaded and restored. Only people may use these routes, because backups contain sign-in
//! secrets.

use crate::routes::builders::{session, FILE_100M, JSON_1M, JSON_64K, NO_BODY};
use crate::routes::Route;

pub(super) static ROUTES: &[Route] = &[
    session("GET", "/api/db-backups", NO_BODY, "List backups."),
    session("PUT", "/api/db-backups", JSON_1M, "Make a backup."),
    session("POST", "/api/db-backups", JSON_1M, "Restore a backup."),
    session("DELETE", "/api/db-backups/{id}", NO_BODY, "Delete a backup."),
    session("GET", "/api/db-backups/export", NO_BODY, "The state as a database file."),
    session("POST", "/api/db-backups/import", FILE_100M, "Replace the state by a database file."),
    session("GET", "/api/db-backups/exportAll", NO_BODY, "State, usage and files as a compressed archive."),
    session("POST", "/api/db-backups/uploads", JSON_64K, "Start the upload of an export."),
    session("GET", "/api/db-backups/uploads/{id}", NO_BODY, "Get the progress of an upload."),
    session("PUT", "/api/db-backups/uploads/{id}", FILE_100M, "Add the next part to an upload."),
    session("DELETE", "/api/db-backups/uploads/{id}", NO_BODY, "Delete an upload."),
    session("POST", "/api/db-backups/uploads/{id}/restore", JSON_64K, "Restore an uploaded export."),
    session("GET", "/api/settings/export-json", NO_BODY, "The settings as a document."),
    session("POST", "/api/settings/import-json", JSON_1M, "Replace the settings by such a document."),
];
