//! A form that came whole, and why one is none.

/// One part. `start..end` is where its content lies in the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub name: String,
    /// Without any folders; `None` for a field.
    pub file_name: Option<String>,
    pub content_type: Option<String>,
    pub start: u64,
    pub end: u64,
    /// What a field says; `None` for a file.
    pub value: Option<String>,
}

/// A form that came whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Form {
    pub parts: Vec<Part>,
}

impl Form {
    /// The field of this name.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.parts.iter().find(|part| part.name == name)?.value.as_deref()
    }

    /// The part of this name, field or file.
    pub fn part(&self, name: &str) -> Option<&Part> {
        self.parts.iter().find(|part| part.name == name)
    }

    pub fn files(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(|part| part.file_name.is_some())
    }
}

/// Why a body is no form, as the end of a sentence that begins with "The form".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("The form {0}.")]
pub struct FormFault(pub &'static str);
