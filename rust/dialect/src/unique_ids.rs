//! Makes the ids of tool calls unique in a request, because Claude rejects an id that comes twice. Some models number
//! the calls of each answer from 0, so a long conversation repeats their ids.

use std::collections::{HashMap, VecDeque};

use crate::model::{Content, Request};
use crate::text::Text;

/// Renames calls whose id came before, and their results. Results answer the calls with their id in order.
pub(crate) fn make_unique(request: &mut Request<'_>) {
    let calls =
        request.turns.iter().flat_map(|turn| &turn.parts).filter(|part| matches!(part.content, Content::Call(_)));
    if calls.count() < 2 {
        return;
    }
    let mut seen: HashMap<String, usize> = HashMap::new();
    // The new ids of calls without a result, by their own id.
    let mut open: HashMap<String, VecDeque<Option<String>>> = HashMap::new();
    for part in request.turns.iter_mut().flat_map(|turn| &mut turn.parts) {
        match &mut part.content {
            Content::Call(call) => {
                let own = call.id.decode().into_owned();
                let count = seen.entry(own.clone()).or_default();
                *count += 1;
                let renamed = (*count > 1).then(|| format!("{own}_{count}"));
                if let Some(renamed) = &renamed {
                    call.id = Text::from(renamed.clone());
                }
                open.entry(own).or_default().push_back(renamed);
            }
            Content::Result { id, .. } => {
                let next = open.get_mut(&*id.decode()).and_then(VecDeque::pop_front);
                if let Some(Some(renamed)) = next {
                    *id = renamed.into();
                }
            }
            _ => {}
        }
    }
}
