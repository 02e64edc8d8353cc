//! Agents: their stored configuration, their routes, and their tasks as seen by an operator.

use crate::routes::builders::{delegated, management, NO_BODY, RECORD};
use crate::routes::Route;

pub(super) static ROUTES: &[Route] = &[
    management("GET", "/api/agent-skills", NO_BODY, "List agent skills."),
    management("POST", "/api/agent-skills", RECORD, "Create an agent skill; it answers as an agent at once."),
    management("POST", "/api/agent-skills/generate", RECORD, "Let a model write an agent skill from a description."),
    management("GET", "/api/agent-skills/{id}", NO_BODY, "One agent skill."),
    management("PUT", "/api/agent-skills/{id}", RECORD, "Change an agent skill."),
    management("DELETE", "/api/agent-skills/{id}", NO_BODY, "Delete an agent skill with its tasks."),
    management("GET", "/api/agent-skills/{id}/raw", NO_BODY, "The prompt and metadata of an agent skill."),
    management("GET", "/api/v1/agents/tasks", NO_BODY, "List the tasks of agents, newest first."),
    management("POST", "/api/v1/agents/tasks", RECORD, "Give an agent a task."),
    management("GET", "/api/v1/agents/tasks/{id}", NO_BODY, "One task of an agent, with what happened in it."),
    management("POST", "/api/v1/agents/tasks/{id}", RECORD, "Cancel a task, or say more to its agent."),
    management("DELETE", "/api/v1/agents/tasks/{id}", NO_BODY, "Delete a task that has ended."),
    delegated("POST", "/agents/{slug}", RECORD, "An agent: one JSON-RPC message (A2A), for agent access tokens."),
    delegated("GET", "/agents/{slug}/.well-known/agent-card.json", NO_BODY, "What an agent says of itself."),
];
