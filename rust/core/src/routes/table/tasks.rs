//! Reverse tasks: their tools, on one endpoint and individually.

use crate::routes::builders::{account, delegated, public, NO_BODY, RECORD};
use crate::routes::{Answer, Route};

pub(super) static ROUTES: &[Route] = &[
    delegated("GET", "/mcp/tasks", NO_BODY, "What the tool endpoint for reverse tasks can do."),
    delegated("POST", "/mcp/tasks", RECORD, "The tool endpoint for reverse tasks: `{tool, input}` or JSON-RPC."),
    delegated("DELETE", "/mcp/tasks", NO_BODY, "Refused: the tool endpoint has no sessions to end."),
    delegated("GET", "/mcp/tasks/", NO_BODY, "As `/mcp/tasks`."),
    delegated("POST", "/mcp/tasks/", RECORD, "As `/mcp/tasks`."),
    public(
        "GET",
        "/api/tasks/envelope.schema.json",
        Answer::Control,
        NO_BODY,
        "The JSON Schema of what the tools of reverse tasks answer.",
    ),
    account("POST", "/api/tasks/manage_reverse_task", RECORD, "Make, read, change and tell of reverse tasks."),
    account("POST", "/api/tasks/orchestrate_reverse_task", RECORD, "Take the steps of a reverse task."),
    account("POST", "/api/tasks/get_rebuild_health_report", RECORD, "How the rebuild of a reverse task stands."),
    account("POST", "/api/tasks/diff_env_requirements", RECORD, "What an environment lacks, and what to patch."),
];
