//! Drops what surrounds the content of a page: navigation, the header and footer of the site, consent notices, sharing,
//! lists of related pages, forms. Everything else stays. An element that holds the page is never dropped, whatever its
//! name says.

use crate::landmarks::Landmarks;
use crate::phrases::{announces_related, asks_consent, is_notice};
use crate::surroundings::{Surrounding, SurroundingsByName};
use crate::tag::Tag;
use crate::tree::{Tree, ROOT};

/// A longer element is not a notice, a row of buttons or a box.
const BOX_MAX: usize = 1_200;
/// A longer element is not a notice of cookies, whatever its name is.
const CONSENT_MAX: usize = 8_000;
/// A list of related pages has at most this many parts.
const RELATED_MAX: usize = 50;

/// Drops the surroundings in the whole tree. Returns the element that holds the content.
pub(crate) fn drop_surroundings(tree: &mut Tree<'_>) -> usize {
    let marks = Landmarks::of(tree);
    walk(tree, &marks, ROOT);
    drop_menu_before_heading(tree, &marks);
    drop_notices_at_end(tree, &marks);
    let root = narrowed(tree, &marks);
    if let Some(main) = marks.main {
        // Whatever the names say, at least half of the main element stays.
        if left(tree, main) * 2 < tree.nodes[main].size {
            take_back(tree, &marks, main);
        }
    }
    if left(tree, root) == 0 {
        tree.take_back();
        return ROOT;
    }
    root
}

fn walk(tree: &mut Tree<'_>, marks: &Landmarks, root: usize) {
    let mut by_name = SurroundingsByName::default();
    let mut waiting: Vec<usize> = tree.children(root).collect();
    while let Some(number) = waiting.pop() {
        let tag = tree.nodes[number].tag;
        if matches!(tag, Tag::Span | Tag::A | Tag::Strong) {
            // Names weigh for blocks only; but a block may be inside.
            waiting.extend(tree.children(number));
            continue;
        }
        if tag.is_inline() || matches!(tag, Tag::Pre | Tag::Dl) {
            continue;
        }
        if marks.is_header_of_site(tree, number) {
            drop_all_but_heading(tree, marks, number);
        } else if by_name
            .of(tree, number)
            .map_or_else(|| is_notice_of_cookies(tree, marks, number), |kind| is_surrounding(tree, marks, number, kind))
        {
            tree.nodes[number].is_dropped = true;
        } else {
            waiting.extend(tree.children(number));
        }
    }
    for (heading, siblings) in related_lists(tree, marks) {
        tree.nodes[heading].is_dropped = true;
        for each in siblings {
            tree.nodes[each].is_dropped = true;
        }
    }
}

/// Whether an element is the surrounding that it says it is.
fn is_surrounding(tree: &Tree<'_>, marks: &Landmarks, number: usize, kind: Surrounding) -> bool {
    let node = &tree.nodes[number];
    if marks.holds_page(tree, number) || matches!(node.tag, Tag::H(1)) {
        return false;
    }
    let is_inside = marks.is_inside(number);
    let is_linked = node.linked * 2 >= node.size && node.links > 0;
    let is_small = node.size <= BOX_MAX || node.size * 4 <= tree.nodes[ROOT].size;
    match kind {
        Surrounding::Navigation => true,
        Surrounding::Links => is_linked || node.size == 0,
        Surrounding::Footer => !is_inside || is_linked || node.size <= 300 && is_notice(&tree.line(number)),
        Surrounding::Beside => is_small && (!is_inside || node.linked * 10 >= node.size * 6),
        Surrounding::Consent => {
            // A notice of all purposes and partners is long.
            let is_notice = if is_inside { asks_consent(&tree.line(number)) } else { node.size <= CONSENT_MAX };
            is_notice && (!is_inside || node.size <= 2 * BOX_MAX) && !marks.has_heading_of_page(number)
        }
        Surrounding::Share => node.size <= 300 && !marks.has_heading_of_page(number),
        Surrounding::Related => is_small && node.links > 0 && (node.linked * 3 >= node.size || node.links >= 3),
        Surrounding::Advert => is_small,
        Surrounding::Offer => node.size <= BOX_MAX && (marks.has_field(tree, number) || is_linked),
        Surrounding::Form => marks.has_field(tree, number) && is_small,
    }
}

/// Whether a small element without a name asks for consent to cookies.
fn is_notice_of_cookies(tree: &Tree<'_>, marks: &Landmarks, number: usize) -> bool {
    let node = &tree.nodes[number];
    (1..=600).contains(&node.size)
        && node.tag.is_block()
        && !matches!(node.tag, Tag::H(1))
        && !marks.is_inside(number)
        && marks.has_control(tree, number)
        && !marks.holds_page(tree, number)
        && asks_consent(&tree.line(number))
}

/// Drops a site's header, except for the heading of the page and the paragraphs that follow it.
fn drop_all_but_heading(tree: &mut Tree<'_>, marks: &Landmarks, header: usize) {
    let Some(heading) = marks.heading_in(header) else {
        tree.nodes[header].is_dropped = true;
        return;
    };
    let mut outer = header;
    while outer != heading {
        let children: Vec<usize> = tree.children(outer).collect();
        let Some(way) = children.iter().copied().find(|each| marks.contains(*each, heading)) else { return };
        for each in children {
            let node = &tree.nodes[each];
            let is_lead = way == heading
                && each > heading
                && matches!(node.tag, Tag::P | Tag::H(_) | Tag::Div | Tag::Dl | Tag::Ul)
                && node.linked * 2 <= node.size
                && !marks.has_field(tree, each);
            if each != way && !is_lead {
                tree.nodes[each].is_dropped = true;
            }
        }
        outer = way;
    }
}

/// The lists of other pages below headings that announce them.
fn related_lists(tree: &Tree<'_>, marks: &Landmarks) -> Vec<(usize, Vec<usize>)> {
    let mut found = Vec::new();
    for heading in tree.below(ROOT) {
        let node = &tree.nodes[heading];
        let is_heading = matches!(node.tag, Tag::H(2..=6) | Tag::P | Tag::Div | Tag::Strong) && node.size <= 60;
        if !is_heading || node.size == 0 || !announces_related(&tree.line(heading)) {
            continue;
        }
        let (mut size, mut linked, mut links, mut siblings) = (0, 0, 0, Vec::new());
        for each in tree.behind(heading).take(RELATED_MAX) {
            let sibling = &tree.nodes[each];
            if matches!(sibling.tag, Tag::H(_)) || marks.has_heading(each) && sibling.linked * 2 < sibling.size {
                break;
            }
            if sibling.size > 0 && sibling.linked * 10 < sibling.size * 4 && links > 0 {
                break;
            }
            size += sibling.size;
            linked += sibling.linked;
            links += sibling.links;
            siblings.push(each);
        }
        if links >= 2 && linked * 10 >= size * 5 {
            found.push((heading, siblings));
        }
    }
    found
}

/// Drops lists of links before the heading of a page that marks neither its navigation nor its main element.
fn drop_menu_before_heading(tree: &mut Tree<'_>, marks: &Landmarks) {
    let Some(heading) = marks.first_heading else { return };
    if marks.main.is_some_and(|main| marks.contains(main, heading)) {
        return;
    }
    let is_menu = |tree: &Tree<'_>, each: usize| {
        let node = &tree.nodes[each];
        matches!(node.tag, Tag::Ul | Tag::Div | Tag::P | Tag::Table | Tag::Tr | Tag::OtherBlock)
            && node.links >= 3
            && node.linked * 10 >= node.size * 7
            && node.linked <= node.links * 30
            && !marks.holds_page(tree, each)
            && !marks.has_heading(each)
    };
    let found: Vec<usize> =
        tree.below(ROOT).take_while(|each| *each < heading).filter(|each| is_menu(tree, *each)).collect();
    for each in found {
        tree.nodes[each].is_dropped = true;
    }
}

/// Drops copyright lines at the end of the page.
fn drop_notices_at_end(tree: &mut Tree<'_>, marks: &Landmarks) {
    let found: Vec<usize> = tree
        .below(ROOT)
        .filter(|each| {
            let node = &tree.nodes[*each];
            let is_at_end = marks.size_behind(*each) * 20 <= tree.nodes[ROOT].size.max(4_000);
            node.tag.is_block()
                && (1..=250).contains(&node.size)
                && is_at_end
                && !marks.is_inside(*each)
                && !marks.holds_page(tree, *each)
                && is_notice(&tree.line(*each))
        })
        .collect();
    for each in found {
        tree.nodes[each].is_dropped = true;
    }
}

/// The main element if it holds most of what is left, with the heading of the page if that is before it.
fn narrowed(tree: &mut Tree<'_>, marks: &Landmarks) -> usize {
    let Some(main) = marks.main else { return ROOT };
    let (all, inside) = (unlinked_left(tree, ROOT), unlinked_left(tree, main));
    if inside * 2 < all {
        return ROOT;
    }
    let Some(heading) = marks.first_heading.filter(|heading| !marks.contains(main, *heading)) else { return main };
    if marks.has_heading_of_page(main) || is_dropped(tree, heading) {
        return main;
    }
    keep_only(tree, marks.ends(), heading, main);
    ROOT
}

/// Drops everything but two elements, and the paragraphs behind the first one.
pub(crate) fn keep_only(tree: &mut Tree<'_>, ends: &[usize], heading: usize, main: usize) {
    let mut waiting = vec![ROOT];
    while let Some(outer) = waiting.pop() {
        let children: Vec<usize> = tree.children(outer).collect();
        for each in children {
            let is_way = |goal: usize| (each..ends[each]).contains(&goal);
            if each == main || each == heading {
                continue;
            }
            if is_way(main) || is_way(heading) {
                waiting.push(each);
            } else {
                let node = &tree.nodes[each];
                let is_lead = node.parent == tree.nodes[heading].parent
                    && each > heading
                    && each < main
                    && node.tag == Tag::P
                    && node.linked * 2 <= node.size;
                tree.nodes[each].is_dropped = !is_lead;
            }
        }
    }
}

fn is_dropped(tree: &Tree<'_>, number: usize) -> bool {
    let mut each = number;
    while each != ROOT {
        if tree.nodes[each].is_dropped {
            return true;
        }
        each = tree.nodes[each].parent;
    }
    false
}

fn take_back(tree: &mut Tree<'_>, marks: &Landmarks, root: usize) {
    for each in root..marks.end(root) {
        tree.nodes[each].is_dropped = false;
    }
    tree.drop_marks();
}

/// The characters of text that are left in an element.
pub(crate) fn left(tree: &Tree<'_>, root: usize) -> usize {
    let is_text = |each: &usize| tree.nodes[*each].tag == Tag::Text;
    tree.below(root).filter(is_text).map(|each| tree.nodes[each].text.trim().len()).sum()
}

fn unlinked_left(tree: &Tree<'_>, root: usize) -> usize {
    let mut sum = 0;
    let mut waiting = vec![root];
    while let Some(number) = waiting.pop() {
        let node = &tree.nodes[number];
        if node.tag == Tag::Text {
            sum += node.text.trim().len();
        } else if !node.is_link {
            waiting.extend(tree.children(number));
        }
    }
    sum
}
