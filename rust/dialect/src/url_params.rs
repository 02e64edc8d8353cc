//! The part of a request that its URL holds.

/// Request data from the URL, for dialects whose body lacks it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UrlParams<'a> {
    pub model: &'a str,
    pub stream: bool,
    /// The caller reads the stream as a JSON array.
    pub is_list: bool,
}
