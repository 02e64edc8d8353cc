//! Compression for the management plane: previews, and lists of the engines, packs and filters.

use fairlead_context::{built_in_filters, engine_ids, packs, preview, Filters, Level, Mode, Plan, Stage};
use fairlead_core::{Dialect, OwnFilters, PipelineStage};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Deserialize;
use serde_json::{json, Value};
use std::sync::Arc;
use std::time::Instant;

/// A plan as the management plane sends it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PlanDocument {
    stages: Vec<PipelineStage>,
    languages: Vec<String>,
    filters: Vec<OwnFilters>,
}

impl PlanDocument {
    fn plan(&self) -> Result<Plan, String> {
        let stage = |each: &PipelineStage| {
            let level: Level = each.level.parse().map_err(|()| format!("there is no level `{}`", each.level))?;
            Stage::new(&each.engine, level).ok_or_else(|| format!("there is no engine `{}`", each.engine))
        };
        let mut filters = Filters::default();
        for own in &self.filters {
            filters.append(Filters::trusted(&own.toml, &own.sha256).map_err(|error| error.to_string())?);
        }
        Ok(Plan {
            stages: self.stages.iter().map(stage).collect::<Result<_, _>>()?,
            filters: (!filters.list().is_empty()).then(|| Arc::new(filters)),
            languages: self.languages.clone().into(),
            keeps_raw: false,
        })
    }
}

/// The result of a plan (JSON) for a body of a dialect, as JSON. Takes milliseconds for 100 KB, without holding the
/// GIL.
#[pyfunction]
pub(crate) fn preview_context<'py>(
    py: Python<'py>,
    dialect: &str,
    body: Vec<u8>,
    plan: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let dialect: Dialect = serde_json::from_value(Value::from(dialect))
        .map_err(|_| PyValueError::new_err(format!("there is no dialect `{dialect}`")))?;
    let document: PlanDocument =
        serde_json::from_slice(plan).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let plan = document.plan().map_err(PyValueError::new_err)?;
    let shown = py.detach(move || {
        let mut at = Instant::now();
        let shown = preview(dialect, &body, &plan, || {
            let now = Instant::now();
            let lap = now.duration_since(std::mem::replace(&mut at, now));
            u64::try_from(lap.as_micros()).unwrap_or(u64::MAX)
        });
        serde_json::to_vec(&shown)
    });
    let shown = shown.map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(PyBytes::new(py, &shown))
}

/// The modes, engines, levels, packs with their rules, and built-in filters, as JSON.
#[pyfunction]
pub(crate) fn context_catalogue(py: Python<'_>) -> Bound<'_, PyBytes> {
    let modes: Vec<Value> = Mode::ALL
        .iter()
        .map(|mode| {
            let stages = mode.engines().iter().map(|(id, level)| json!({"engine": id, "level": level.name()}));
            json!({"mode": mode.name(), "stages": stages.collect::<Vec<_>>()})
        })
        .collect();
    let packs: Vec<Value> = packs()
        .iter()
        .map(|pack| {
            let mut rules: Vec<(String, &str)> = pack.rules().collect();
            rules.sort();
            let rules: Vec<Value> =
                rules.iter().map(|(phrase, becomes)| json!({"phrase": phrase, "replacement": becomes})).collect();
            json!({"language": pack.language, "coverage": pack.coverage, "rules": rules})
        })
        .collect();
    let catalogue = json!({
        "modes": modes,
        "engines": engine_ids().collect::<Vec<_>>(),
        "levels": Level::ALL.map(Level::name),
        "packs": packs,
        "filters": shown(built_in_filters()),
    });
    PyBytes::new(py, catalogue.to_string().as_bytes())
}

/// The filters in a TOML text and its SHA-256, as JSON. Raises `ValueError` with the reason if the text is invalid.
#[pyfunction]
pub(crate) fn read_output_filters<'py>(py: Python<'py>, toml: &str) -> PyResult<Bound<'py, PyBytes>> {
    let sha256 = Filters::hash(toml);
    let filters = Filters::trusted(toml, &sha256).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let listing = json!({"sha256": sha256, "filters": shown(&filters)});
    Ok(PyBytes::new(py, listing.to_string().as_bytes()))
}

fn shown(filters: &Filters) -> Vec<Value> {
    let shown = |filter: &fairlead_context::Filter| json!({"id": filter.id, "commands": filter.commands});
    filters.list().iter().map(shown).collect()
}
