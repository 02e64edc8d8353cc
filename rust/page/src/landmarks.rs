//! The landmarks of a page: its main element, its headings, its articles, its fields.

use crate::tag::Tag;
use crate::tree::{Tree, ROOT};

/// A text with more characters is more than a footer has.
const LONG_MIN: usize = 1_200;

pub(crate) struct Landmarks {
    /// The page's one main element.
    pub(crate) main: Option<usize>,
    /// The first heading of the first level that is no link.
    pub(crate) first_heading: Option<usize>,
    ends: Vec<usize>,
    /// For each node, whether it is within a main element or an article.
    inside: Vec<bool>,
    /// The numbers of all headings, of those of the first level, and of fields and buttons.
    headings: Vec<usize>,
    titles: Vec<usize>,
    controls: Vec<usize>,
    /// For each node, the size of the text before its end.
    sizes: Vec<usize>,
}

impl Landmarks {
    pub(crate) fn of(tree: &Tree<'_>) -> Landmarks {
        let count = tree.nodes.len();
        let mut marks = Landmarks {
            main: None,
            first_heading: None,
            ends: tree.ends(),
            inside: vec![false; count],
            headings: Vec::new(),
            titles: Vec::new(),
            controls: Vec::new(),
            sizes: vec![0; count],
        };
        let (mut mains, mut named) = (Vec::new(), Vec::new());
        let mut size = 0;
        for (number, node) in tree.nodes.iter().enumerate() {
            size += if node.tag == Tag::Text { node.size } else { 0 };
            marks.sizes[number] = size;
            if number == ROOT {
                continue;
            }
            let mut is_inside =
                marks.inside[node.parent] || matches!(node.tag, Tag::Article | Tag::Blockquote | Tag::Figure);
            match node.tag {
                Tag::H(level) if node.size > 0 => {
                    marks.headings.push(number);
                    if level == 1 {
                        marks.titles.push(number);
                    }
                }
                Tag::Control => marks.controls.push(number),
                tag if tag.is_block() || tag == Tag::Other => {
                    if is_main(tree, number) {
                        mains.push(number);
                        is_inside = true;
                    } else if is_named_main(tree, number) {
                        named.push(number);
                    }
                }
                _ => {}
            }
            marks.inside[number] = is_inside;
        }
        let is_whole = |number: &usize| tree.nodes[*number].size * 2 >= tree.nodes[ROOT].size;
        marks.main = match mains[..] {
            [main] => Some(main),
            [] => named.first().copied().filter(is_whole),
            _ => outermost(&mains, &marks.ends),
        };
        let is_text = |number: &usize| tree.nodes[*number].linked * 10 < tree.nodes[*number].size * 8;
        marks.first_heading = marks.titles.iter().copied().find(is_text);
        marks
    }

    pub(crate) fn end(&self, number: usize) -> usize {
        self.ends[number]
    }

    /// For each node, the number behind its last descendant.
    pub(crate) fn ends(&self) -> &[usize] {
        &self.ends
    }

    pub(crate) fn contains(&self, outer: usize, inner: usize) -> bool {
        outer <= inner && inner < self.ends[outer]
    }

    /// Whether an element is within a main element or an article.
    pub(crate) fn is_inside(&self, number: usize) -> bool {
        self.inside[number]
    }

    /// The size of the text behind an element.
    pub(crate) fn size_behind(&self, number: usize) -> usize {
        let all = self.sizes.last().copied().unwrap_or(0);
        all - self.sizes[self.ends[number] - 1]
    }

    /// Whether an element holds the main element, the page's heading, or most of the page. The footer of a short page is
    /// often longer than its content.
    pub(crate) fn holds_page(&self, tree: &Tree<'_>, number: usize) -> bool {
        let holds = |inner: Option<usize>| inner.is_some_and(|inner| self.contains(number, inner));
        holds(self.main) || holds(self.first_heading) || self.holds_most(tree, number)
    }

    /// Whether an element holds most of a page without a main element, as far as its size is a sign.
    fn holds_most(&self, tree: &Tree<'_>, number: usize) -> bool {
        let (own, all) = (tree.unlinked(number), tree.unlinked(ROOT));
        let is_sure = matches!(tree.nodes[number].tag, Tag::Nav | Tag::Footer) || self.first_heading.is_some();
        self.main.is_none() && own * 2 > all && (!is_sure || own > LONG_MIN || own * 10 > all * 9)
    }

    pub(crate) fn has_heading(&self, number: usize) -> bool {
        self.first_within(&self.headings, number).is_some()
    }

    /// Whether an element has a heading of the first level.
    pub(crate) fn has_heading_of_page(&self, number: usize) -> bool {
        self.first_within(&self.titles, number).is_some()
    }

    /// The page's heading in an element.
    pub(crate) fn heading_in(&self, number: usize) -> Option<usize> {
        let heading = self.first_within(&self.titles, number)?;
        (self.first_heading == Some(heading)).then_some(heading)
    }

    /// Whether an element has a field to type in or to choose from.
    pub(crate) fn has_field(&self, tree: &Tree<'_>, number: usize) -> bool {
        self.within(&self.controls, number).iter().any(|each| match tree.nodes[*each].name {
            "input" => {
                let kind = tree.attribute(*each, "type").unwrap_or_default().to_ascii_lowercase();
                !matches!(&*kind, "hidden" | "submit" | "button" | "image" | "reset" | "checkbox" | "radio" | "number")
            }
            name => matches!(name, "textarea" | "select"),
        })
    }

    pub(crate) fn has_control(&self, tree: &Tree<'_>, number: usize) -> bool {
        self.within(&self.controls, number)
            .iter()
            .any(|each| tree.nodes[*each].name != "input" || tree.attribute(*each, "type").as_deref() != Some("hidden"))
    }

    /// Whether an element is the header of the site, and not of an article.
    pub(crate) fn is_header_of_site(&self, tree: &Tree<'_>, number: usize) -> bool {
        let is_header = match tree.nodes[number].tag {
            Tag::Header => !self.inside[number],
            _ => tree.nodes[number].names.role == "banner" || is_named_header(tree, number),
        };
        is_header
            && !self.inside[number]
            && !self.main.is_some_and(|main| self.contains(number, main))
            && !self.holds_most(tree, number)
    }

    fn within<'s>(&self, numbers: &'s [usize], outer: usize) -> &'s [usize] {
        let from = numbers.partition_point(|each| *each < outer);
        let to = numbers.partition_point(|each| *each < self.ends[outer]);
        &numbers[from..to]
    }

    fn first_within(&self, numbers: &[usize], outer: usize) -> Option<usize> {
        self.within(numbers, outer).first().copied()
    }
}

fn is_main(tree: &Tree<'_>, number: usize) -> bool {
    tree.nodes[number].tag == Tag::Main || tree.nodes[number].names.role == "main"
}

fn is_named_main(tree: &Tree<'_>, number: usize) -> bool {
    matches!(
        tree.nodes[number].names.id,
        "main" | "content" | "main-content" | "maincontent" | "mainContent" | "mw-content-text"
    )
}

fn is_named_header(tree: &Tree<'_>, number: usize) -> bool {
    let is_one = |name: &str| {
        matches!(name, "site-header" | "masthead" | "topbar" | "top-bar" | "global-header" | "siteheader" | "navbar")
    };
    let node = &tree.nodes[number];
    node.tag == Tag::Div && (tree.has_class(number, is_one) || is_one(node.names.id) || node.names.id == "header")
}

/// The element that contains all of these.
fn outermost(numbers: &[usize], ends: &[usize]) -> Option<usize> {
    let first = *numbers.first()?;
    numbers.iter().all(|each| *each < ends[first]).then_some(first)
}
