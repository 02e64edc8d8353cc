//! The values of one line of the spool, and the order of its fields.

use super::columns::RECORD_COLUMNS;
use std::borrow::Cow;

/// Integers up to this value are exact as floating-point numbers.
const EXACT_MAX: u64 = 1 << 53;

/// A field value in a line.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldValue<'a> {
    Null,
    Text(Cow<'a, str>),
    Flag(bool),
    Integer(i64),
    Real(f64),
    /// A value that no column accepts.
    Other,
}

/// The values of a line, one for each of [`RECORD_COLUMNS`].
pub type Row<'a> = [FieldValue<'a>; RECORD_COLUMNS.len()];

pub(super) const EMPTY: Row<'static> = [const { FieldValue::Null }; RECORD_COLUMNS.len()];

/// For each column, the column whose field followed it in the previous line. The last entry is the first field. A
/// writer uses one order, so the reader tries this column first.
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

/// Parses a number. `serde_json` rounds some numbers to the neighbour of the nearest value.
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
