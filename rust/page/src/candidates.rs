//! Finds the text of a page. Each block has a value: the amount of its running text minus that of its links and labels.
//! The element with the highest sum of its blocks is the main content. Many short teasers therefore have little weight,
//! and a text that is split over several elements selects the element around them.

use crate::names::{hint, Hint};
use crate::tag::Tag;
use crate::tree::{Tree, ROOT};

/// The share of a negative value that counts for the parent element, because navigation can be removed from it later.
const REMOVABLE_PERCENT: i64 = 15;
/// A label that looks like running text has fewer characters than this.
const SENTENCE_MIN: i64 = 100;

/// The values of a tree's nodes, by number. Only block elements have values; text counts for its nearest block.
#[derive(Debug)]
pub(crate) struct Values {
    /// The value of the block itself. Negative for links and labels.
    pub(crate) own: Vec<i64>,
    /// The running text of the node and its descendants, including chrome.
    pub(crate) running: Vec<i64>,
    /// The sum of the node and its descendants. Nodes that hints mark as chrome count negatively.
    pub(crate) net: Vec<i64>,
    pub(crate) hints: Vec<Hint>,
    /// Whether the node is within a link.
    pub(crate) is_linked: Vec<bool>,
    /// Whether the node is within one whose hint is trusted.
    pub(crate) is_out: Vec<bool>,
    /// Whether the node is within an entry of a list of other pages.
    pub(crate) is_teased: Vec<bool>,
}

/// Whether the element is a block for the text in it.
pub(crate) fn is_block(tag: Tag) -> bool {
    tag.is_block() || matches!(tag, Tag::Td | Tag::Th | Tag::Caption)
}

/// Whether an element may be the whole main content.
fn is_container(tag: Tag) -> bool {
    matches!(
        tag,
        Tag::Body
            | Tag::Article
            | Tag::Main
            | Tag::Section
            | Tag::Div
            | Tag::Td
            | Tag::Table
            | Tag::RowGroup
            | Tag::Tr
            | Tag::Blockquote
            | Tag::Form
            | Tag::Ul
            | Tag::Ol
            | Tag::Dl
            | Tag::OtherBlock
            | Tag::Other
    )
}

/// The measures of the text directly in a block.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    size: i64,
    linked: i64,
    /// The numbers of marks that end a sentence, and of those that divide one.
    stops: i64,
    commas: i64,
}

impl Values {
    pub(crate) fn of(tree: &Tree<'_>) -> Values {
        let count = tree.nodes.len();
        let runs = runs(tree);
        let mut own = vec![0i64; count];
        let mut running = vec![0i64; count];
        let mut is_teaser = vec![0u8; count];
        for number in (0..count).rev() {
            let tag = tree.nodes[number].tag;
            own[number] = value(tag, runs[number]);
            running[number] += own[number].max(0);
            let parent = tree.nodes[number].parent;
            if number > ROOT {
                running[parent] += running[number];
                // A linked heading belongs to a teaser.
                let node = &tree.nodes[number];
                let is_linked_heading =
                    matches!(tag, Tag::H(2..=6)) && node.linked > 0 && node.linked * 10 >= node.size * 8;
                let above = if is_linked_heading { 4 } else { is_teaser[number] };
                is_teaser[parent] = is_teaser[parent].max(above.saturating_sub(1));
            }
        }
        let in_line = lines(tree);
        let hints = tree.nodes.iter().enumerate().map(|(number, node)| {
            let is_named = node.tag != Tag::Text
                && (is_block(node.tag) || tree.has_hints(number))
                && !(node.tag.is_inline() && in_line[node.parent]);
            if is_named {
                hint(tree, number)
            } else {
                Hint::Nothing
            }
        });
        let hints = hints.collect();
        let mut is_linked = vec![false; count];
        for number in 1..count {
            is_linked[number] = is_linked[tree.nodes[number].parent] || tree.nodes[number].is_link;
        }
        let mut values = Values {
            own,
            running,
            net: Vec::new(),
            hints,
            is_linked,
            is_out: Vec::new(),
            is_teased: vec![false; count],
        };
        values.mark_teasers(tree, &is_teaser);
        values.weigh(tree);
        values
    }

    /// Marks three or more similar siblings with linked headings as a list of other pages.
    fn mark_teasers(&mut self, tree: &Tree<'_>, is_teaser: &[u8]) {
        let total = self.running[ROOT];
        for parent in 0..tree.nodes.len() {
            if is_teaser[parent] == 0 {
                continue;
            }
            let is_one = |each: usize| {
                is_teaser[each] > 0
                    && matches!(tree.nodes[each].tag, Tag::Article | Tag::Div | Tag::Li | Tag::Section)
                    && tree.nodes[each].size < 1500
            };
            let (mut count, mut text) = (0, 0);
            for each in tree.children(parent).filter(|each| is_one(*each)) {
                count += 1;
                text += self.running[each];
            }
            // The posts of a forum may look similar, but they are longer and make up most of the page.
            let is_most = text * 10 >= total * 6;
            if count >= 3 && (!is_most || text < 250 * count && total - text >= 50) {
                let found: Vec<usize> = tree.children(parent).filter(|each| is_one(*each)).collect();
                for each in found {
                    self.hints[each] = Hint::Teaser;
                }
            }
        }
    }

    /// Whether a hint about a node is trusted. It is not if most of the text of `whole` would be dropped.
    pub(crate) fn is_believed(&self, number: usize, whole: usize) -> bool {
        let (share, total) = (self.running[number], self.running[whole]);
        match self.hints[number] {
            Hint::Chrome => {
                share * 2 <= total || share * 10 <= total * 8 && total - share >= 200 || share <= 150 && share < total
            }
            Hint::Beside => share * 3 <= total,
            Hint::Teaser => true,
            Hint::Body | Hint::Nothing => false,
        }
    }

    fn weigh(&mut self, tree: &Tree<'_>) {
        let count = tree.nodes.len();
        let mut is_out = vec![false; count];
        for number in 1..count {
            let parent = tree.nodes[number].parent;
            is_out[number] = is_out[parent] || self.is_believed(number, ROOT);
            self.is_teased[number] = self.is_teased[parent] || self.hints[number] == Hint::Teaser;
        }
        let mut net = vec![0i64; count];
        for number in (0..count).rev() {
            let own = self.own[number];
            net[number] += if is_out[number] { -(own.abs() / 2) } else { own };
            if number > ROOT {
                let sum = net[number];
                net[tree.nodes[number].parent] += if sum < 0 { sum * REMOVABLE_PERCENT / 100 } else { sum };
            }
        }
        self.net = net;
        self.is_out = is_out;
    }

    /// The element that holds the text.
    pub(crate) fn best(&self, tree: &Tree<'_>) -> Option<usize> {
        let mut best: Option<(usize, i64)> = None;
        for (number, node) in tree.nodes.iter().enumerate() {
            if !is_container(node.tag) || self.net[number] <= 0 {
                continue;
            }
            let bonus = match (self.hints[number], node.tag) {
                (Hint::Body, _) => 112,
                (_, Tag::Article) => 106,
                (_, Tag::Main) => 103,
                _ => 100,
            };
            let weight = self.net[number] * bonus;
            // If two elements have the same content, the inner one is chosen.
            if best.is_none_or(|(_, most)| weight >= most) {
                best = Some((number, weight));
            }
        }
        best.map(|(number, _)| self.without_tail(tree, number))
    }

    /// Selects a child that holds nearly all of the content if the following siblings are of another kind. Notices and
    /// offers follow an article, while leads precede it.
    fn without_tail(&self, tree: &Tree<'_>, best: usize) -> usize {
        let mut root = best;
        loop {
            let most = tree
                .children(root)
                .filter(|each| is_container(tree.nodes[*each].tag))
                .max_by_key(|each| self.net[*each]);
            let Some(most) = most else { return root };
            if self.net[most] * 4 < self.net[root] * 3
                || matches!(tree.nodes[most].tag, Tag::Blockquote | Tag::Ul | Tag::Ol | Tag::Dl)
            {
                return root;
            }
            let own = (tree.nodes[most].tag, tree.attribute(most, "class"));
            let is_needed = |each: usize| {
                let is_text = self.net[each] * 50 > self.net[root];
                each < most && self.running[each] > 0 && !self.is_believed(each, root)
                    || is_text
                        && (tree.nodes[each].tag == Tag::P
                            || (tree.nodes[each].tag, tree.attribute(each, "class")) == own)
            };
            if tree.children(root).any(|each| each != most && is_needed(each)) || self.own[root] * 50 > self.net[root] {
                return root;
            }
            root = most;
        }
    }
}

/// For each node, whether the elements in it are in a line of text, where their names describe words and not blocks.
fn lines(tree: &Tree<'_>) -> Vec<bool> {
    let mut found = vec![false; tree.nodes.len()];
    for (number, node) in tree.nodes.iter().enumerate().skip(1) {
        let is_text = node.tag == Tag::Text && !node.text.trim().is_empty();
        if is_text || matches!(tree.nodes[node.parent].name, "dt" | "code" | "pre") {
            found[node.parent] = true;
        }
        found[number] |= node.tag.is_inline() && found[node.parent];
    }
    found
}

fn runs(tree: &Tree<'_>) -> Vec<Run> {
    let mut runs = vec![Run::default(); tree.nodes.len()];
    // The nearest block of each node, and whether a link is between them.
    let mut owners: Vec<(usize, bool)> = Vec::with_capacity(tree.nodes.len());
    for (number, node) in tree.nodes.iter().enumerate() {
        let (owner, is_linked) = if number == ROOT { (ROOT, false) } else { owners[node.parent] };
        owners.push(if is_block(node.tag) { (number, is_linked) } else { (owner, is_linked || node.is_link) });
        if node.tag == Tag::Text {
            let (size, stops, commas) = measured(&node.text);
            let run = &mut runs[owner];
            run.size += size;
            run.stops += stops;
            run.commas += commas;
            if is_linked {
                run.linked += size;
            }
        }
    }
    runs
}

/// The number of characters, without white space at the ends, and with triple weight for scripts that write a word with
/// one or two characters; and the numbers of marks that end or divide a sentence. A full stop after a digit or capital
/// belongs to a date or a name.
fn measured(text: &str) -> (i64, i64, i64) {
    let (mut size, mut stops, mut commas) = (0, 0, 0);
    let trimmed = text.trim();
    if trimmed.is_ascii() {
        let bytes = trimmed.as_bytes();
        for (at, b) in bytes.iter().enumerate() {
            if !matches!(b, b'.' | b'!' | b'?' | b',' | b';' | b':') {
                continue;
            }
            let is_at_end = bytes.get(at + 1).is_none_or(|next| matches!(next, b' ' | b'\n' | b'"' | b'\''));
            // A text that begins with a full stop continues after an inline element.
            let is_behind_word = at == 0 || matches!(bytes[at - 1], b'a'..=b'z' | b')' | b'"');
            match b {
                _ if !is_at_end || !is_behind_word => {}
                b',' | b';' | b':' => commas += 1,
                _ => stops += 1,
            }
        }
        return (i64::try_from(bytes.len()).unwrap_or(i64::MAX), stops, commas);
    }
    let mut before = 'a';
    for c in trimmed.chars() {
        size += if ('\u{3000}'..='\u{9fff}').contains(&c) || ('\u{ac00}'..='\u{d7af}').contains(&c) { 3 } else { 1 };
        let is_behind_word = before.is_alphabetic() && !before.is_uppercase() || matches!(before, ')' | '”' | '»');
        match c {
            '。' | '！' | '？' | '؟' | '۔' | '।' | '…' => stops += 1,
            '，' | '、' | '；' | '،' => commas += 1,
            '.' | '!' | '?' if is_behind_word => stops += 1,
            ',' | ';' | ':' if is_behind_word => commas += 1,
            _ => {}
        }
        before = c;
    }
    (size, stops, commas)
}

fn value(tag: Tag, run: Run) -> i64 {
    let Run { size, linked, stops, commas } = run;
    if size == 0 {
        return 0;
    }
    let plain = size - linked;
    match tag {
        Tag::H(_) => {
            if linked * 10 >= size * 8 {
                -2 * size
            } else {
                0
            }
        }
        _ if (stops > 0 && size >= 20) || commas > 1 || plain >= SENTENCE_MIN => {
            let text = size - 2 * linked;
            // A single short sentence is often a label.
            if text > 0 && size < 60 {
                text / 2
            } else {
                text
            }
        }
        Tag::Pre => (plain / 2 - 2 * linked).max(0),
        Tag::P | Tag::Li | Tag::Dd | Tag::Td | Tag::Th | Tag::Blockquote => -2 * linked,
        _ => -plain / 2 - 2 * linked,
    }
}
