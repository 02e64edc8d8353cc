//! Which elements a reader sees.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;

use crate::attributes::{attribute_of, Attributes};

/// Which hidden elements are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Everything that a browser shows.
    Shown,
    /// Without what the author hides from screen readers: icons, duplicates, closed menus.
    Spoken,
    /// Everything, for pages that show their text only after a script has run.
    All,
}

static HIDDEN_STYLE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?:[^.0-9]|$)").expect("a constant")
});

/// The panels that visible controls open, such as the answers of a list of questions.
#[derive(Debug, Default)]
pub(crate) struct Panels<'a> {
    ids: HashSet<&'a str>,
}

impl<'a> Panels<'a> {
    /// Stores the panels that an element opens.
    pub(crate) fn add(&mut self, attributes: &'a str) {
        for (name, value) in (Attributes { rest: attributes }) {
            if matches!(name, "aria-controls" | "data-target" | "data-bs-target") {
                self.ids.extend(value.split_ascii_whitespace().map(|id| id.trim_start_matches('#')));
            }
        }
    }

    fn has(&self, attributes: &'a str) -> bool {
        let (mut is_panel, mut is_popup) = (false, false);
        for (name, value) in (Attributes { rest: attributes }) {
            is_panel |= match name {
                "role" => value == "tabpanel",
                "hidden" => value.eq_ignore_ascii_case("until-found"),
                "id" => self.ids.contains(value),
                _ => false,
            };
            is_popup |= name == "role"
                && matches!(value, "dialog" | "alertdialog" | "menu" | "listbox" | "tooltip" | "search" | "navigation");
        }
        is_panel && !is_popup
    }

    /// Whether readers do not see an element.
    pub(crate) fn is_hidden(&self, attributes: &'a str, sight: Sight) -> bool {
        if sight == Sight::All {
            return false;
        }
        let is_hidden = attributes.contains("hidden")
            && (attribute_of(attributes, "hidden").is_some()
                || sight == Sight::Spoken && attribute_of(attributes, "aria-hidden").as_deref() == Some("true"))
            || attributes.contains("style")
                && attribute_of(attributes, "style").is_some_and(|style| HIDDEN_STYLE.is_match(&style));
        is_hidden && !self.has(attributes) && !holds_formula(attributes)
    }
}

/// Whether an element holds the source of a formula that is shown as a picture.
fn holds_formula(attributes: &str) -> bool {
    attributes.contains("mwe-math-mathml")
        || attributes.contains("katex-mathml")
        || attributes.contains("MJX_Assistive")
}

/// Whether an element with these class names repeats a formula whose source is next to it.
pub(crate) fn repeats_formula(names: &str) -> bool {
    names.split_ascii_whitespace().any(|name| {
        matches!(name, "katex-html" | "MathJax_Preview" | "MathJax_SVG" | "MathJax_CHTML" | "mjx-chtml")
            || name.starts_with("mwe-math-fallback")
    })
}
