//! The records of a segment as columns that polars and DuckDB use without conversion (the Arrow `PyCapsule` interface).

use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Float64Builder, Int32Builder, Int64Builder, StringViewBuilder,
};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use fairlead_core::{read_record_lines, ColumnKind, FieldValue, RECORD_COLUMNS};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList};
use std::sync::{Arc, LazyLock};

/// Strings are views, the representation of polars.
static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let field = |name: &str, kind, is_required: bool| Field::new(name, data_type(kind), !is_required);
    Arc::new(Schema::new(
        RECORD_COLUMNS.iter().map(|each| field(each.name, each.kind, each.is_required)).collect::<Vec<_>>(),
    ))
});

fn data_type(kind: ColumnKind) -> DataType {
    match kind {
        ColumnKind::Text => DataType::Utf8View,
        ColumnKind::Flag => DataType::Boolean,
        ColumnKind::Small => DataType::Int32,
        ColumnKind::Integer | ColumnKind::Moment => DataType::Int64,
        ColumnKind::Real => DataType::Float64,
    }
}

/// The approximate length of a line. Columns with this capacity need not be moved while they grow.
const LINE_BYTES: usize = 512;

/// The columns of a record: `name`, `is_required`.
#[pyfunction]
pub(crate) fn record_columns(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    RECORD_COLUMNS
        .iter()
        .map(|column| {
            let entry = PyDict::new(py);
            entry.set_item("name", column.name)?;
            entry.set_item("is_required", column.is_required)?;
            Ok(entry)
        })
        .collect()
}

/// Reads the records from the lines of a segment.
#[pyfunction]
pub(crate) fn read_records(py: Python<'_>, data: &[u8]) -> PyResult<PyRecords> {
    py.detach(|| read(data)).map_err(|error| PyValueError::new_err(error.to_string()))
}

#[pyclass(name = "Records", frozen)]
pub(crate) struct PyRecords {
    batch: RecordBatch,
    rejected: Vec<Vec<u8>>,
}

#[pymethods]
impl PyRecords {
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// The lines that are not records.
    #[getter]
    fn rejected<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.rejected.iter().map(|line| PyBytes::new(py, line)))
    }

    /// The interface requires the parameter but allows producers to ignore it.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let reader = RecordBatchIterator::new([Ok(self.batch.clone())], SCHEMA.clone());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }
}

fn read(data: &[u8]) -> Result<PyRecords, ArrowError> {
    let mut columns: Vec<Builder> =
        RECORD_COLUMNS.iter().map(|column| Builder::of(column.kind, data.len() / LINE_BYTES)).collect();
    let mut rejected = Vec::new();
    read_record_lines(
        data,
        |row| {
            for (column, value) in columns.iter_mut().zip(row) {
                column.append(value);
            }
        },
        |line| rejected.push(line.to_vec()),
    );
    let arrays = columns.iter_mut().map(Builder::finish).collect();
    Ok(PyRecords { batch: RecordBatch::try_new(SCHEMA.clone(), arrays)?, rejected })
}

enum Builder {
    Text(StringViewBuilder),
    Flag(BooleanBuilder),
    Small(Int32Builder),
    Integer(Int64Builder),
    Real(Float64Builder),
}

impl Builder {
    fn of(kind: ColumnKind, rows: usize) -> Self {
        match kind {
            ColumnKind::Text => Self::Text(StringViewBuilder::with_capacity(rows)),
            ColumnKind::Flag => Self::Flag(BooleanBuilder::with_capacity(rows)),
            ColumnKind::Small => Self::Small(Int32Builder::with_capacity(rows)),
            ColumnKind::Integer | ColumnKind::Moment => Self::Integer(Int64Builder::with_capacity(rows)),
            ColumnKind::Real => Self::Real(Float64Builder::with_capacity(rows)),
        }
    }

    /// A value of another kind becomes null. The reader has rejected its line.
    fn append(&mut self, value: &FieldValue<'_>) {
        match (self, value) {
            (Self::Text(column), FieldValue::Text(text)) => column.append_value(text),
            (Self::Text(column), _) => column.append_null(),
            (Self::Flag(column), FieldValue::Flag(flag)) => column.append_value(*flag),
            (Self::Flag(column), _) => column.append_null(),
            (Self::Small(column), FieldValue::Integer(number)) => column.append_option(i32::try_from(*number).ok()),
            (Self::Small(column), _) => column.append_null(),
            (Self::Integer(column), FieldValue::Integer(number)) => column.append_value(*number),
            (Self::Integer(column), _) => column.append_null(),
            (Self::Real(column), FieldValue::Real(number)) => column.append_value(*number),
            (Self::Real(column), _) => column.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Text(column) => ArrayBuilder::finish(column),
            Self::Flag(column) => ArrayBuilder::finish(column),
            Self::Small(column) => ArrayBuilder::finish(column),
            Self::Integer(column) => ArrayBuilder::finish(column),
            Self::Real(column) => ArrayBuilder::finish(column),
        }
    }
}
