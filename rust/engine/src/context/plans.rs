//! Compression pipelines by the names that callers, keys and combos use, prepared once per snapshot.

use fairlead_context::{engine_ids, Filters, Level, Mode, Plan, Stage};
use fairlead_core::{Compression, Pipeline};
use std::collections::HashMap;
use std::sync::Arc;

/// The prefix by which callers name a single engine.
const ENGINE: &str = "engine:";

/// All pipelines that can be selected by name.
#[derive(Debug, Default)]
pub struct Plans {
    by_name: HashMap<String, Arc<Plan>>,
}

/// A pipeline and its name.
#[derive(Debug, Clone)]
pub struct NamedPlan {
    pub name: String,
    pub plan: Arc<Plan>,
}

impl Plans {
    /// Prepares the modes, the engines and the operator's pipelines. Invalid ones are left out and logged.
    pub fn build(settings: &Compression) -> Self {
        let own = Plan {
            stages: Vec::new(),
            filters: own_filters(settings).map(Arc::new),
            languages: settings.languages.clone().into(),
            keeps_raw: settings.raw_outputs.limit_bytes > 0,
        };
        let with = |stages: Vec<Stage>| Arc::new(Plan { stages, ..own.clone() });
        let rtk = settings.rtk_level.parse::<Level>().ok();
        let mut by_name = HashMap::new();
        for mode in Mode::ALL {
            let level = |id: &str, level: Level| rtk.filter(|_| id == "rtk").unwrap_or(level);
            let stages = mode.engines().iter().filter_map(|(id, usual)| Stage::new(id, level(id, *usual)));
            by_name.insert(mode.name().to_owned(), with(stages.collect()));
        }
        for id in engine_ids() {
            by_name.insert(format!("{ENGINE}{id}"), with(Stage::new(id, Level::default()).into_iter().collect()));
        }
        for pipeline in &settings.pipelines {
            match stages(pipeline) {
                Ok(stages) => drop(by_name.insert(pipeline.name.clone(), with(stages))),
                Err(reason) => tracing::error!(pipeline = %pipeline.name, %reason, "compression pipeline left out"),
            }
        }
        Self { by_name }
    }

    pub fn find(&self, name: &str) -> Option<NamedPlan> {
        self.by_name.get(name).map(|plan| NamedPlan { name: name.to_owned(), plan: Arc::clone(plan) })
    }

    /// The names in order, for the error about an unknown name.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.by_name.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }
}

fn stages(pipeline: &Pipeline) -> Result<Vec<Stage>, String> {
    let stage = |each: &fairlead_core::PipelineStage| {
        let level = each.level.parse().map_err(|()| format!("no level `{}`", each.level))?;
        Stage::new(&each.engine, level).ok_or_else(|| format!("no engine `{}`", each.engine))
    };
    pipeline.stages.iter().map(stage).collect()
}

/// The operator's filters that are valid and trusted.
fn own_filters(settings: &Compression) -> Option<Filters> {
    let mut all = Filters::default();
    for own in &settings.filters {
        match Filters::trusted(&own.toml, &own.sha256) {
            Ok(filters) => all.append(filters),
            Err(reason) => tracing::error!(sha256 = %own.sha256, %reason, "filters of outputs left out"),
        }
    }
    (!all.list().is_empty()).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_core::PipelineStage;

    fn stage(engine: &str, level: &str) -> PipelineStage {
        PipelineStage { engine: engine.into(), level: level.into() }
    }

    #[test]
    fn modes_engines_and_own_pipelines_have_names() {
        let settings = Compression {
            pipelines: vec![
                Pipeline { name: "mine".into(), stages: vec![stage("lite", "standard"), stage("rtk", "minimal")] },
                Pipeline { name: "broken".into(), stages: vec![stage("zip", "standard")] },
            ],
            rtk_level: "aggressive".into(),
            ..Compression::default()
        };
        let plans = Plans::build(&settings);
        let engines = |name: &str| {
            let found = plans.find(name).expect("a plan");
            found.plan.stages.iter().map(|stage| (stage.engine(), stage.level)).collect::<Vec<_>>()
        };
        assert_eq!(engines("mine"), [("lite", Level::Standard), ("rtk", Level::Minimal)]);
        assert_eq!(engines("engine:columnar"), [("columnar", Level::Standard)]);
        assert_eq!(engines("rtk")[0], ("rtk", Level::Aggressive));
        assert!(engines("off").is_empty() && plans.find("broken").is_none() && plans.find("nothing").is_none());
    }

    #[test]
    fn own_filters_need_the_hash_that_was_trusted() {
        let toml = "[[filter]]\nid = \"x\"\ncommands = [\"x\"]\n".to_owned();
        let with = |sha256: String| {
            let filters = vec![fairlead_core::OwnFilters { toml: toml.clone(), sha256 }];
            let plans = Plans::build(&Compression { filters, ..Compression::default() });
            plans.find("rtk").expect("a mode").plan.filters.is_some()
        };
        assert!(with(Filters::hash(&toml)));
        assert!(!with("0".repeat(64)));
    }
}
