//! Checks the ids in a request that name objects in the provider's account.
//!
//! The gateway calls providers with the operator's credential. A caller may use its own files, which the gateway stores
//! and inserts into the body, and the objects that `allowedProviderObjects` of its key lists. People and tokens that
//! manage the gateway may use every object.

use crate::gate::request::Admission;
use fairlead_core::{Dialect, Error, ErrorKind, Principal, TokenScope};
use fairlead_dialect::account_objects::{self, ObjectKind, Reference, Searched};

/// The stage of a body. A later stage has more of the conversation in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// As sent by the caller. Its files and items are inserted later.
    Sent,
    /// With items that the gateway stored. Their containers are those of the caller's own calls.
    Recalled,
    /// As it goes to the provider, without stored items.
    Complete,
}

/// Searches a body of this call.
pub fn searched<'b>(admission: &Admission, body: &'b [u8]) -> Searched<'b> {
    Searched { body, dialect: admission.dialect, is_session: false }
}

/// Refuses a body that goes to the provider without earlier turns or files.
pub fn admit(admission: &Admission, body: &[u8]) -> Result<(), Error> {
    let searched = searched(admission, body);
    if account_objects::may_have(searched) {
        return admit_at(admission, searched, Stage::Complete);
    }
    Ok(())
}

/// Refuses an event of a realtime conversation.
pub fn admit_event(admission: &Admission, event: &[u8]) -> Result<(), Error> {
    let searched = Searched { body: event, dialect: Dialect::OpenaiResponses, is_session: true };
    if account_objects::may_have(searched) {
        return admit_at(admission, searched, Stage::Complete);
    }
    Ok(())
}

/// Refuses a body of this stage if it names an object that the caller may not use.
pub fn admit_at(admission: &Admission, searched: Searched<'_>, stage: Stage) -> Result<(), Error> {
    if is_operator(&admission.principal) {
        return Ok(());
    }
    let key = admission.principal.key();
    let is_judged = |kind| match (kind, stage) {
        (ObjectKind::MaybeFile, _) => false,
        (_, Stage::Complete) => true,
        (ObjectKind::File | ObjectKind::Item, _) => stage == Stage::Recalled,
        _ => stage == Stage::Sent,
    };
    let is_refused = |kind, id: &str| is_judged(kind) && !key.is_some_and(|key| key.admits_object(id));
    match account_objects::first(searched, is_refused) {
        Some(reference) => Err(refusal(reference, key.is_some())),
        None => Ok(()),
    }
}

/// Whether the caller manages the gateway, and so its accounts at providers.
fn is_operator(principal: &Principal) -> bool {
    match principal {
        Principal::Local | Principal::Session { manages: true, .. } => true,
        Principal::Token(token) => token.scope >= TokenScope::Write,
        Principal::Session { .. } | Principal::Key(_) | Principal::Anonymous => false,
    }
}

fn refusal(reference: Reference, has_key: bool) -> Error {
    let Reference { path, id, kind } = reference;
    let fix = match kind {
        ObjectKind::File | ObjectKind::MaybeFile => {
            "Store the file with `POST /v1/files` and this key, and send its id in a part for files or images"
        }
        ObjectKind::Item => "Send the item itself, or `previous_response_id` of a response that this caller stored",
        ObjectKind::Other => "Leave it out",
    };
    let operator = if has_key {
        "or ask an operator to add the id to `allowedProviderObjects` of the key"
    } else {
        "or call with an API key whose `allowedProviderObjects` has the id"
    };
    let message = format!(
        "`{path}` names `{id}`, which is not stored for this caller. Other objects in the account at the provider need a permission. {fix}, {operator}."
    );
    Error::client(ErrorKind::Forbidden, message).about(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_where_why_and_what_to_do() {
        let reference =
            |kind| Reference { path: "tools[0].vector_store_ids[0]".to_owned(), id: "vs_1".to_owned(), kind };
        let error = refusal(reference(ObjectKind::Other), true);
        assert_eq!((error.kind, error.param.as_deref()), (ErrorKind::Forbidden, Some("tools[0].vector_store_ids[0]")));
        for word in ["`tools[0].vector_store_ids[0]`", "`vs_1`", "`allowedProviderObjects` of the key"] {
            assert!(error.message.contains(word), "{}", error.message);
        }
        assert!(refusal(reference(ObjectKind::File), true).message.contains("POST /v1/files"));
        assert!(refusal(reference(ObjectKind::Item), false).message.contains("`previous_response_id`"));
        assert!(refusal(reference(ObjectKind::Other), false).message.contains("call with an API key"));
    }
}
