//! Lines of a segment read back, and which lines are no records.

use super::columns::{Column, Kind, COLUMNS, LATEST_MS};
use super::quick::read_quickly;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// A field as a line tells it.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    Null,
    Text(Cow<'a, str>),
    Flag(bool),
    Whole(i64),
    Real(f64),
    /// What no column takes.
    Other,
}

/// The values of a line, one for each of [`COLUMNS`].
pub type Row<'a> = [Value<'a>; COLUMNS.len()];

pub(super) const EMPTY: Row<'static> = [const { Value::Null }; COLUMNS.len()];

/// Whole numbers up to here are told exactly by a real one.
const EXACT_MAX: u64 = 1 << 53;

/// Reads NDJSON: `keep` gets each record, `reject` each line that is none. Blank lines are nothing. A field that is no
/// column is left out; of a field that is told twice the later counts; a line that lacks a field or has one of another
/// type is rejected.
pub fn read_lines<'a>(data: &'a [u8], mut keep: impl FnMut(&Row<'a>), mut reject: impl FnMut(&'a [u8])) {
    let mut order = Order::default();
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

/// Reads a line into `row`, and says whether it is a record.
fn is_record<'a>(line: &'a [u8], order: &mut Order, row: &mut Row<'a>) -> bool {
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
    row.iter().zip(&COLUMNS).all(|(value, column)| fits(value, column))
}

/// Reads a line of any JSON object; whether it is one.
pub(super) fn read_any<'a>(line: &'a str, order: &mut Order, row: &mut Row<'a>) -> bool {
    let mut reading = serde_json::Deserializer::from_str(line);
    reading.deserialize_map(Fields { row, order }).is_ok() && reading.end().is_ok()
}

fn fits(value: &Value<'_>, column: &Column) -> bool {
    match (column.kind, value) {
        (_, Value::Null) => !column.is_required,
        (Kind::Text, Value::Text(_)) | (Kind::Flag, Value::Flag(_)) | (Kind::Real, Value::Real(_)) => true,
        (Kind::Small, Value::Whole(number)) => i32::try_from(number.unsigned_abs()).is_ok(),
        (Kind::Whole, Value::Whole(number)) => *number != i64::MIN,
        (Kind::Moment, Value::Whole(number)) => (0..=LATEST_MS).contains(number),
        _ => false,
    }
}

/// Which column's field came after each one's, and first (the last entry): a writer tells its fields in one order, so
/// what came next in the line before is looked for first.
pub(super) struct Order([usize; COLUMNS.len() + 1]);

pub(super) const FIRST: usize = COLUMNS.len();

impl Default for Order {
    fn default() -> Self {
        Self([0; COLUMNS.len() + 1])
    }
}

impl Order {
    pub(super) fn after(&self, before: usize) -> usize {
        self.0[before]
    }

    pub(super) fn note(&mut self, before: usize, at: usize) {
        self.0[before] = at;
    }
}

struct Fields<'r, 'a> {
    row: &'r mut Row<'a>,
    order: &'r mut Order,
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
            self.row[at] = match COLUMNS[at].kind {
                Kind::Real => real(fields.next_value::<&RawValue>()?.get()),
                _ => fields.next_value_seed(Any)?,
            };
            self.order.note(before, at);
            before = at;
        }
        Ok(())
    }
}

/// A number as it is written: `serde_json` reads some to the neighbour of the nearest.
pub(super) fn real<'a>(text: &str) -> Value<'a> {
    if text == "null" {
        return Value::Null;
    }
    if let Ok(whole) = text.parse::<i128>() {
        if u64::try_from(whole.unsigned_abs()).is_ok_and(|size| size > EXACT_MAX) {
            return Value::Other;
        }
    } else if !text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return Value::Other;
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Value::Real(number),
        _ => Value::Other,
    }
}

/// Which column a field is.
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
        if COLUMNS[self.expected].name == name {
            return Ok(Some(self.expected));
        }
        Ok(COLUMNS.iter().position(|column| column.name == name))
    }
}

struct Any;

impl<'a> DeserializeSeed<'a> for Any {
    type Value = Value<'a>;

    fn deserialize<D: Deserializer<'a>>(self, value: D) -> Result<Self::Value, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Any {
    type Value = Value<'a>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Self::Value, E> {
        Ok(Value::Flag(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Value::Whole(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(i64::try_from(number).map_or(Value::Other, Value::Whole))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Value::Other)
    }

    fn visit_borrowed_str<E: Error>(self, text: &'a str) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Other)
    }

    fn visit_map<A: MapAccess<'a>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Other)
    }
}
