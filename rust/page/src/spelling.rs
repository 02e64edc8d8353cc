//! White space, invisible characters, and characters with a meaning in Markdown.

/// Collapses white space, removes it at line ends, and keeps at most one empty line.
pub(crate) fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let line = line.trim();
        if line.is_empty() && (out.is_empty() || out.ends_with("\n\n")) {
            continue;
        }
        let mut is_after_blank = false;
        for c in line.chars() {
            if c != ' ' || !is_after_blank {
                out.push(c);
            }
            is_after_blank = c == ' ';
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out
}

/// Escapes what would be markup.
pub(crate) fn escape(text: &str, out: &mut String) {
    let is_special = |c: char| matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<');
    let mut rest = text;
    while let Some(at) = rest.find(is_special) {
        out.push_str(&rest[..at]);
        out.push('\\');
        out.push_str(&rest[at..=at]);
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}

/// Removes invisible characters, because hidden text is not meant for the reader. Joiners are part of the spelling
/// between letters of many scripts and in emoji, and so are the tags behind a black flag.
pub(crate) fn visible(text: &str) -> String {
    let is_unseen = |c: char| {
        matches!(
            c,
            '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{2064}'
                | '\u{feff}'
                | '\u{ad}'
                | '\u{e0000}'..='\u{e007f}'
        )
    };
    let text = text.trim();
    if !text.contains(is_unseen) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let (mut before, mut is_flag) = (' ', false);
    while let Some(c) = chars.next() {
        let is_kept = match c {
            '\u{200c}' | '\u{200d}' => is_joined(before) && chars.peek().is_some_and(|next| is_joined(*next)),
            '\u{e0020}'..='\u{e007f}' => is_flag,
            c => !is_unseen(c),
        };
        is_flag = c == '\u{1f3f4}' || is_flag && is_kept && matches!(c, '\u{e0020}'..='\u{e007f}');
        if is_kept {
            out.push(c);
            before = c;
        }
    }
    out.trim().to_owned()
}

/// Whether a joiner next to a character can change how the text is written.
fn is_joined(c: char) -> bool {
    !c.is_ascii() && !c.is_whitespace() && !matches!(c, '\u{200b}'..='\u{200f}')
}

#[cfg(test)]
mod tests {
    use super::{tidy, visible};

    #[test]
    fn joiners_stay_where_they_spell_and_go_where_they_hide() {
        for (text, wanted) in [
            ("می\u{200c}خواهم", "می\u{200c}خواهم"),
            ("क्\u{200d}ष", "क्\u{200d}ष"),
            ("👩\u{200d}👧", "👩\u{200d}👧"),
            ("❤\u{fe0f}\u{200d}🔥", "❤\u{fe0f}\u{200d}🔥"),
            ("🏴\u{e0067}\u{e0062}\u{e007f}", "🏴\u{e0067}\u{e0062}\u{e007f}"),
            ("a\u{200b}b\u{e0041}\u{200d}c", "abc"),
            ("می \u{200c}x\u{200c}", "می x"),
            ("co\u{ad}op\u{202e}", "coop"),
        ] {
            assert_eq!(visible(text), wanted, "{text}");
        }
    }

    #[test]
    fn white_space_is_collapsed_to_one_empty_line() {
        assert_eq!(tidy("  a   b \n\n\n\n c \n"), "a b\n\nc");
    }
}
