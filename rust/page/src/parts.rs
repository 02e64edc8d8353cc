//! Lists the tables, code blocks and images of a page.

use std::collections::HashSet;

use serde::Serialize;

use crate::address::joined;
use crate::code::{code_text, is_code_table, language};
use crate::grid::{caption, is_layout, Grid};
use crate::images::source_of;
use crate::plain::one_line;
use crate::tag::Tag;
use crate::tree::Tree;

const TABLES_MAX: usize = 200;
const ROWS_MAX: usize = 5_000;
const CODE_MAX: usize = 500;
const IMAGES_MAX: usize = 2_000;
const ALT_MAX_CHARS: usize = 500;

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

/// A list, and whether it was cut.
pub(crate) struct Listed<T> {
    pub(crate) found: Vec<T>,
    pub(crate) is_cut: bool,
}

impl<T> Listed<T> {
    /// The list. Adds to `is_cut` whether it was cut.
    pub(crate) fn into_parts(self, is_cut: &mut bool) -> Vec<T> {
        *is_cut |= self.is_cut;
        self.found
    }
}

pub(crate) fn tables(tree: &Tree<'_>, root: usize) -> Listed<Table> {
    let mut listed = Listed { found: Vec::new(), is_cut: false };
    for table in tree.below(root).filter(|each| tree.nodes[*each].tag == Tag::Table) {
        if is_layout(tree, table) || is_code_table(tree, table) {
            continue;
        }
        if listed.found.len() >= TABLES_MAX {
            listed.is_cut = true;
            break;
        }
        let mut grid = Grid::of(tree, table);
        let width = grid.width().unwrap_or(0);
        listed.is_cut |= grid.rows.len() > ROWS_MAX;
        grid.rows.truncate(ROWS_MAX);
        let is_head = |place: &Option<usize>| place.is_none_or(|cell| tree.nodes[cell].tag == Tag::Th);
        let has_head = grid.rows.first().is_some_and(|row| row.iter().all(is_head));
        let text = |place: &Option<usize>| place.map_or(String::new(), |cell| one_line(tree, cell));
        let filled = |row: &Vec<Option<usize>>| {
            let mut texts: Vec<String> = row.iter().map(text).collect();
            texts.resize(texts.len().max(width), String::new());
            texts
        };
        let mut rows: Vec<Vec<String>> = grid.rows.iter().map(filled).collect();
        let headers = if has_head { rows.remove(0) } else { Vec::new() };
        let caption = caption(tree, table).map(|each| one_line(tree, each)).unwrap_or_default();
        listed.found.push(Table { caption, headers, rows });
    }
    listed
}

pub(crate) fn code(tree: &Tree<'_>, root: usize) -> Listed<Code> {
    let mut listed = Listed { found: Vec::new(), is_cut: false };
    for each in tree.below(root) {
        let is_code = match tree.nodes[each].tag {
            Tag::Pre => true,
            Tag::Table => is_code_table(tree, each),
            _ => false,
        };
        if !is_code {
            continue;
        }
        if listed.found.len() >= CODE_MAX {
            listed.is_cut = true;
            break;
        }
        let code = code_text(tree, each).trim_matches(['\r', '\n']).to_owned();
        listed.found.push(Code { language: language(tree, each), code });
    }
    listed
}

pub(crate) fn images(tree: &Tree<'_>, root: usize, base: &str) -> Listed<Image> {
    let mut known = HashSet::new();
    let mut listed = Listed { found: Vec::new(), is_cut: false };
    for each in tree.below(root).filter(|each| tree.nodes[*each].tag == Tag::Img) {
        let Some(source) = source_of(tree, each) else { continue };
        let url = joined(base, source.trim());
        if !(url.starts_with("http://") || url.starts_with("https://")) || !known.insert(url.clone()) {
            continue;
        }
        if listed.found.len() >= IMAGES_MAX {
            listed.is_cut = true;
            break;
        }
        let alt = tree.attribute(each, "alt").unwrap_or_default();
        listed.found.push(Image { url, alt: alt.trim().chars().take(ALT_MAX_CHARS).collect() });
    }
    listed
}
