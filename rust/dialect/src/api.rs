//! Chooses the API for a request to a provider of OpenAI's dialect: chat completions or responses.
//!
//! Some of OpenAI's models have only the responses API. Others accept tools on chat completions only without reasoning.

use fairlead_core::{json, ApiType, Dialect, ModelFacts};

use crate::accepted::can_switch_off;
use crate::model::Effort;
use crate::openai::request::ChatRequest;
use crate::translate::read_request;

/// The API that a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiNeed {
    /// Chat completions.
    Chat,
    /// The responses API, so that the model reasons with tools. If it cannot express the request, chat completions
    /// accept the request without reasoning.
    Preferred,
    /// Only the responses API.
    Responses,
}

impl ApiNeed {
    /// Chooses the API for a request. Requests without tools are not parsed.
    pub fn of(caller: Dialect, body: &[u8], read: &ChatRequest, facts: &ModelFacts) -> Self {
        if read.is_completion {
            return Self::Chat;
        }
        match facts.api_type {
            Some(ApiType::Responses) => return Self::Responses,
            Some(ApiType::Chat) => return Self::Chat,
            None if facts.tools_need_thinking_off != Some(true) => return Self::Chat,
            None => {}
        }
        if !json::may_have(body, b"\"tools\"") {
            return Self::Chat;
        }
        let Ok(request) = read_request(caller, body, read.stream) else { return Self::Chat };
        let is_responses = caller == Dialect::OpenaiResponses;
        let has_tools = !request.tools.is_empty() || is_responses && !request.hosted_tools.is_empty();
        if !has_tools {
            return Self::Chat;
        }
        let is_asked = request.reasoning.is_some_and(|effort| effort != Effort::Off);
        if !can_switch_off(facts) {
            Self::Responses
        } else if is_responses || is_asked {
            Self::Preferred
        } else {
            Self::Chat
        }
    }
}
