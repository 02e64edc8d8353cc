//! Notes that stand where something was left out. A reader, and an engine that comes later, can tell them from text.

/// How every note begins.
const OPENING: &str = "[\u{2026} ";

const AGAIN: &str = " lines as in an earlier result, from: ";

/// The note for lines that were left out.
pub(crate) fn lines_out(count: usize) -> String {
    format!("{OPENING}{count} lines left out]")
}

/// The note for lines that an earlier result of the conversation has, too.
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

/// The note for a whole output that is kept elsewhere.
pub(crate) fn whole_output_note(id: &str) -> String {
    format!("{OPENING}the whole output: GET /api/context/rtk/raw-output/{id}]")
}

/// Whether an engine left something out of this text before.
pub(crate) fn is_in(text: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), OPENING.as_bytes()).is_some()
}

/// Whether lines of this text stand in an earlier one, so that nothing can point to them here.
pub(crate) fn points_back(text: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), AGAIN.as_bytes()).is_some()
}
