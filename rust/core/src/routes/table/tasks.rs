//! Reverse tasks: their tools, on one endpoint and individually.

use crate::routes::builders::{account, delegated, public, JSON_1M, NO_BODY};
use crate::routes::{Answer, Route};

pub(super) static ROUTES: &[Route] = &[
    delegated("GET", "/mcp/tasks", NO_BODY, "Describe the tool endpoint for reverse tasks."),
    delegated("POST", "/mcp/tasks", JSON_1M, "The tool endpoint for reverse tasks: `{tool, input}` or JSON-RPC."),
    delegated("DELETE", "/mcp/tasks", NO_BODY, "Refused: the tool endpoint has no sessions to end."),
    delegated("GET", "/mcp/tasks/", NO_BODY, "As `/mcp/tasks`."),
    delegated("POST", "/mcp/tasks/", JSON_1M, "As `/mcp/tasks`."),
    public(
        "GET",
        "/api/tasks/envelope.schema.json",
        Answer::Control,
        NO_BODY,
        "The JSON Schema of the answers of reverse tasks' tools.",
    ),
    account("POST", "/api/tasks/manage_reverse_task", JSON_1M, "Create, read, change and report on reverse tasks."),
    account("POST", "/api/tasks/orchestrate_reverse_task", JSON_1M, "Run the steps of a reverse task."),
    account("POST", "/api/tasks/get_rebuild_health_report", JSON_1M, "Get the rebuild health of a reverse task."),
    account(
        "POST",
        "/api/tasks/diff_env_requirements",
        JSON_1M,
        "Get what an environment lacks, and the patches for it.",
    ),
];
