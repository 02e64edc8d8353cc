//! Lists the tables, code blocks and images of a page.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;

use crate::address::joined;
use crate::tag::Tag;
use crate::tree::Tree;

const TABLES_MAX: usize = 200;
const ROWS_MAX: usize = 5_000;
const CODE_MAX: usize = 500;
const IMAGES_MAX: usize = 2_000;
const ALT_MAX_CHARS: usize = 500;

static LANGUAGE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:^|\s)(?:lang(?:uage)?|highlight(?:-source)?|brush:?)[-_ ]([A-Za-z0-9+#.-]{1,20})")
        .expect("a constant")
});

/// A data table. `headers` is empty if the first row is not a header.
#[derive(Debug, Serialize)]
pub struct Table {
    pub caption: String,
    pub headers: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// A code block, and the language that its classes name.
#[derive(Debug, Serialize)]
pub struct Code {
    pub language: String,
    pub code: String,
}

/// An image. `url` is absolute.
#[derive(Debug, Serialize)]
pub struct Image {
    pub url: String,
    pub alt: String,
}

/// The cells of the rows of a table, without nested tables.
pub(crate) fn rows(tree: &Tree<'_>, table: usize) -> Vec<Vec<usize>> {
    let mut found = Vec::new();
    let mut row = |number: usize| {
        let cells: Vec<usize> =
            tree.children(number).filter(|cell| matches!(tree.nodes[*cell].tag, Tag::Td | Tag::Th)).collect();
        if !cells.is_empty() {
            found.push(cells);
        }
    };
    for part in tree.children(table) {
        match tree.nodes[part].tag {
            Tag::RowGroup => {
                tree.children(part).filter(|each| tree.nodes[*each].tag == Tag::Tr).for_each(&mut row);
            }
            Tag::Tr => row(part),
            _ => {}
        }
    }
    found
}

pub(crate) fn tables(tree: &Tree<'_>, root: usize) -> Vec<Table> {
    let mut found = Vec::new();
    for table in tree.below(root).filter(|each| tree.nodes[*each].tag == Tag::Table).take(TABLES_MAX) {
        let holds_tables = tree.below(table).any(|each| tree.nodes[each].tag == Tag::Table);
        let role = tree.attribute(table, "role");
        if holds_tables || matches!(role.as_deref(), Some("presentation" | "none")) {
            continue;
        }
        let mut rows = rows(tree, table);
        rows.truncate(ROWS_MAX);
        let has_head = rows.first().is_some_and(|row| row.iter().all(|cell| tree.nodes[*cell].tag == Tag::Th));
        let mut texts: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(|cell| tree.line(*cell)).collect()).collect();
        let headers = if has_head { texts.remove(0) } else { Vec::new() };
        let caption = tree.below(table).find(|each| tree.nodes[*each].tag == Tag::Caption);
        found.push(Table { caption: caption.map(|each| tree.line(each)).unwrap_or_default(), headers, rows: texts });
    }
    found
}

pub(crate) fn code(tree: &Tree<'_>, root: usize) -> Vec<Code> {
    tree.below(root)
        .filter(|each| tree.nodes[*each].tag == Tag::Pre)
        .take(CODE_MAX)
        .map(|each| Code {
            language: language(tree, each),
            code: tree.raw_text(each).trim_matches(['\r', '\n']).to_owned(),
        })
        .collect()
}

pub(crate) fn images(tree: &Tree<'_>, root: usize, base: &str) -> Vec<Image> {
    let mut known = HashSet::new();
    let mut found = Vec::new();
    for each in tree.below(root).filter(|each| tree.nodes[*each].tag == Tag::Img) {
        let source = tree.attribute(each, "src").unwrap_or_default();
        let url = joined(base, source.trim());
        if !(url.starts_with("http://") || url.starts_with("https://")) || !known.insert(url.clone()) {
            continue;
        }
        let alt = tree.attribute(each, "alt").unwrap_or_default();
        found.push(Image { url, alt: alt.trim().chars().take(ALT_MAX_CHARS).collect() });
        if found.len() >= IMAGES_MAX {
            break;
        }
    }
    found
}

/// The language that a code block's classes name, or an empty string.
pub(crate) fn language(tree: &Tree<'_>, pre: usize) -> String {
    let inner = tree.below(pre).find(|each| tree.nodes[*each].name == "code");
    for number in inner.into_iter().chain([pre]) {
        if let Some(found) = LANGUAGE.captures(&tree.attribute(number, "class").unwrap_or_default()) {
            return found[1].to_ascii_lowercase();
        }
        if let Some(attribute) = tree.attribute(number, "data-lang").filter(|attribute| !attribute.is_empty()) {
            let is_fine = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '+' | '#' | '.' | '-');
            return attribute.to_ascii_lowercase().chars().filter(is_fine).take(20).collect();
        }
    }
    String::new()
}
