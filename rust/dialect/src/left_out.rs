//! Members of a request that its destination does not accept: whether they are left out or refused, and the list for the caller.
//!
//! A hint changes how an answer is sampled, cached or billed, and is left out. Any other member changes what the caller gets, so the
//! request is refused, unless the caller chose to drop such members too.

use fairlead_core::Error;

use crate::model::{is_neutral, unsupported, Member, Request};

/// The members that the destination does not accept.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    drops: bool,
    names: Vec<String>,
}

impl LeftOut {
    /// `drops`: members with consequences are left out too.
    pub(crate) fn new(drops: bool) -> Self {
        Self { drops, names: Vec::new() }
    }

    /// Leaves out a hint.
    pub(crate) fn hint(&mut self, name: &str) {
        if !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
    }

    /// Leaves out hints with their values. One that changes nothing is not named.
    pub(crate) fn hints<'n>(&mut self, members: impl IntoIterator<Item = (&'n str, &'n str)>) {
        for (name, value) in members {
            if !is_neutral(value) {
                self.hint(name);
            }
        }
    }

    /// Leaves out a member with consequences, or refuses the request.
    pub(crate) fn refuse(&mut self, name: &str) -> Result<(), Error> {
        if !self.drops {
            return Err(unsupported(name));
        }
        self.hint(name);
        Ok(())
    }

    /// Handles members that the dialect has no word for.
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

    /// Handles members that are unknown outside the caller's dialect. Those in `hints` are left out.
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
