//! Writes tables as Markdown.

use crate::grid::{caption, is_layout, Grid};
use crate::markdown::Writer;

impl Writer<'_, '_> {
    /// A table of data, or the blocks of a table that arranges parts of the page.
    pub(crate) fn table(&self, number: usize, out: &mut Vec<String>) {
        if is_layout(self.tree, number) {
            out.append(&mut self.blocks(number));
            return;
        }
        if let Some(caption) = caption(self.tree, number) {
            out.append(&mut self.blocks(caption));
        }
        let grid = Grid::of(self.tree, number);
        let filled = grid.width();
        let widest = grid.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut text = String::new();
        for (at_row, row) in grid.rows.iter().enumerate() {
            let width = filled.unwrap_or(if at_row == 0 { widest } else { row.len() });
            text.push_str(if at_row > 0 { "\n|" } else { "|" });
            // A cell that fills several places is written once.
            let mut last = (None, String::new());
            for at in 0..width {
                let place = row.get(at).copied().flatten();
                if place != last.0 || place.is_none() {
                    last = (place, place.map_or(String::new(), |cell| self.cell(cell)));
                }
                text.push(' ');
                text.push_str(&last.1);
                text.push_str(" |");
            }
            if at_row == 0 {
                text.push_str("\n|");
                text.push_str(&" --- |".repeat(width));
            }
        }
        if !text.is_empty() {
            out.push(text);
        }
    }

    /// The text of a cell. `<br>` divides its paragraphs and lines.
    fn cell(&self, number: usize) -> String {
        if !self.holds_block(number) {
            return self.one_line(number).replace('|', "\\|");
        }
        let blocks = self.blocks(number);
        let lines = blocks.iter().flat_map(|block| block.lines()).map(without_mark).filter(|line| !line.is_empty());
        lines.collect::<Vec<_>>().join("<br>").replace('|', "\\|")
    }
}

/// A line of a cell: no block begins there, so its mark needs no backslash, and a fence is left out.
fn without_mark(line: &str) -> &str {
    let line = line.trim();
    if line.starts_with("```") {
        return "";
    }
    line.strip_prefix('\\').filter(|rest| rest.starts_with(['#', '-', '+', '>']) || is_number(rest)).unwrap_or(line)
}

fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}
