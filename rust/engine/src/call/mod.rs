//! One call, from its body to its record: admit, choose, attempt, relay, settle (docs/explanation/planes.md).
//!
//! Read [`context`] first: the [`context::Call`] that goes through all phases. Then the phases: [`admit`] (the call begins, or
//! follows another by `idempotency` on a recording of `coalesce`; [`ticket`] names what is to be done once), [`choose`] (model, key, room), [`attempt`] (the targets one
//! after the other; [`failover`] says which failures go on, [`deadline`] how long each may take, [`rounds`] whether all are tried again, [`hedge`] lets two of them race), [`relay`] (bytes to the caller, behind a [`head`]) and
//! [`settle`] (what is learnt of who served, answers, refusals, the record).
//!
//! The kinds of call ([`kind`]): [`conversation`] (taken in by [`read`], with an earlier response before it where it goes on from one, shaped by its combo in [`combo_body`], made shorter by [`compression`], held to the model's window by [`window`], said in the provider's dialect by [`translation`], answered whole by [`plain`] or as a
//! [`conversation_stream`]; [`stages`] are calls that come first, [`handover`] is the note of a session that moves, [`reasoning`] is what was thought before tools, [`progress`] are events
//! between those of the answer; [`stream`] relays every stream, [`stream_error`] is how a failure is said in it, [`stream_judge`] holds one to the rules of its combo) and [`passthrough`] (only the model changes; [`passthrough_stream`] are its streams,
//! [`endpoints`] is the table of such calls, [`counting`] what they are paid for). [`ollama`] is a conversation in Ollama's words, told at both of its ends. Beside them [`count`] (a request's tokens),
//! [`searches`] and [`videos`] (work of control that is paid for; [`video_form`] is a form that asks for one), [`shadow`] (calls for comparison alone) and [`simulate`] (a decision without a call). [`guardrails`] judge what is said both ways, [`chaos`] gives faults on purpose, [`usage_command`] answers a key that asks what it has left.

pub mod admit;
pub mod attempt;
pub mod chaos;
pub mod choose;
pub mod coalesce;
pub mod combo_body;
pub mod compression;
pub mod context;
pub mod conversation;
pub mod conversation_stream;
pub mod count;
pub mod counting;
pub mod deadline;
pub mod endpoints;
pub mod failover;
pub mod guardrails;
pub mod handover;
pub mod head;
pub mod hedge;
pub mod idempotency;
pub mod kind;
pub mod ollama;
pub mod passthrough;
pub mod passthrough_stream;
pub mod plain;
pub mod progress;
pub mod read;
pub mod reasoning;
pub mod relay;
pub mod rounds;
pub mod searches;
pub mod settle;
pub mod shadow;
pub mod simulate;
pub mod stages;
pub mod stream;
pub mod stream_error;
pub mod stream_judge;
pub mod ticket;
pub mod translation;
pub mod usage_command;
pub mod video_form;
pub mod videos;
pub mod window;
