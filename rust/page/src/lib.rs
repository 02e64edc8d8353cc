//! Extracts the content of a web page. The input is HTML that Lexbor has read and serialized: every element is closed,
//! in order, and only `&amp; &lt; &gt; &quot; &nbsp;` are escaped. All processing is linear in the size of the page,
//! limited in depth, and deterministic.
//!
//! Read the modules in this order: `tag`, `attributes`, `visible`, `links`, `reader`, `tree` and `marks` (the elements
//! and links of a page), `address` (absolute links), `landmarks`, `surroundings` and `chrome` (the page without
//! navigation, header and footer), `names` (hints from classes and roles), `candidates` (elements that may hold
//! the article), `boilerplate` and `phrases` (parts that are never the article), `content` (the choice between the two
//! meanings), `fit` (removes blocks with little content), `grid`, `code`, `images`, `formula` and `parts` (blocks of the
//! text), `markdown` with `inline`, `lists`, `table` and `spelling`, `plain`, `html` (output), `nesting` (pages too deep
//! to parse), `patterns` (the addresses that a caller's expressions match).

#![forbid(unsafe_code)]

mod address;
mod attributes;
mod boilerplate;
mod candidates;
mod chrome;
mod code;
mod content;
mod fit;
mod formula;
mod grid;
mod html;
mod images;
mod inline;
mod landmarks;
mod links;
mod lists;
mod markdown;
mod marks;
mod names;
mod nesting;
mod parts;
mod patterns;
mod phrases;
mod plain;
mod reader;
mod spelling;
mod surroundings;
mod table;
mod tag;
mod tree;
mod visible;

use serde::Serialize;

use crate::visible::Sight;

pub use crate::address::joined;
pub use crate::nesting::flattened;
pub use crate::patterns::{AddressPatterns, PatternFault, PatternLists};

/// The output format of the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// No content.
    Nothing,
    /// Elements without scripts and styles, with absolute addresses.
    Html,
    Markdown,
    /// One line per block.
    Text,
}

/// How to read a page. `only_main_content` drops what surrounds the content. `fit` gives the article where one holds most
/// of the content, without images and blocks with little content.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools)] // four independent options
pub struct ReadOptions {
    pub form: Form,
    pub only_main_content: bool,
    pub fit: bool,
    pub tables: bool,
    pub code: bool,
    pub images: bool,
}

/// The content of a page. `links` are those of the whole page, including hidden parts, each `href` once and as written.
#[derive(Debug, Serialize)]
pub struct Holding {
    pub content: Option<String>,
    pub links: Vec<Link>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables: Option<Vec<parts::Table>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Vec<parts::Code>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<Vec<parts::Image>>,
    /// Whether a limit left something out, and the bytes of text that it left out.
    pub is_cut: bool,
    pub cut_bytes: usize,
    /// Whether documents inside the content are represented by links.
    pub has_frames: bool,
    /// The characters of visible text of the whole page.
    pub visible_chars: usize,
}

/// One link: its target as written, and its text on one line.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub struct Link {
    pub href: String,
    pub text: String,
}

/// A page that shows fewer characters and hides many more is read as if it showed them.
const VISIBLE_MIN: usize = 200;

/// Reads the page's body, `<body ...>...</body>` or its inner HTML. Addresses are relative to `base`.
pub fn read(html: &str, base: &str, want: ReadOptions) -> Holding {
    let is_main = want.only_main_content || want.fit;
    let sight = if is_main { Sight::Spoken } else { Sight::Shown };
    let (mut tree, links) = reader::read(html, sight);
    let visible_chars = tree.nodes[tree::ROOT].size;
    if is_main && visible_chars < VISIBLE_MIN && tree.hidden_bytes > 10 * VISIBLE_MIN {
        // Some pages show all of their text only after a script has run.
        tree = reader::read(html, Sight::All).0;
    }
    // A reader of the whole page sees the line numbers.
    marks::drop_marks(&mut tree, is_main || want.form != Form::Text);
    let found = match (want.fit, is_main) {
        (true, _) => content::article_or_main(&mut tree),
        (_, true) => content::main_content(&mut tree),
        _ => content::Found { root: tree::ROOT, is_article: false },
    };
    let root = found.root;
    let content = match want.form {
        Form::Nothing => None,
        Form::Html => Some(tree.html(root, base)),
        Form::Markdown => Some(markdown::markdown(&tree, root, base, !found.is_article)),
        Form::Text => Some(plain::plain(&tree, root)),
    };
    let mut is_cut = tree.cut_bytes > 0 || links.len() >= links::LINKS_MAX;
    let tables = want.tables.then(|| parts::tables(&tree, root).into_parts(&mut is_cut));
    let code = want.code.then(|| parts::code(&tree, root).into_parts(&mut is_cut));
    let images = want.images.then(|| parts::images(&tree, root, base).into_parts(&mut is_cut));
    let is_frame = |each: usize| matches!(tree.nodes[each].name, "iframe" | "frame");
    let has_frames = tree.below(root).any(|each| is_frame(each) && images::embed(&tree, each, base).is_some());
    Holding { content, links, tables, code, images, is_cut, cut_bytes: tree.cut_bytes, has_frames, visible_chars }
}

#[cfg(test)]
mod tests;
