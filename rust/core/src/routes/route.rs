//! One route: who answers it, who may call it, what body it takes.

use super::relayed::Relayed;
use crate::dialect::Dialect;
use crate::principal::Credentials;
use crate::tier::Tier;

/// The part of the gateway that answers a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The relay is alive.
    Health,
    /// The relay has a snapshot, and what is known of control.
    Ready,
    /// The model list.
    Models,
    /// One model.
    Model,
    /// A chat completion, relayed to a provider.
    Chat,
    /// A conversation in the dialect of OpenAI's responses.
    Responses,
    /// A conversation in Gemini's dialect, whose address says what its body does not.
    Generate,
    StreamGenerate,
    /// The model list, and one model, in Gemini's words.
    GeminiModels,
    GeminiModel,
    /// The tokens of a messages request, counted by its provider or estimated.
    CountTokens,
    /// A text completion, relayed as a chat completion is.
    Completions,
    /// A call that is passed on with only its model changed.
    Relayed(Relayed),
    /// A call of Ollama's clients.
    Ollama(Ollama),
    /// Frames over a WebSocket, or what they are when asked without one.
    Socket,
    /// A conversation over a WebSocket, passed through to a provider.
    Realtime,
    /// The control plane.
    Control,
    /// The control plane, which gets the one file of a form.
    Upload,
    /// The combos that a caller may call.
    Combos,
    /// The models that a channel of `auto` chooses from.
    Candidates,
    /// A search, which control makes and tells the cost of.
    Search,
    /// A video, which control has made by the connections that the relay has chosen.
    Video,
}

impl Answer {
    pub fn is_control(self) -> bool {
        matches!(self, Self::Control | Self::Upload | Self::Search | Self::Video)
    }

    /// Whether each request is settled: it calls a model, or would have.
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

/// What Ollama's clients call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ollama {
    Chat,
    /// One prompt, without a conversation.
    Generate,
    /// Embeddings of one text or many.
    Embed,
    /// The older call for the embedding of one prompt.
    Embeddings,
    /// The model list.
    Tags,
    /// One model.
    Show,
    Version,
}

/// Which error shape the caller reads.
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

/// What body a route takes. Limits are bytes of the whole body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    None,
    Json {
        limit_bytes: usize,
    },
    /// A form of one of the gateway's own pages, or JSON.
    Form {
        limit_bytes: usize,
    },
    /// A file of bytes (`application/octet-stream`), or JSON.
    File {
        limit_bytes: usize,
    },
    /// A form with files, which may be too large for memory.
    Upload {
        limit_bytes: usize,
    },
    /// A form whose parts fit in memory, or JSON.
    Parts {
        limit_bytes: usize,
    },
    /// Any type: control reads it, and answers what is wrong with it in words of its protocol.
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

    /// A form beside the JSON, within the same limit.
    #[must_use]
    pub const fn or_form(self) -> Self {
        match self {
            Self::Json { limit_bytes } => Self::Form { limit_bytes },
            other => other,
        }
    }

    /// Any type in place of JSON, within the same limit.
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
    /// From this machine; from elsewhere the route needs a management credential.
    ThisMachine,
}

/// How many bytes are read of a body that the route does not take.
const FORGOTTEN_BODY_BYTES: usize = 64 * 1024;

/// `{}`, `null`, and blanks around them.
const EMPTY_BODY_BYTES: usize = 64;

/// One route: who may call it, who answers, and the body that it takes.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    pub method: &'static str,
    /// Segments in braces match one non-empty segment; `{*name}` as the last one matches one or more, and what stands after its brace ends
    /// the path, at most one more segment in braces included.
    pub path: &'static str,
    pub tier: Tier,
    pub answer: Answer,
    /// The category that a key's `allowedEndpoints` speaks of.
    pub endpoint: &'static str,
    pub reach: Reach,
    pub body: Body,
    pub surface: Surface,
    pub summary: &'static str,
}

impl Route {
    /// The body may be a file of bytes (`application/octet-stream`); else it is JSON.
    #[must_use]
    pub fn takes_file(&self) -> bool {
        matches!(self.body, Body::File { .. })
    }

    /// The body may be a form of one of the gateway's own pages; else it is JSON.
    #[must_use]
    pub fn takes_form(&self) -> bool {
        matches!(self.body, Body::Form { .. })
    }

    /// The body may be a form with parts (`multipart/form-data`); else it is JSON.
    #[must_use]
    pub fn takes_parts(&self) -> bool {
        matches!(self.body, Body::Parts { .. })
    }

    /// Whether the body is a form with files, which may be too large for memory.
    #[must_use]
    pub fn takes_upload(&self) -> bool {
        matches!(self.body, Body::Upload { .. })
    }

    /// The dialect that callers of the route speak.
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

    /// A body is read and dropped, whatever it says: many clients send something along with a DELETE.
    #[must_use]
    pub fn forgets_body(&self) -> bool {
        self.method == "DELETE" && self.body == Body::None
    }

    /// A body is read and must say nothing: many clients send `{}` where nothing is asked for.
    #[must_use]
    pub fn takes_empty_body(&self) -> bool {
        self.method != "DELETE" && self.body == Body::None
    }

    /// How large a body may be; 0 where none is taken.
    #[must_use]
    pub fn body_limit_bytes(&self) -> usize {
        self.body.limit_bytes()
    }

    /// How many bytes of a body are read, those of a dropped one included.
    #[must_use]
    pub fn accepted_bytes(&self) -> usize {
        match self.body {
            Body::None if self.forgets_body() => FORGOTTEN_BODY_BYTES,
            Body::None => EMPTY_BODY_BYTES,
            body => body.limit_bytes(),
        }
    }

    /// The tier for whoever calls like this.
    #[must_use]
    pub fn tier_for(&self, shown: &Credentials<'_>) -> Tier {
        // A proxy on this machine that adds no header of its own still passes on by which name it was called.
        let is_here = shown.is_local_peer && shown.is_loopback_host && !shown.is_of_foreign_page;
        if self.reach == Reach::ThisMachine && !is_here {
            Tier::Management
        } else {
            self.tier
        }
    }
}
