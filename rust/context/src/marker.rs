//! The notes in place of removed text. Readers and later engines can distinguish them from text.

/// The beginning of every note.
const OPENING: &str = "[\u{2026} ";

const AGAIN: &str = " lines as in an earlier result, from: ";

/// The note for removed lines.
pub(crate) fn lines_out(count: usize) -> String {
    format!("{OPENING}{count} lines left out]")
}

/// The note for lines that an earlier result also has.
pub(crate) fn lines_again(count: usize, first: &str) -> String {
    let first: String = first.trim().chars().take(48).collect();
    format!("{OPENING}{count}{AGAIN}{first}]")
}

/// The note for a whole text that was sent before.
pub(crate) fn text_again() -> String {
    format!("{OPENING}the text of an earlier message again]")
}

/// The note for data that no model reads as text.
pub(crate) fn data_out(bytes: usize) -> String {
    format!("[{bytes}_bytes_left_out]")
}

/// The note for an original output that is stored elsewhere.
pub(crate) fn full_output_note(id: &str) -> String {
    format!("{OPENING}the whole output: GET /api/context/rtk/raw-output/{id}]")
}

/// Whether an engine already removed something from this text.
pub(crate) fn is_in(text: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), OPENING.as_bytes()).is_some()
}

/// Whether this text refers to lines of an earlier one, so that nothing can refer to it for these lines.
pub(crate) fn points_back(text: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), AGAIN.as_bytes()).is_some()
}
