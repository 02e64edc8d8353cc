//! Flattens pages with extreme nesting. The HTML parsing algorithm searches all open elements at each tag, so a page of
//! a hundred thousand nested elements takes seconds. Tags that are nested deeper than in any real page are removed.

use std::borrow::Cow;

use memchr::{memchr, memmem};

/// Deeper tags are removed.
const OPEN_MAX: usize = 512;

/// The page without tags nested deeper than `OPEN_MAX`; borrowed if there are none. Text in scripts, styles and
/// comments is not searched for tags. Elements that do not nest, such as `<p>` and `<li>`, are not counted.
pub fn flattened(html: &str) -> Cow<'_, str> {
    let bytes = html.as_bytes();
    let mut out: Option<String> = None;
    let (mut kept_to, mut at, mut open, mut foreign) = (0, 0, 0usize, 0usize);
    while let Some(found) = memchr(b'<', &bytes[at..]) {
        let start = at + found;
        let rest = &bytes[start + 1..];
        let is_end = rest.first() == Some(&b'/');
        let name_at = start + 1 + usize::from(is_end);
        if rest.starts_with(b"!--") {
            at = end_of_comment(bytes, start + 4);
            continue;
        }
        if !bytes.get(name_at).is_some_and(u8::is_ascii_alphabetic) {
            at = start + 1;
            continue;
        }
        let name_to = bytes[name_at..]
            .iter()
            .position(|b| b.is_ascii_whitespace() || matches!(b, b'/' | b'>'))
            .map_or(bytes.len(), |length| name_at + length);
        let end = end_of_tag(bytes, name_to);
        let name = Name::of(&bytes[name_at..name_to]);
        let is_closed = bytes[..end].ends_with(b"/>");
        at = end;
        let mut is_kept = true;
        match name {
            Name::Flat => {}
            Name::Foreign | Name::Raw | Name::Other if is_end => {
                foreign = foreign.saturating_sub(usize::from(name == Name::Foreign));
                open = open.saturating_sub(1);
                is_kept = open < OPEN_MAX;
            }
            // The content of the element is text, except within SVG and MathML.
            Name::Raw if foreign == 0 => {
                at = end_of_raw(bytes, end, &bytes[name_at..name_to]);
            }
            _ if is_closed && (foreign > 0 || name == Name::Foreign) => {}
            _ => {
                foreign += usize::from(name == Name::Foreign);
                open += 1;
                is_kept = open <= OPEN_MAX;
            }
        }
        if !is_kept {
            let out = out.get_or_insert_with(|| String::with_capacity(html.len()));
            out.push_str(&html[kept_to..start]);
            kept_to = end;
        }
    }
    match out {
        None => Cow::Borrowed(html),
        Some(mut out) => {
            out.push_str(&html[kept_to..]);
            Cow::Owned(out)
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    /// Has no end tag, or is closed implicitly.
    Flat,
    Raw,
    Foreign,
    Other,
}

impl Name {
    fn of(name: &[u8]) -> Name {
        let mut lower = [0u8; 10];
        let Some(lower) = lower.get_mut(..name.len()) else { return Name::Other };
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        match &*lower {
            b"area" | b"base" | b"br" | b"col" | b"embed" | b"hr" | b"img" | b"input" | b"link" | b"meta"
            | b"source" | b"track" | b"wbr" | b"p" | b"li" | b"td" | b"th" | b"tr" | b"option" | b"dt" | b"dd" => {
                Name::Flat
            }
            b"script" | b"style" | b"textarea" | b"title" | b"xmp" | b"iframe" | b"noembed" | b"noframes" => Name::Raw,
            b"svg" | b"math" => Name::Foreign,
            _ => Name::Other,
        }
    }
}

/// The offset after a tag. As in the standard, quotes count only where a value begins.
fn end_of_tag(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    let mut is_value = false;
    while at < bytes.len() {
        match bytes[at] {
            b'>' => return at + 1,
            b'=' => is_value = true,
            quote @ (b'"' | b'\'') if is_value => {
                at += 1 + memchr(quote, &bytes[at + 1..]).unwrap_or(bytes.len() - at - 1);
                is_value = false;
            }
            b if b.is_ascii_whitespace() => {}
            _ => is_value = false,
        }
        at += 1;
    }
    bytes.len()
}

/// The offset after a comment whose text begins at `from`. `<!-->` and `<!--->` are complete comments.
fn end_of_comment(bytes: &[u8], from: usize) -> usize {
    let rest = &bytes[from..];
    if rest.starts_with(b">") {
        return from + 1;
    }
    if rest.starts_with(b"->") {
        return from + 2;
    }
    let mut at = from;
    while let Some(found) = memmem::find(&bytes[at..], b"--") {
        at += found + 2;
        let after = &bytes[at..];
        if after.starts_with(b">") {
            return at + 1;
        }
        if after.starts_with(b"!>") {
            return at + 2;
        }
        // The next pair may begin with the second of these characters.
        at -= 1;
    }
    bytes.len()
}

/// The offset after `</name` of a raw text element. Its `>` is found by the next search.
fn end_of_raw(bytes: &[u8], from: usize, name: &[u8]) -> usize {
    for at in memmem::find_iter(&bytes[from..], b"</") {
        let after = &bytes[from + at + 2..];
        let is_same = after.len() > name.len() && after[..name.len()].eq_ignore_ascii_case(name);
        if is_same && (after[name.len()].is_ascii_whitespace() || matches!(after[name.len()], b'/' | b'>')) {
            return from + at + 2 + name.len();
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::{flattened, OPEN_MAX};
    use crate::growth;

    fn opened(html: &str) -> usize {
        flattened(html).matches("<div>").count()
    }

    #[test]
    fn markup_in_scripts_styles_and_comments_nests_nothing() {
        let much = "<div>".repeat(2000);
        for (before, after) in [
            ("<script>", "</script>"),
            ("<SCRIPT type=\"a>b\">", "</Script >"),
            ("<style>", "</style>"),
            ("<!-- ", " -->"),
            ("<p title='", "'>"),
            ("<textarea>", "</textarea>"),
        ] {
            let html = format!("{before}{much}{after}<div>text</div>");
            assert_eq!(flattened(&html), html, "{before}");
        }
    }

    #[test]
    fn what_nests_too_deep_is_left_out_whatever_hides_it() {
        let much = format!("{}x{}", "<div>".repeat(2000), "</div>".repeat(2000));
        assert_eq!(opened(&much), OPEN_MAX);
        for before in
            ["<a title=\"><script>\">", "<a \"><script>", "<!-->", "<!--->", "<svg><style>", "<!-- --!>", "< script>"]
        {
            let found = opened(&format!("{before}{much}"));
            // If an earlier tag opens a script for the parser too, that script hides everything.
            assert!(found <= OPEN_MAX || before == "<a \"><script>", "{before} {found}");
        }
        assert!(flattened(&much).ends_with("</div>") && flattened(&much).contains('x'));
    }

    #[test]
    fn it_is_linear() {
        for part in [
            "<script>",
            "<!-",
            "<!--",
            "<div",
            "<a b=\"",
            "</",
            "<svg><style>",
            "<!-- --!>",
            "<!-- --!",
            "<title></",
            "--",
        ] {
            growth::check(part, |times| {
                flattened(&part.repeat(20_000 * times));
            });
        }
    }
}
