//! Tables as grids: a cell that spans rows or columns fills all of its places.

use crate::tag::Tag;
use crate::tree::Tree;

/// Spans add at most about this many cells to a table.
const FILLED_CELLS_MAX: usize = 10_000;
const SPAN_MAX: usize = 1_000;

/// The grid of a table: for each row the numbers of its cells, without nested tables. `None` is a place without a cell.
pub(crate) struct Grid {
    pub(crate) rows: Vec<Vec<Option<usize>>>,
}

impl Grid {
    pub(crate) fn of(tree: &Tree<'_>, table: usize) -> Grid {
        let rows = rows(tree, table);
        let count: usize = rows.iter().map(Vec::len).sum();
        let mut room = FILLED_CELLS_MAX + 3 * count;
        let mut grid = Grid { rows: vec![Vec::new(); rows.len()] };
        for (at_row, cells) in rows.iter().enumerate() {
            let mut column = 0;
            for cell in cells {
                while grid.rows[at_row].get(column).is_some_and(Option::is_some) {
                    column += 1;
                }
                let width = span(tree, *cell, "colspan").clamp(1, SPAN_MAX);
                // A span of 0 rows reaches to the end of the table.
                let height = match span(tree, *cell, "rowspan") {
                    0 => rows.len(),
                    some => some,
                };
                let to = (at_row + height).min(rows.len());
                let is_filled = (to - at_row) * width <= room + 1;
                let (to, width) = if is_filled { (to, width) } else { (at_row + 1, 1) };
                for row in &mut grid.rows[at_row..to] {
                    if row.len() < column + width {
                        row.resize(column + width, None);
                    }
                    // If spans overlap, the first cell counts.
                    row[column..column + width].iter_mut().filter(|place| place.is_none()).for_each(|place| {
                        *place = Some(*cell);
                    });
                }
                room = room.saturating_sub((to - at_row) * width - 1);
                column += width;
            }
        }
        grid
    }

    /// The number of columns if shorter rows are filled up with empty cells, unless a row with many cells would add too
    /// many cells to the others.
    pub(crate) fn width(&self) -> Option<usize> {
        let width = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let count: usize = self.rows.iter().map(Vec::len).sum();
        (self.rows.len().saturating_mul(width) <= FILLED_CELLS_MAX + 4 * count).then_some(width)
    }
}

fn span(tree: &Tree<'_>, cell: usize, name: &str) -> usize {
    let Some(value) = tree.attribute(cell, name) else { return 1 };
    let digits: &str = value.trim_start();
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().unwrap_or(1)
}

/// The cells of the rows of a table, without nested tables.
fn rows(tree: &Tree<'_>, table: usize) -> Vec<Vec<usize>> {
    let mut found = Vec::new();
    let mut row = |number: usize| {
        let cells: Vec<usize> =
            tree.children(number).filter(|cell| matches!(tree.nodes[*cell].tag, Tag::Td | Tag::Th)).collect();
        if !cells.is_empty() {
            found.push(cells);
        }
    };
    for part in tree.children(table) {
        match tree.nodes[part].tag {
            Tag::RowGroup => {
                tree.children(part).filter(|each| tree.nodes[*each].tag == Tag::Tr).for_each(&mut row);
            }
            Tag::Tr => row(part),
            _ => {}
        }
    }
    found
}

/// Whether a table arranges parts of a page, and holds no data.
pub(crate) fn is_layout(tree: &Tree<'_>, table: usize) -> bool {
    /// A cell with more characters is a text and not a value.
    const TEXT_MIN: usize = 600;
    if matches!(tree.attribute(table, "role").as_deref(), Some("presentation" | "none")) {
        return true;
    }
    let (mut cells, mut has_head, mut has_blocks) = (0, false, false);
    for each in tree.below(table) {
        match tree.nodes[each].tag {
            Tag::Table | Tag::Section | Tag::Article | Tag::H(1..=3) => return true,
            Tag::Td | Tag::Th if tree.nodes[each].size > TEXT_MIN => has_blocks = true,
            Tag::Pre => has_blocks = true,
            _ => {}
        }
        cells += usize::from(matches!(tree.nodes[each].tag, Tag::Td | Tag::Th));
        has_head |= matches!(tree.nodes[each].tag, Tag::Th);
    }
    !has_head && (has_blocks || cells < 2)
}

/// The caption of a table.
pub(crate) fn caption(tree: &Tree<'_>, table: usize) -> Option<usize> {
    tree.children(table).find(|each| tree.nodes[*each].tag == Tag::Caption)
}

#[cfg(test)]
mod tests {
    use super::Grid;
    use crate::reader::read;
    use crate::visible::Sight;

    fn grid(html: &str) -> Vec<Vec<String>> {
        let (tree, _) = read(html, Sight::Shown);
        let place = |place: &Option<usize>| place.map_or(String::new(), |cell| tree.line(cell));
        Grid::of(&tree, 1).rows.iter().map(|row| row.iter().map(place).collect()).collect()
    }

    #[test]
    fn a_span_fills_all_of_its_places() {
        let html = "<table><thead><tr><th rowspan=\"2\">Boat</th><th colspan=\"2\">Races</th></tr><tr><th>a</th>\
                    <th>b</th></tr></thead><tbody><tr><td>Heron</td><td colspan=\"2\">7</td></tr></tbody></table>";
        assert_eq!(grid(html), [["Boat", "Races", "Races"], ["Boat", "a", "b"], ["Heron", "7", "7"]]);
    }

    #[test]
    fn a_span_of_no_rows_reaches_to_the_end_and_rows_that_are_not_there_are_not_made() {
        let html = "<table><tr><td rowspan=\"0\">x</td><td>1</td></tr><tr><td rowspan=\"9\">2</td></tr></table>";
        assert_eq!(grid(html), [["x", "1"], ["x", "2"]]);
    }

    #[test]
    fn large_spans_are_bounded() {
        let cell = "<td colspan=\"1000\" rowspan=\"65534\">x</td>".repeat(50);
        let html = format!("<table>{}</table>", format!("<tr>{cell}</tr>").repeat(200));
        assert!(grid(&html).iter().map(Vec::len).sum::<usize>() < 100_000);
    }
}
