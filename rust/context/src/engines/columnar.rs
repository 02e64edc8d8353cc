//! Compacts JSON in tool results: lists of objects with the same keys become `{"columns":[...],"rows":[[...],...]}`,
//! and white space between values is removed. Values are copied byte by byte.

use fairlead_core::json::Kind;

use crate::conversation::{Piece, Role};
use crate::tape::Tape;

use super::{each, is_file, Context, Proposal};

/// Shorter lists would gain nothing.
const ROWS_MIN: usize = 4;

pub(super) fn propose(pieces: &[Piece<'_>], context: &Context<'_>) -> Vec<Proposal> {
    each(pieces, context, |piece| {
        let is_json = piece.role == Role::Tool && !is_file(piece) && piece.text.trim_start().starts_with(['{', '[']);
        if !is_json {
            return None;
        }
        let tape = Tape::read(piece.text.as_bytes()).ok()?;
        let mut out = Vec::with_capacity(piece.text.len());
        write(&tape, 0, &mut out, 0);
        (out.len() < piece.text.len()).then(|| String::from_utf8(out).ok())?
    })
}

/// Values nested deeper are copied unchanged, which limits the recursion.
const DEPTH_MAX: usize = 16;

fn write(tape: &Tape<'_>, index: usize, out: &mut Vec<u8>, depth: usize) {
    let kind = tape.kind(index);
    if depth >= DEPTH_MAX || !matches!(kind, Some(Kind::Array | Kind::Object)) {
        out.extend_from_slice(tape.raw(index));
    } else if kind == Some(Kind::Object) {
        list(out, *b"{}", tape.children(index).step_by(2), |out, key| {
            out.extend_from_slice(tape.raw(key));
            out.push(b':');
            write(tape, key + 1, out, depth + 1);
        });
    } else if let Some(columns) = columns(tape, index) {
        out.extend_from_slice(b"{\"columns\":");
        list(out, *b"[]", columns.into_iter(), |out, key| out.extend_from_slice(tape.raw(key)));
        out.extend_from_slice(b",\"rows\":");
        list(out, *b"[]", tape.elements(index), |out, row| {
            list(out, *b"[]", tape.children(row).skip(1).step_by(2), |out, value| write(tape, value, out, depth + 1));
        });
        out.push(b'}');
    } else {
        list(out, *b"[]", tape.elements(index), |out, element| write(tape, element, out, depth + 1));
    }
}

fn list(
    out: &mut Vec<u8>,
    brackets: [u8; 2],
    items: impl Iterator<Item = usize>,
    mut write: impl FnMut(&mut Vec<u8>, usize),
) {
    out.push(brackets[0]);
    for (at, item) in items.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(brackets[1]);
}

/// The indices of the keys of the first row, if all rows are objects with exactly these keys in this order.
fn columns(tape: &Tape<'_>, list: usize) -> Option<Vec<usize>> {
    let mut rows = tape.elements(list);
    let first = rows.next()?;
    let keys = |row: usize| tape.children(row).step_by(2);
    if tape.kind(first) != Some(Kind::Object) || keys(first).next().is_none() {
        return None;
    }
    let mut count = 1;
    for row in rows {
        let is_alike = tape.kind(row) == Some(Kind::Object)
            && keys(row).map(|key| tape.raw(key)).eq(keys(first).map(|key| tape.raw(key)));
        if !is_alike {
            return None;
        }
        count += 1;
    }
    (count >= ROWS_MIN).then(|| keys(first).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_a_table() {
        let text = r#"[ {"a": 1.50, "b": "x"}, {"a": 2, "b": null}, {"a": 3, "b": [1, 2]}, {"a": 4, "b": {}} ]"#;
        let tape = Tape::read(text.as_bytes()).expect("JSON");
        let mut out = Vec::new();
        write(&tape, 0, &mut out, 0);
        assert_eq!(
            String::from_utf8_lossy(&out),
            r#"{"columns":["a","b"],"rows":[[1.50,"x"],[2,null],[3,[1,2]],[4,{}]]}"#
        );
    }
}
