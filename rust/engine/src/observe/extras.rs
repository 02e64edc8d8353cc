//! What few requests have in their record: how the conversation was made shorter, where it was held, the fault that was injected.

use crate::clock;
use crate::observe::figures::{CacheHold, CompressionFigures};
use crate::observe::settle::Open;
use fairlead_core::{Fault, Usage};

impl Open {
    pub fn set_compression(&mut self, figures: CompressionFigures) {
        self.extras.get_or_insert_default().compression = Some(figures);
    }

    /// The figures of how the conversation was made shorter; `None` where nothing was tried.
    pub fn compression(&self) -> Option<&CompressionFigures> {
        self.extras.as_ref()?.compression.as_ref()
    }

    pub fn set_cache_hold(&mut self, hold: CacheHold) {
        self.extras.get_or_insert_default().cache_hold = Some(hold);
    }

    /// `None` where no conversation was to be held.
    pub(super) fn cache_hold(&self) -> Option<CacheHold> {
        self.extras.as_ref()?.cache_hold
    }

    /// A provider that keeps the conversation for an hour is worth going back to for as long.
    pub(super) fn prolong_hold(&self, usage: &Usage) {
        if let Some(hold) = self.cache_hold().filter(|_| usage.cache_write_hour > 0) {
            self.shared.affinity.prolong(hold.conversation, clock::monotonic_ms());
        }
    }

    pub fn set_chaos(&mut self, fault: Fault) {
        self.extras.get_or_insert_default().chaos = Some(fault);
    }

    /// The fault that the call was given on purpose.
    pub fn chaos(&self) -> Option<Fault> {
        self.extras.as_ref()?.chaos
    }

    /// What the tokens that were left out would have cost as input, micro-dollars.
    pub(super) fn compression_saved_usd_micros(&self) -> Option<u64> {
        let figures = self.compression()?;
        let saved = Usage { input: figures.tokens_before.saturating_sub(figures.tokens_after), ..Usage::default() };
        let model = self.priced_model.as_deref().or(self.model.as_deref())?;
        Some(self.shared.live.load().snapshot.price(model)?.cost(&saved).usd_micros())
    }
}
