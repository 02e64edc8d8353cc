//! The audit log of management.

use crate::routes::builders::{management, NO_BODY};
use crate::routes::Route;

pub(super) static ROUTES: &[Route] =
    &[management("GET", "/api/audit", NO_BODY, "Changes through the management API, newest first.")];
