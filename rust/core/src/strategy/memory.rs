//! The state of a combo's strategy between requests. The caller stores one per combo across snapshots and reports the
//! outcome of each request to it.

/// The state of a combo's strategy between requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    /// The number of decisions so far, for round-robin.
    pub turn: u64,
    /// `strict-random`: the ids of the candidates that have had no turn in this round.
    pub deck: Vec<u64>,
    /// The candidate that served last.
    pub last_good: Option<u64>,
    /// The candidate that stays first, and the number of decisions for which it does.
    pub stays: Option<(u64, u32)>,
}

impl Memory {
    /// Records that a candidate has served a request.
    pub fn succeed(&mut self, id: u64) {
        self.last_good = Some(id);
    }

    /// Records that a candidate has failed. It no longer stays first.
    pub fn fail(&mut self, id: u64) {
        if self.last_good == Some(id) {
            self.last_good = None;
        }
        if self.stays.is_some_and(|(staying, _)| staying == id) {
            self.stays = None;
        }
    }
}
