//! The routes of Firecrawl's API, version 2, over the scraping API.

use crate::routes::builders::{scraping, JSON_1M, NO_BODY, UPLOAD_26M};
use crate::routes::{Answer, Route};

pub(super) static ROUTES: &[Route] = &[
    scraping("POST", "/v2/scrape", JSON_1M, "Scrape a page (Firecrawl)."),
    scraping("POST", "/v2/crawl", JSON_1M, "Crawl a site in the background (Firecrawl)."),
    scraping("GET", "/v2/crawl/active", NO_BODY, "List crawls that have not ended (Firecrawl)."),
    scraping("GET", "/v2/crawl/{id}", NO_BODY, "A crawl, its progress and its pages (Firecrawl)."),
    scraping("GET", "/v2/crawl/{id}/errors", NO_BODY, "The pages of a crawl that failed (Firecrawl)."),
    scraping("DELETE", "/v2/crawl/{id}", NO_BODY, "Cancel a crawl (Firecrawl)."),
    scraping("POST", "/v2/batch/scrape", JSON_1M, "Scrape a list of pages in the background (Firecrawl)."),
    scraping("GET", "/v2/batch/scrape/{id}", NO_BODY, "A batch, its progress and its pages (Firecrawl)."),
    scraping("GET", "/v2/batch/scrape/{id}/errors", NO_BODY, "The pages of a batch that failed (Firecrawl)."),
    scraping("DELETE", "/v2/batch/scrape/{id}", NO_BODY, "Cancel a batch (Firecrawl)."),
    scraping("POST", "/v2/map", JSON_1M, "The addresses of a site (Firecrawl)."),
    scraping("POST", "/v2/search", JSON_1M, "Search the web, and scrape what is found (Firecrawl)."),
    scraping("POST", "/v2/extract", JSON_1M, "Extract data from pages in the background (Firecrawl)."),
    scraping("GET", "/v2/extract/{id}", NO_BODY, "An extraction, or how far it is (Firecrawl)."),
    Route {
        answer: Answer::Upload,
        ..scraping("POST", "/v2/parse", UPLOAD_26M, "A document as markdown (Firecrawl).")
    },
];
