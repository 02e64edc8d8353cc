//! One route: what answers it, who may call it, and which body it accepts.

use super::relayed::Relayed;
use crate::dialect::Dialect;
use crate::principal::Credentials;
use crate::tier::Tier;

/// The part of the gateway that answers a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Liveness of the relay.
    Health,
    /// Readiness: whether the relay has a snapshot, and the state of the control plane.
    Ready,
    /// The model list.
    Models,
    /// One model.
    Model,
    /// A chat completion, relayed to a provider.
    Chat,
    /// A conversation in the OpenAI Responses dialect.
    Responses,
    /// A conversation in the Gemini dialect, in which the address names the model.
    Generate,
    StreamGenerate,
    /// The model list, and one model, in the Gemini format.
    GeminiModels,
    GeminiModel,
    /// The token count of a Messages request, from its provider or estimated.
    CountTokens,
    /// A text completion, relayed as a chat completion.
    Completions,
    /// A call that is forwarded with only the model changed.
    Relayed(Relayed),
    /// A call of an Ollama client.
    Ollama(Ollama),
    /// Chat completions over a WebSocket. A request without an upgrade gets a description of the frames.
    Socket,
    /// A realtime conversation over a WebSocket, forwarded to a provider.
    Realtime,
    /// The control plane.
    Control,
    /// The control plane, with the one file of a form.
    Upload,
    /// The combos that a caller may call.
    Combos,
    /// The models that a channel of `auto` chooses from.
    Candidates,
    /// A search, which the control plane runs and reports the cost of.
    Search,
    /// A video, which the control plane requests over the connections that the relay has chosen.
    Video,
}

impl Answer {
    pub fn is_control(self) -> bool {
        matches!(self, Self::Control | Self::Upload | Self::Search | Self::Video)
    }

    /// Whether each request is settled, because it calls a model or would have called one.
    pub fn is_settled(self) -> bool {
        matches!(
            self,
            Self::Chat
                | Self::Responses
                | Self::Generate
                | Self::StreamGenerate
                | Self::CountTokens
                | Self::Completions
                | Self::Relayed(_)
                | Self::Ollama(Ollama::Chat | Ollama::Generate | Ollama::Embed | Ollama::Embeddings)
                | Self::Search
                | Self::Video
        )
    }

    pub fn is_socket(self) -> bool {
        matches!(self, Self::Socket | Self::Realtime)
    }
}

/// The calls of Ollama clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ollama {
    Chat,
    /// A single prompt, without a conversation.
    Generate,
    /// Embeddings of one or several texts.
    Embed,
    /// The older call, for the embedding of one prompt.
    Embeddings,
    /// The model list.
    Tags,
    /// One model.
    Show,
    Version,
}

/// The error format that the caller expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    OpenAi,
    Anthropic,
    Gemini,
    /// `{"error": "..."}`.
    Ollama,
    Management,
    /// `{"success": false, "error": "..."}`.
    Scraping,
    /// `{"error": "...", "error_description": "..."}`.
    OAuth,
    /// `{"allowed": false, "error": {"message": "..."}}`.
    Quota,
}

/// The body that a route accepts. Limits are bytes of the whole body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    None,
    Json {
        limit_bytes: usize,
    },
    /// A form from one of the gateway's own pages, or JSON.
    Form {
        limit_bytes: usize,
    },
    /// A binary file (`application/octet-stream`), or JSON.
    File {
        limit_bytes: usize,
    },
    /// A form with files, which may not fit into memory.
    Upload {
        limit_bytes: usize,
    },
    /// A form whose parts fit into memory, or JSON.
    Parts {
        limit_bytes: usize,
    },
    /// Any type. The control plane reads it and reports errors in the format of its protocol.
    Unread {
        limit_bytes: usize,
    },
}

impl Body {
    #[must_use]
    pub const fn limit_bytes(self) -> usize {
        match self {
            Self::None => 0,
            Self::Json { limit_bytes }
            | Self::Form { limit_bytes }
            | Self::File { limit_bytes }
            | Self::Upload { limit_bytes }
            | Self::Parts { limit_bytes }
            | Self::Unread { limit_bytes } => limit_bytes,
        }
    }

    /// The name of the kind in the table that Python reads.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Json { .. } => "json",
            Self::Form { .. } => "form",
            Self::File { .. } => "file",
            Self::Upload { .. } => "upload",
            Self::Parts { .. } => "parts",
            Self::Unread { .. } => "unread",
        }
    }

    /// Also accepts a form, with the same limit.
    #[must_use]
    pub const fn or_form(self) -> Self {
        match self {
            Self::Json { limit_bytes } => Self::Form { limit_bytes },
            other => other,
        }
    }

    /// Accepts any type instead of JSON, with the same limit.
    #[must_use]
    pub const fn unread(self) -> Self {
        match self {
            Self::Json { limit_bytes } => Self::Unread { limit_bytes },
            other => other,
        }
    }
}

/// From where a route is as public as its tier says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    Anywhere,
    /// From this machine. Callers elsewhere need a management credential.
    ThisMachine,
}

/// The number of bytes that are read of a body that the route ignores.
const FORGOTTEN_BODY_BYTES: usize = 64 * 1024;

/// Enough for `{}` or `null` with white space.
const EMPTY_BODY_BYTES: usize = 64;

/// One route: who may call it, what answers it, and which body it accepts.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    pub method: &'static str,
    /// A segment in braces matches one non-empty segment. `{*name}` matches one or more; only fixed text and at most
    /// one more segment in braces may follow it.
    pub path: &'static str,
    pub tier: Tier,
    pub answer: Answer,
    /// The category of the route in a key's `allowedEndpoints`.
    pub endpoint: &'static str,
    pub reach: Reach,
    pub body: Body,
    pub surface: Surface,
    pub summary: &'static str,
}

impl Route {
    /// Whether the body may be a binary file (`application/octet-stream`) instead of JSON.
    #[must_use]
    pub fn takes_file(&self) -> bool {
        matches!(self.body, Body::File { .. })
    }

    /// Whether the body may be a form from one of the gateway's own pages instead of JSON.
    #[must_use]
    pub fn takes_form(&self) -> bool {
        matches!(self.body, Body::Form { .. })
    }

    /// Whether the body may be a form with parts (`multipart/form-data`) instead of JSON.
    #[must_use]
    pub fn takes_parts(&self) -> bool {
        matches!(self.body, Body::Parts { .. })
    }

    /// Whether the body is a form with files, which may not fit into memory.
    #[must_use]
    pub fn takes_upload(&self) -> bool {
        matches!(self.body, Body::Upload { .. })
    }

    /// The dialect of the route's callers.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        match (self.answer, self.surface) {
            (Answer::Responses, _) | (Answer::CountTokens | Answer::Relayed(Relayed::Compact), Surface::OpenAi) => {
                Dialect::OpenaiResponses
            }
            (_, Surface::Anthropic) => Dialect::Anthropic,
            (_, Surface::Gemini) => Dialect::Gemini,
            _ => Dialect::Openai,
        }
    }

    /// Whether a body is read and ignored. Many clients send one with a DELETE.
    #[must_use]
    pub fn forgets_body(&self) -> bool {
        self.method == "DELETE" && self.body == Body::None
    }

    /// Whether an empty body is accepted. Many clients send `{}` to routes without a body.
    #[must_use]
    pub fn takes_empty_body(&self) -> bool {
        self.method != "DELETE" && self.body == Body::None
    }

    /// The maximum size of a body; 0 if none is accepted.
    #[must_use]
    pub fn body_limit_bytes(&self) -> usize {
        self.body.limit_bytes()
    }

    /// The number of body bytes that are read, including those of an ignored body.
    #[must_use]
    pub fn accepted_bytes(&self) -> usize {
        match self.body {
            Body::None if self.forgets_body() => FORGOTTEN_BODY_BYTES,
            Body::None => EMPTY_BODY_BYTES,
            body => body.limit_bytes(),
        }
    }

    /// The tier that applies to a caller with these credentials.
    #[must_use]
    pub fn tier_for(&self, shown: &Credentials<'_>) -> Tier {
        // A proxy on this machine that adds no header still forwards the `Host` that the client used.
        let is_here = shown.is_local_peer && shown.is_loopback_host && !shown.is_of_foreign_page;
        if self.reach == Reach::ThisMachine && !is_here {
            Tier::Management
        } else {
            self.tier
        }
    }
}
