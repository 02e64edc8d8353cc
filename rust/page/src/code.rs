//! The lines and the language of code blocks.

use crate::tag::Tag;
use crate::tree::{Tree, ROOT};

/// The beginnings of class names that end with a language.
const PREFIXES: [&str; 6] = ["language-", "lang-", "highlight-source-", "highlight-text-", "highlight-", "brush:"];

/// Words of class names that look like languages.
const NO_LANGUAGES: &[&str] = &[
    "area",
    "block",
    "body",
    "box",
    "code",
    "container",
    "content",
    "default",
    "example",
    "frame",
    "group",
    "header",
    "highlight",
    "hljs",
    "inner",
    "inline",
    "line",
    "lines",
    "literal",
    "none",
    "notranslate",
    "plain",
    "plaintext",
    "pre",
    "section",
    "snippet",
    "table",
    "text",
    "toolbar",
    "txt",
    "view",
    "wrap",
    "wrapper",
];
/// Languages with names as short as those of human languages. `lang-en` around code says how its comments are written.
const SHORT: &[&str] =
    &["c", "cs", "d", "f", "go", "hs", "js", "kt", "md", "ml", "py", "r", "rb", "rs", "sh", "ts", "tf", "vb"];

/// How far out the language of a code block is named.
const LEVELS: usize = 2;

/// The language that a code block's classes name, or those of the elements around it; or an empty string.
pub(crate) fn language(tree: &Tree<'_>, pre: usize) -> String {
    let inner = tree.below(pre).find(|each| tree.nodes[*each].name == "code");
    let mut around = Vec::new();
    let mut each = pre;
    while around.len() < LEVELS && each != ROOT {
        each = tree.nodes[each].parent;
        match tree.nodes[each].tag {
            Tag::Body | Tag::Main | Tag::Article => break,
            // The table of the line numbers is between.
            Tag::Td | Tag::Tr | Tag::RowGroup | Tag::Table => {}
            _ => around.push(each),
        }
    }
    let own = inner.into_iter().chain([pre]).find_map(|number| language_of(tree, number, true));
    own.or_else(|| around.into_iter().find_map(|number| language_of(tree, number, false))).unwrap_or_default()
}

/// The language that an element names; `is_code` means that all of its class names describe code.
fn language_of(tree: &Tree<'_>, number: usize, is_code: bool) -> Option<String> {
    let names = tree.attribute(number, "class").unwrap_or_default();
    let mut before = "";
    for name in names.split_ascii_whitespace() {
        let is_behind = is_code && matches!(before, "sourceCode" | "code" | "brush:" | "src");
        let own = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).or(is_behind.then_some(name));
        if let Some(found) = own.and_then(known) {
            return Some(found);
        }
        before = name;
    }
    let attribute = ["data-lang", "data-language"].iter().find_map(|name| tree.attribute(number, name))?;
    known(&attribute)
}

/// The language with a name, unless the name says something else.
fn known(name: &str) -> Option<String> {
    let name = name.trim_end_matches(';').to_ascii_lowercase();
    let name = name.strip_suffix("-basic").unwrap_or(&name);
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '#' | '.' | '-');
    let is_language = (1..=20).contains(&name.len())
        && name.chars().all(is_fine)
        && !name.split('-').any(|word| NO_LANGUAGES.contains(&word))
        && (name.len() > 2 || SHORT.contains(&name));
    is_language.then(|| name.to_owned())
}

/// Whether a class name says that a cell is a line of code.
pub(crate) fn is_line_of_code(name: &str) -> bool {
    matches!(name, "blob-code" | "hljs-ln-code" | "code-line" | "line-code")
}

/// Whether a table shows the lines of a file, one in each row.
pub(crate) fn is_code_table(tree: &Tree<'_>, table: usize) -> bool {
    !tree.below(table).any(|each| tree.nodes[each].tag == Tag::Pre)
        && tree.below(table).any(|each| tree.nodes[each].tag == Tag::Td && tree.has_class(each, is_line_of_code))
}

/// Whether an element holds line numbers.
pub(crate) fn is_line_number(tree: &Tree<'_>, number: usize) -> bool {
    tree.has_class(number, |name| {
        matches!(
            name,
            "linenos"
                | "lineno"
                | "linenodiv"
                | "line-number"
                | "line-numbers-rows"
                | "lnt"
                | "ln"
                | "gutter"
                | "gutter-line"
                | "rouge-gutter"
                | "blob-num"
                | "hljs-ln-numbers"
                | "hljs-ln-line-number"
                | "CodeMirror-linenumber"
                | "code-line-number"
                | "react-code-line-number"
                | "LineNumber"
        )
    }) && tree
        .below(number)
        .all(|each| tree.nodes[each].text.chars().all(|c| c.is_ascii_digit() || c.is_whitespace() || c == '.'))
}

/// The text of a code block. A line ends at a line break and where a block or row begins or ends.
pub(crate) fn code_text(tree: &Tree<'_>, number: usize) -> String {
    enum Step {
        Enter(usize),
        Leave,
    }
    let mut lines = Lines { out: String::with_capacity(tree.nodes[number].size), is_pending: false, begun: 0 };
    let mut waiting: Vec<Step> = Vec::new();
    let push = |waiting: &mut Vec<Step>, number: usize| {
        let start = waiting.len();
        waiting.extend(tree.children(number).map(Step::Enter));
        waiting[start..].reverse();
    };
    push(&mut waiting, number);
    while let Some(step) = waiting.pop() {
        match step {
            Step::Leave => lines.end(),
            Step::Enter(each) => match tree.nodes[each].tag {
                Tag::Text => lines.text(&tree.nodes[each].text),
                Tag::Br => lines.text("\n"),
                Tag::Tex => {}
                Tag::Control if tree.nodes[each].size == 0 => {}
                _ => {
                    if is_line(tree, each) {
                        lines.begin();
                        waiting.push(Step::Leave);
                    }
                    push(&mut waiting, each);
                }
            },
        }
    }
    lines.out.replace("\r\n", "\n").replace('\r', "\n")
}

/// Whether an element within code is a separate line.
fn is_line(tree: &Tree<'_>, number: usize) -> bool {
    match tree.nodes[number].tag {
        Tag::Tr => true,
        Tag::Td | Tag::Th | Tag::Table | Tag::RowGroup | Tag::Pre => false,
        Tag::Span | Tag::Code => {
            tree.has_class(number, |name| matches!(name, "line" | "token-line" | "code-line" | "view-line" | "cl-line"))
                || tree.attribute(number, "data-line").is_some()
                || tree.attribute(number, "style").is_some_and(|style| {
                    let style: String = style.split_whitespace().collect();
                    style.contains("display:block") || style.contains("display:flex")
                })
        }
        tag => tag.is_block(),
    }
}

struct Lines {
    out: String,
    /// A line has ended, and its line feed is not written yet: the text that follows may begin with it.
    is_pending: bool,
    /// The length when the last line began.
    begun: usize,
}

impl Lines {
    fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.is_pending && !text.starts_with(['\n', '\r']) {
            self.out.push('\n');
        }
        self.is_pending = false;
        self.out.push_str(text);
    }

    fn begin(&mut self) {
        if self.is_pending || !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
        self.is_pending = false;
        self.begun = self.out.len();
    }

    fn end(&mut self) {
        // A line that ended with a line break is complete, unless it is empty.
        self.is_pending = self.is_pending || !self.out.ends_with('\n') || self.out.len() == self.begun;
    }
}
