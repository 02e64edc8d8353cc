//! Agents: their stored configuration, their routes, and their tasks as seen by an operator.

use crate::routes::builders::{delegated, management, JSON_1M, NO_BODY};
use crate::routes::Route;

pub(super) static ROUTES: &[Route] = &[
    management("GET", "/api/agent-skills", NO_BODY, "List agent skills."),
    management("POST", "/api/agent-skills", JSON_1M, "Create an agent skill; it answers as an agent at once."),
    management("POST", "/api/agent-skills/generate", JSON_1M, "Let a model write an agent skill from a description."),
    management("GET", "/api/agent-skills/{id}", NO_BODY, "One agent skill."),
    management("PUT", "/api/agent-skills/{id}", JSON_1M, "Change an agent skill."),
    management("DELETE", "/api/agent-skills/{id}", NO_BODY, "Delete an agent skill with its tasks."),
    management("GET", "/api/agent-skills/{id}/raw", NO_BODY, "The prompt and metadata of an agent skill."),
    management("GET", "/api/v1/agents/tasks", NO_BODY, "List the tasks of agents, newest first."),
    management("POST", "/api/v1/agents/tasks", JSON_1M, "Give an agent a task."),
    management("GET", "/api/v1/agents/tasks/{id}", NO_BODY, "One task of an agent, with what happened in it."),
    management("POST", "/api/v1/agents/tasks/{id}", JSON_1M, "Cancel a task, or send its agent another message."),
    management("DELETE", "/api/v1/agents/tasks/{id}", NO_BODY, "Delete a task that has ended."),
    delegated("POST", "/agents/{slug}", JSON_1M, "An agent: one JSON-RPC message (A2A), for agent access tokens."),
    delegated("GET", "/agents/{slug}/.well-known/agent-card.json", NO_BODY, "Get an agent's card."),
];
