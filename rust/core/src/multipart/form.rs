//! A complete form, and the reasons why a body is not one.

/// One part. Its content is at `start..end` in the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub name: String,
    /// Without any folder; `None` for a field.
    pub file_name: Option<String>,
    pub content_type: Option<String>,
    pub start: u64,
    pub end: u64,
    /// The text of a field; `None` for a file.
    pub value: Option<String>,
}

/// A complete form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Form {
    pub parts: Vec<Part>,
}

impl Form {
    /// The value of the field with this name.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.parts.iter().find(|part| part.name == name)?.value.as_deref()
    }

    /// The part with this name, a field or a file.
    pub fn part(&self, name: &str) -> Option<&Part> {
        self.parts.iter().find(|part| part.name == name)
    }

    pub fn files(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(|part| part.file_name.is_some())
    }
}

/// Why a body is not a form, as the end of a sentence that begins with "The form".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("The form {0}.")]
pub struct FormFault(pub &'static str);
