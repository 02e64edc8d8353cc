//! The form of a call in the caller's dialect, and the tools that have another one at the provider.

/// The form of a call in the caller's dialect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) enum CallForm {
    #[default]
    Function,
    /// A tool that takes one text.
    Custom,
    LocalShell,
    Shell,
    ApplyPatch,
    ToolSearch,
}

impl CallForm {
    /// The name of a tool that the caller runs. For other tools, the caller chooses the name.
    pub(crate) fn tool_name(self) -> &'static str {
        match self {
            Self::Function | Self::Custom => "",
            Self::LocalShell => "local_shell",
            Self::Shell => "shell",
            Self::ApplyPatch => "apply_patch",
            Self::ToolSearch => "tool_search",
        }
    }
}

/// A tool that was sent under another name or in another form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallerTool {
    /// The function's name at the provider.
    pub(crate) sent: String,
    /// The caller's name.
    pub(crate) own: String,
    pub(crate) namespace: Option<String>,
    pub(crate) form: CallForm,
}

impl CallerTool {
    /// Returns a function that was only renamed.
    pub(crate) fn renamed(sent: String, own: String) -> Self {
        Self { sent, own, namespace: None, form: CallForm::Function }
    }

    /// Returns whether a call has the same form in the caller's dialect.
    pub(crate) fn is_renamed_only(&self) -> bool {
        self.namespace.is_none() && self.form == CallForm::Function
    }
}
