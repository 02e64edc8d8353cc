//! The word lists of the guard. They are in `words/english.txt` and `words/courtesy.txt`, whose comments explain each
//! list and the format.

use std::sync::LazyLock;

/// Words or phrases.
pub(super) type Words = LazyLock<Vec<&'static str>>;
/// Words or phrases, each with its replacement.
pub(super) type Pairs = LazyLock<Vec<(&'static str, &'static str)>>;

const ENGLISH_FILE: &str = include_str!("../../words/english.txt");
const COURTESY_FILE: &str = include_str!("../../words/courtesy.txt");

/// Declares the lists of a file. The name of a list is that of its section in capitals.
macro_rules! lists {
    ($file:ident, words: $($words:ident)*, pairs: $($pairs:ident)*) => {
        $(pub(in crate::guard) static $words: super::Words =
            std::sync::LazyLock::new(|| super::entries(super::$file, stringify!($words)).collect());)*
        $(pub(in crate::guard) static $pairs: super::Pairs =
            std::sync::LazyLock::new(|| super::pairs(super::$file, stringify!($pairs)));)*
        #[cfg(test)]
        pub(super) fn sizes() -> Vec<(&'static str, usize)> {
            vec![$((stringify!($words), $words.len()),)* $((stringify!($pairs), $pairs.len()),)*]
        }
    };
}

pub(super) mod english {
    lists! {
        ENGLISH_FILE,
        words: ENGLISH FOREIGN OPENINGS TELLING TOLD WISHES SERVICES ASKING REQUESTS CLOSINGS PLEAS FOR_ME DEFINITE WHAT
            WHAT_GENERAL QUESTION_WORDS SILENT BOUNDS LEADING NO_PLURAL HOW_TO HOW_TO_DOING OF_YOU JUDGEMENTS WRITINGS
            WRITE DETAILS HEADS_FOR TASKS HEADS_OF TOOLS,
        pairs: CONTRACTIONS TYPED NUMBERS SAME ANYWHERE MEASURES DOERS PARTICIPLES DONE_BY
    }
}

pub(super) mod courtesy {
    lists! {
        COURTESY_FILE,
        words: SILENT OPENINGS CLOSINGS,
        pairs: HOW_TO
    }
}

/// The entries of one list. Empty if the file has no such list, which the tests exclude.
fn entries(file: &'static str, list: &'static str) -> impl Iterator<Item = &'static str> {
    let is_start = move |line: &str| heading(line).is_some_and(|name| name.eq_ignore_ascii_case(list));
    let lines = file.lines().skip_while(move |line| !is_start(line)).skip(1);
    let own = lines.take_while(|line| heading(line).is_none()).filter(|line| !line.starts_with('#'));
    own.flat_map(|line| line.split(',')).map(str::trim).filter(|entry| !entry.is_empty())
}

fn heading(line: &str) -> Option<&str> {
    line.strip_prefix('[')?.strip_suffix(']')
}

fn pairs(file: &'static str, list: &'static str) -> Vec<(&'static str, &'static str)> {
    entries(file, list).filter_map(|entry| entry.split_once(" = ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_of_a_file_is_read_whole() {
        for (file, sizes) in [(ENGLISH_FILE, english::sizes()), (COURTESY_FILE, courtesy::sizes())] {
            let sections: Vec<&str> = file.lines().filter_map(heading).collect();
            assert_eq!(sections.len(), sizes.len(), "one list for each section");
            for (name, size) in sizes {
                assert!(size > 0, "{name} is empty");
                assert_eq!(entries(file, name).count(), size, "{name} has entries without a replacement");
            }
        }
    }
}
