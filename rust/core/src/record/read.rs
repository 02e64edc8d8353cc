//! Reads the lines of a segment, and separates lines that are not records.

use super::columns::{Column, ColumnKind, LATEST_MS, RECORD_COLUMNS};
use super::quick::read_quickly;
use super::row::{real, FieldOrder, EMPTY, FIRST};
pub use super::row::{FieldValue, Row};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Reads NDJSON. `keep` gets each record, and `reject` each line that is not one. Blank lines are ignored. Fields that
/// are not columns are ignored. If a field is duplicated, the last one counts. A line that lacks a required field or
/// has a field of the wrong type is rejected.
pub fn read_record_lines<'a>(data: &'a [u8], mut keep: impl FnMut(&Row<'a>), mut reject: impl FnMut(&'a [u8])) {
    let mut order = FieldOrder::default();
    let mut row = EMPTY;
    let mut from = 0;
    while from < data.len() {
        let until = memchr::memchr(b'\n', &data[from..]).map_or(data.len(), |at| from + at);
        let line = &data[from..until];
        from = until + 1;
        if is_record(line, &mut order, &mut row) {
            keep(&row);
        } else if !is_blank(line) {
            reject(line);
        }
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| byte.is_ascii_whitespace() || *byte == 0x0b)
}

/// Reads a line into `row`. Returns whether it is a record.
fn is_record<'a>(line: &'a [u8], order: &mut FieldOrder, row: &mut Row<'a>) -> bool {
    let Ok(line) = std::str::from_utf8(line) else {
        return false;
    };
    *row = EMPTY;
    if !read_quickly(line, order, row) {
        *row = EMPTY;
        if !read_any(line, order, row) {
            return false;
        }
    }
    row.iter().zip(&RECORD_COLUMNS).all(|(value, column)| fits(value, column))
}

/// Reads a line with any JSON object. Returns whether it is one.
pub(super) fn read_any<'a>(line: &'a str, order: &mut FieldOrder, row: &mut Row<'a>) -> bool {
    let mut reading = serde_json::Deserializer::from_str(line);
    reading.deserialize_map(Fields { row, order }).is_ok() && reading.end().is_ok()
}

fn fits(value: &FieldValue<'_>, column: &Column) -> bool {
    match (column.kind, value) {
        (_, FieldValue::Null) => !column.is_required,
        (ColumnKind::Text, FieldValue::Text(_))
        | (ColumnKind::Flag, FieldValue::Flag(_))
        | (ColumnKind::Real, FieldValue::Real(_)) => true,
        (ColumnKind::Small, FieldValue::Integer(number)) => i32::try_from(number.unsigned_abs()).is_ok(),
        (ColumnKind::Integer, FieldValue::Integer(number)) => *number != i64::MIN,
        (ColumnKind::Moment, FieldValue::Integer(number)) => (0..=LATEST_MS).contains(number),
        _ => false,
    }
}

struct Fields<'r, 'a> {
    row: &'r mut Row<'a>,
    order: &'r mut FieldOrder,
}

impl<'a> Visitor<'a> for Fields<'_, 'a> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a record")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut before = FIRST;
        while let Some(found) = fields.next_key_seed(Name { expected: self.order.after(before) })? {
            let Some(at) = found else {
                fields.next_value::<IgnoredAny>()?;
                continue;
            };
            self.row[at] = match RECORD_COLUMNS[at].kind {
                ColumnKind::Real => real(fields.next_value::<&RawValue>()?.get()),
                _ => fields.next_value_seed(Any)?,
            };
            self.order.note(before, at);
            before = at;
        }
        Ok(())
    }
}

/// The column of a field name.
struct Name {
    expected: usize,
}

impl<'a> DeserializeSeed<'a> for Name {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'a>>(self, name: D) -> Result<Self::Value, D::Error> {
        name.deserialize_str(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Option<usize>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a field's name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        if RECORD_COLUMNS[self.expected].name == name {
            return Ok(Some(self.expected));
        }
        Ok(RECORD_COLUMNS.iter().position(|column| column.name == name))
    }
}

struct Any;

impl<'a> DeserializeSeed<'a> for Any {
    type Value = FieldValue<'a>;

    fn deserialize<D: Deserializer<'a>>(self, value: D) -> Result<Self::Value, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Any {
    type Value = FieldValue<'a>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(FieldValue::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Self::Value, E> {
        Ok(FieldValue::Flag(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(FieldValue::Integer(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(i64::try_from(number).map_or(FieldValue::Other, FieldValue::Integer))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(FieldValue::Other)
    }

    fn visit_borrowed_str<E: Error>(self, text: &'a str) -> Result<Self::Value, E> {
        Ok(FieldValue::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(FieldValue::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(FieldValue::Other)
    }

    fn visit_map<A: MapAccess<'a>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(FieldValue::Other)
    }
}
