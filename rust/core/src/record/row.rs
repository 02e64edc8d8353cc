//! The values of one line of the spool, and the order in which its writer tells them.

use super::columns::RECORD_COLUMNS;
use std::borrow::Cow;

/// Whole numbers up to here are told exactly by a real one.
const EXACT_MAX: u64 = 1 << 53;

/// A field as a line tells it.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldValue<'a> {
    Null,
    Text(Cow<'a, str>),
    Flag(bool),
    Whole(i64),
    Real(f64),
    /// A value that no column takes.
    Other,
}

/// The values of a line, one for each of [`RECORD_COLUMNS`].
pub type Row<'a> = [FieldValue<'a>; RECORD_COLUMNS.len()];

pub(super) const EMPTY: Row<'static> = [const { FieldValue::Null }; RECORD_COLUMNS.len()];

/// Which column's field came after each one's, and first (the last entry): a writer tells its fields in one order, so
/// what came next in the line before is looked for first.
pub(super) struct FieldOrder([usize; RECORD_COLUMNS.len() + 1]);

pub(super) const FIRST: usize = RECORD_COLUMNS.len();

impl Default for FieldOrder {
    fn default() -> Self {
        Self([0; RECORD_COLUMNS.len() + 1])
    }
}

impl FieldOrder {
    pub(super) fn after(&self, before: usize) -> usize {
        self.0[before]
    }

    pub(super) fn note(&mut self, before: usize, at: usize) {
        self.0[before] = at;
    }
}

/// A number as it is written: `serde_json` reads some to the neighbour of the nearest.
pub(super) fn real<'a>(text: &str) -> FieldValue<'a> {
    if text == "null" {
        return FieldValue::Null;
    }
    if let Ok(whole) = text.parse::<i128>() {
        if u64::try_from(whole.unsigned_abs()).is_ok_and(|size| size > EXACT_MAX) {
            return FieldValue::Other;
        }
    } else if !text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return FieldValue::Other;
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => FieldValue::Real(number),
        _ => FieldValue::Other,
    }
}
