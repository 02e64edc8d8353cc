//! What models cost, by the names that callers and providers give them.

use super::document::ModelPrice;
use crate::price::Price;
use std::collections::HashMap;

/// Prices by model, with its prefix.
#[derive(Debug, Default)]
pub struct Prices {
    exact: HashMap<String, Price>,
    /// Of names with capitals, by the same in lower case: a provider may take another spelling all the same.
    any_case: HashMap<String, Price>,
}

impl Prices {
    pub fn new(entries: Vec<ModelPrice>) -> Self {
        let mut exact: HashMap<String, Price> = HashMap::with_capacity(entries.len());
        let mut any_case: HashMap<String, Price> = HashMap::new();
        for entry in entries {
            if has_capitals(&entry.model) {
                let known = any_case.entry(entry.model.to_ascii_lowercase()).or_insert_with(|| entry.price.clone());
                // Which of two was meant is unknown: the dearer one is never too little.
                if (entry.price.output, entry.price.input) > (known.output, known.input) {
                    known.clone_from(&entry.price);
                }
            }
            exact.insert(entry.model, entry.price);
        }
        Self { exact, any_case }
    }

    /// `model` with its prefix.
    pub fn get(&self, model: &str) -> Option<&Price> {
        self.exact.get(model).or_else(|| {
            if self.any_case.is_empty() && !has_capitals(model) {
                return None;
            }
            let lower = model.to_ascii_lowercase();
            self.exact.get(&lower).or_else(|| self.any_case.get(&lower))
        })
    }
}

fn has_capitals(name: &str) -> bool {
    name.bytes().any(|byte| byte.is_ascii_uppercase())
}
