//! The console. The control plane resolves its pages, so a new page needs no new route.

use crate::routes::builders::{page, JSON_1M, NO_BODY};
use crate::routes::Route;

pub(super) static ROUTES: &[Route] = &[
    page("GET", "/dashboard", NO_BODY, "The console's first page."),
    page("GET", "/dashboard/{*id}", NO_BODY, "A page of the console."),
    page("POST", "/dashboard/{*id}", JSON_1M, "Submit a form of the console's pages."),
];
