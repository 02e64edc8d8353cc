//! Drops or rejects request members that the destination does not accept, and lists the dropped ones for the caller.
//!
//! A hint affects sampling, caching or billing, and is dropped. Any other member changes the answer, so the request is
//! rejected unless the caller chose to drop such members.

use fairlead_core::{Dialect, Error};

use crate::model::{is_neutral, unsupported, Member, Request};

/// The dropped members.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    drops: bool,
    names: Vec<String>,
}

impl LeftOut {
    /// `drops`: members that change the answer are dropped as well.
    pub(crate) fn new(drops: bool) -> Self {
        Self { drops, names: Vec::new() }
    }

    /// Drops a hint.
    pub(crate) fn hint(&mut self, name: &str) {
        if !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
    }

    /// Drops hints, given with their values. A hint with a neutral value is not listed.
    pub(crate) fn hints<'n>(&mut self, members: impl IntoIterator<Item = (&'n str, &'n str)>) {
        for (name, value) in members {
            if !is_neutral(value) {
                self.hint(name);
            }
        }
    }

    /// Drops a member that changes the answer, or rejects the request.
    pub(crate) fn refuse(&mut self, name: &str) -> Result<(), Error> {
        if !self.drops {
            return Err(unsupported(name));
        }
        self.hint(name);
        Ok(())
    }

    /// Handles members that the dialect cannot express.
    pub(crate) fn members(&mut self, request: &Request<'_>, members: &[(Member, bool)]) -> Result<(), Error> {
        members.iter().filter(|(_, is_set)| *is_set).try_for_each(|(member, _)| self.member(request, *member))
    }

    /// Handles one member that the destination does not accept.
    pub(crate) fn member(&mut self, request: &Request<'_>, member: Member) -> Result<(), Error> {
        let name = request.name_of(member);
        if !member.is_hint() {
            return self.refuse(name);
        }
        self.hint(name);
        Ok(())
    }

    /// Handles the format of the answer, where the destination does not accept it.
    pub(crate) fn format(&mut self, request: &Request<'_>) -> Result<(), Error> {
        self.refuse(match request.form {
            Dialect::Openai => "response_format",
            Dialect::OpenaiResponses => "text.format",
            Dialect::Anthropic => "output_config.format",
            Dialect::Gemini => "generationConfig.responseSchema",
        })
    }

    /// Handles members that exist only in the caller's dialect. Those in `hints` are dropped.
    pub(crate) fn extras(&mut self, request: &Request<'_>, hints: &[&str]) -> Result<(), Error> {
        for (name, value) in &request.extras {
            if hints.contains(&&**name) {
                self.hints([(&**name, *value)]);
            } else {
                self.refuse(name)?;
            }
        }
        Ok(())
    }

    pub(crate) fn into_names(self) -> Vec<String> {
        self.names
    }
}
