//! Routes of the providers' APIs that the gateway does not serve, and their replacements. The table in
//! docs/reference/routes-not-served.md has the same content.

use super::other_paths;

/// The prefix of the paths, and the message to the caller.
const UNSERVED: &[(&str, &str)] = &[
    (
        "/v1/vector_stores",
        "Vector stores are not served: make embeddings at POST /v1/embeddings and store them yourself, or send files with the request.",
    ),
    (
        "/v1/assistants",
        "Assistants are not served: use POST /v1/responses, with /v1/conversations for what is stored between requests.",
    ),
    (
        "/v1/threads",
        "Threads of assistants are not served: use /v1/conversations and POST /v1/responses.",
    ),
    ("/v1/fine_tuning", "Fine-tuning is not served: call the provider itself, then the model through the gateway."),
    ("/v1/evals", "Evals are not served: run requests as a batch at POST /v1/batches and judge the output yourself."),
    ("/v1/containers", "Containers are not served: declare a function tool and run its code yourself."),
    ("/v1/chatkit", "ChatKit is not served: use POST /v1/responses."),
    ("/v1/images/variations", "Variations of images are not served: use POST /v1/images/edits."),
    ("/v1/organization", "Organisations are not served: keys and their usage are at /api/keys and /api/usage."),
    ("/v1/organizations", "Organisations are not served: keys and their usage are at /api/keys and /api/usage."),
    ("/v1/skills", "Skills of a provider are not served: send their text with the request."),
    ("/v1/agents", "Agents that a provider runs are not served: call models at POST /v1/messages."),
    ("/v1/sessions", "Sessions that a provider stores are not served: send the whole conversation to POST /v1/messages."),
    ("/v1/environments", "Environments of a provider are not served: run tools yourself."),
    ("/v1/complete", "Anthropic's text completions are not served: use POST /v1/messages or POST /v1/completions."),
    ("/v1beta/corpora", "Corpora are not served: make embeddings with embedContent and store them yourself."),
    ("/v1beta/fileSearchStores", "File search stores are not served: make embeddings with embedContent and store them yourself."),
    ("/v1beta/tunedModels", "Tuned models are not served: call the provider itself."),
    ("/v1beta/generatedFiles", "Generated files are not listed: a video is downloaded at the address in its operation."),
    ("/ollama/api/pull", "Models are not loaded here: an operator adds a provider (POST /api/providers), whose models GET /ollama/api/tags lists."),
    ("/ollama/api/push", "Models are not stored here: GET /ollama/api/tags lists the models of the providers."),
    ("/ollama/api/create", "Models are not made here: an operator gives a model another name as a combo or an alias."),
    ("/ollama/api/copy", "Models are not copied here: an operator gives a model another name as a combo or an alias."),
    ("/ollama/api/delete", "Models are not deleted here: GET /ollama/api/tags lists the models of the providers."),
    ("/ollama/api/blobs", "Models are not stored here: GET /ollama/api/tags lists the models of the providers."),
    ("/ollama/api/ps", "No model is loaded into memory here: GET /ollama/api/tags lists the models that can be called."),
    (
        "/v2/agent",
        "Firecrawl's agent is not served: POST /api/agent runs a model in a browser until it reaches a goal.",
    ),
    (
        "/v2/monitor",
        "Firecrawl's monitors are not served: scrape the page again with the format changeTracking at POST /v2/scrape.",
    ),
    (
        "/v2/search/research",
        "Firecrawl's research is not served: use POST /v2/search, and POST /v2/scrape for the pages that it finds.",
    ),
    ("/v2/search/developer", "Firecrawl's developer search is not served: use POST /v2/search."),
    ("/v2/search/gov", "Firecrawl's government search is not served: use POST /v2/search."),
    ("/v2/browser", "Firecrawl's browser is not served: POST /api/browser/sessions opens a browser session."),
    (
        "/v2/scrape",
        "Interaction with a scraped page is not served: POST /api/browser/sessions opens a browser session.",
    ),
    (
        "/v2/team",
        "Credits are not counted here: GET /api/usage shows the key's calls of today and how many are left.",
    ),
    (
        "/v2/concurrency-check",
        "Concurrency is not reported here: GET /api/usage shows the key's calls of today and how many are left.",
    ),
];

/// The replacement for a path that no route has.
pub fn unserved(path: &str) -> Option<&'static str> {
    let find = |path: &str| {
        let is_at =
            |start: &str| path.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ':']));
        UNSERVED.iter().find(|(start, _)| is_at(start)).map(|(_, sentence)| *sentence)
    };
    find(path).or_else(|| other_paths::rewritten(path).find_map(|own| find(&own)))
}
