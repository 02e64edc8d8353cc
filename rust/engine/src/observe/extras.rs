//! Rarely used fields of a record: compression, the cache hold and injected faults.

use crate::clock;
use crate::observe::figures::{CacheHold, CompressionFigures};
use crate::observe::prompt_hashes::PromptHashes;
use crate::observe::settle::PendingRecord;
use crate::route::segments::Segments;
use fairlead_core::{Fault, Usage};

impl PendingRecord {
    pub fn set_compression(&mut self, figures: CompressionFigures) {
        self.extras.get_or_insert_default().compression = Some(figures);
    }

    /// The compression figures; `None` if compression was not attempted.
    pub fn compression(&self) -> Option<&CompressionFigures> {
        self.extras.as_ref()?.compression.as_ref()
    }

    pub fn set_cache_hold(&mut self, hold: CacheHold) {
        self.extras.get_or_insert_default().cache_hold = Some(hold);
    }

    /// The cache hold; `None` if the conversation was not pinned to a target.
    pub(super) fn cache_hold(&self) -> Option<CacheHold> {
        self.extras.as_ref()?.cache_hold
    }

    /// Extends the hold of a conversation whose provider caches its prompt for an hour.
    pub(super) fn prolong_hold(&self, usage: &Usage) {
        if let Some(hold) = self.cache_hold().filter(|_| usage.cache_write_hour > 0) {
            self.shared.affinity.prolong(hold.conversation, clock::monotonic_ms());
        }
    }

    /// Stores the hashes of the prompt. Keys with `noLog` are left out.
    pub fn note_prompt(&mut self, segments: &Segments) {
        let hashes = PromptHashes::of(&self.admission, segments).filter(|_| !self.is_private());
        if hashes.is_some() {
            self.extras.get_or_insert_default().prompt_hashes = hashes;
        }
    }

    pub(super) fn prompt_hashes(&self) -> Option<&PromptHashes> {
        self.extras.as_ref()?.prompt_hashes.as_ref()
    }

    /// Returns the price of a million input tokens minus their price from the provider's cache, in micro-dollars.
    pub(super) fn cache_read_saving(&self) -> Option<u64> {
        self.prompt_hashes()?;
        let active = self.shared.active.load();
        let price = active.snapshot.price(self.billed_model()?)?;
        price.input.checked_sub(price.cached_input?)
    }

    pub fn set_chaos(&mut self, fault: Fault) {
        self.extras.get_or_insert_default().chaos = Some(fault);
    }

    /// The fault that was injected into the call.
    pub fn chaos(&self) -> Option<Fault> {
        self.extras.as_ref()?.chaos
    }

    /// The input cost of the tokens that compression removed, in micro-dollars.
    pub(super) fn compression_saved_usd_micros(&self) -> Option<u64> {
        let figures = self.compression()?;
        let saved = Usage { input: figures.tokens_before.saturating_sub(figures.tokens_after), ..Usage::default() };
        let model = self.priced_model.as_deref().or(self.model.as_deref())?;
        Some(self.shared.active.load().snapshot.price(model)?.cost(&saved).usd_micros())
    }
}
