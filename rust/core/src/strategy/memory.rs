//! What a combo remembers from one request to the next. The caller keeps one for each combo, over snapshots, and writes back
//! what came of a request.

/// What a combo remembers from one request to the next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    /// Decisions so far: whose turn it is.
    pub turn: u64,
    /// `strict-random`: the candidates of this round that have not been dealt, by id.
    pub deck: Vec<u64>,
    /// The candidate that served last.
    pub last_good: Option<u64>,
    /// A winner that stays for this many further decisions.
    pub stays: Option<(u64, u32)>,
}

impl Memory {
    /// A candidate has served a request.
    pub fn succeed(&mut self, id: u64) {
        self.last_good = Some(id);
    }

    /// A candidate has failed: what stays with it stays no longer.
    pub fn fail(&mut self, id: u64) {
        if self.last_good == Some(id) {
            self.last_good = None;
        }
        if self.stays.is_some_and(|(staying, _)| staying == id) {
            self.stays = None;
        }
    }
}
