//! The part of a request that its address says.

/// What the address of a request says, for a form whose body does not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place<'a> {
    pub model: &'a str,
    pub stream: bool,
    /// The stream is read as one JSON list.
    pub is_list: bool,
}
