//! The scraping API.

use crate::routes::doors::{scraping, NO_BODY, RECORD};
use crate::routes::Route;

pub(super) static ROUTES: &[Route] = &[
    scraping("POST", "/api/scrape", RECORD, "Scrape a page."),
    scraping("POST", "/api/scrape/async", RECORD, "Scrape a page in the background."),
    scraping("GET", "/api/scrape/job/{id}", NO_BODY, "A background scrape and its result."),
    scraping("GET", "/api/scrape/openapi.json", NO_BODY, "The scraping API as an OpenAPI document."),
    scraping("POST", "/api/extract-schema", RECORD, "Extract data of a JSON Schema from a page."),
    scraping("POST", "/api/summarize", RECORD, "Summarize a page."),
    scraping("DELETE", "/api/cache", RECORD, "Forget scraped pages: one address, or all of the caller's."),
    scraping("POST", "/api/crawl", RECORD, "Crawl a site in the background."),
    scraping("POST", "/api/crawl/estimate", RECORD, "What a crawl would come to."),
    scraping("GET", "/api/crawl", NO_BODY, "List crawls."),
    scraping("GET", "/api/crawl/active", NO_BODY, "List crawls that have not ended."),
    scraping("GET", "/api/crawl/{id}", NO_BODY, "A crawl, its progress and its pages."),
    scraping("GET", "/api/crawl/{id}/errors", NO_BODY, "The pages of a crawl that failed."),
    scraping("GET", "/api/crawl/{id}/stream", NO_BODY, "A crawl's progress as it happens (SSE)."),
    scraping("DELETE", "/api/crawl/{id}", NO_BODY, "Cancel a crawl."),
    scraping("POST", "/api/batch/scrape", RECORD, "Scrape a list of pages in the background."),
    scraping("GET", "/api/batch/scrape", NO_BODY, "List batches."),
    scraping("GET", "/api/batch/scrape/{id}", NO_BODY, "A batch, its progress and its pages."),
    scraping("GET", "/api/batch/scrape/{id}/errors", NO_BODY, "The pages of a batch that failed."),
    scraping("GET", "/api/batch/scrape/{id}/stream", NO_BODY, "A batch's progress as it happens (SSE)."),
    scraping("DELETE", "/api/batch/scrape/{id}", NO_BODY, "Cancel a batch."),
    scraping("POST", "/api/map", RECORD, "The addresses of a site."),
    scraping("POST", "/api/search", RECORD, "Search the web, and scrape what is found."),
    scraping("GET", "/api/endpoints", NO_BODY, "List saved endpoints."),
    scraping("POST", "/api/endpoints", RECORD, "Save a scrape or an extraction as an endpoint."),
    scraping("GET", "/api/endpoints/{slug}", NO_BODY, "Run a saved endpoint."),
    scraping("DELETE", "/api/endpoints/{slug}", NO_BODY, "Delete a saved endpoint."),
];
