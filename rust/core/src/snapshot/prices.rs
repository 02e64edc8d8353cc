//! Model prices, by the names that callers and providers use.

use super::document::ModelPrice;
use crate::price::Price;
use std::collections::HashMap;

/// Prices keyed by model name with prefix.
#[derive(Debug, Default)]
pub struct Prices {
    exact: HashMap<String, Price>,
    /// Prices of names with capital letters, keyed in lower case, because a provider may accept another spelling.
    any_case: HashMap<String, Price>,
}

impl Prices {
    pub fn new(entries: Vec<ModelPrice>) -> Self {
        let mut exact: HashMap<String, Price> = HashMap::with_capacity(entries.len());
        let mut any_case: HashMap<String, Price> = HashMap::new();
        for entry in entries {
            if has_capitals(&entry.model) {
                let known = any_case.entry(entry.model.to_ascii_lowercase()).or_insert_with(|| entry.price.clone());
                // If two spellings collide, the higher price is used, so that the cost is never too low.
                if (entry.price.output, entry.price.input) > (known.output, known.input) {
                    known.clone_from(&entry.price);
                }
            }
            exact.insert(entry.model, entry.price);
        }
        Self { exact, any_case }
    }

    /// Returns the price of a model. `model` includes the prefix.
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
