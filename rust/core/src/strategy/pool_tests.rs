//! Tests the pool: each channel has the candidates that the plain rule selects.

use super::*;
use crate::snapshot::Connection;

const WORDS: [&str; 7] = ["claude", "gpt-4o", "qwen-coder", "deepseek-r1", "llama-instruct", "gemini-flash", "plain"];

fn snapshot() -> Snapshot {
    let connection = |at: usize, base_url: &str, priority: usize| {
        format!(
            r#"{{"id":"c{at}","provider":"p{at}","prefixes":["p{at}"],"dialect":"openai","base_url":"{base_url}","auth":"none","priority":{priority}}}"#
        )
    };
    let connections =
        [connection(0, "https://h", 1), connection(1, "http://localhost:1", 50), connection(2, "https://i", 30)];
    let json = format!(r#"{{"version":1,"connections":[{}]}}"#, connections.join(","));
    Snapshot::parse(json.as_bytes()).expect("a snapshot")
}

/// Builds `count` candidates with a wide range of prices.
fn candidates(count: usize, snapshot: &Snapshot) -> Vec<Candidate> {
    let candidate = |at: usize| {
        let index = at * 7 % 3;
        let name: Arc<str> = format!("p{index}/{}-{at}", WORDS[at % WORDS.len()]).into();
        let cost = match at % 11 {
            0 => None,
            1 => Some(0),
            _ => Some((at as u64 * 7_919) % 1_009 * 10_000),
        };
        let known = crate::strategy::Facts {
            price_input: cost,
            price_output: cost.map(|cost| cost * 3),
            takes_pictures: [None, Some(true), Some(false)][at % 3],
            ..crate::strategy::Facts::default()
        };
        let connection: Arc<Connection> = Arc::clone(&snapshot.connections[index]);
        Candidate {
            to: To::Connection { index, model: Arc::clone(&name) },
            step: 0,
            name,
            connection: Some(connection),
            known,
        }
    };
    (0..count).map(candidate).collect()
}

/// Sorts all candidates and removes those that are neither among the best few of a pack nor among the best of the
/// channel's own pack.
fn plainly(pool: &[Candidate], channel: &Channel, snapshot: &Snapshot) -> Vec<(String, Prior)> {
    let is_free = |one: &&Candidate| one.known.price_input == Some(0) && one.known.price_output == Some(0);
    let members: Vec<Candidate> = pool.iter().filter(|one| !channel.is_free || is_free(one)).cloned().collect();
    let ratings = rate(&members, snapshot);
    let priors: Vec<Prior> = members
        .iter()
        .zip(ratings)
        .map(|(one, rating)| {
            rating.prior(channel.task.is_none_or(|task| task.fits(&one.name, one.known.takes_pictures)))
        })
        .collect();
    let ordered = |pack: Pack| {
        let mut indices: Vec<usize> = (0..members.len()).collect();
        indices.sort_by(|a, b| priors[*b].merit(pack).total_cmp(&priors[*a].merit(pack)));
        indices
    };
    let mut best_of_packs: Vec<usize> = Vec::new();
    for &pack in Pack::ALL {
        best_of_packs.extend(ordered(pack).into_iter().take(auto::BEST_OF_EACH_PACK));
    }
    best_of_packs.sort_unstable();
    best_of_packs.dedup();
    let own = ordered(channel.pack);
    let free_share = auto::MAX_CANDIDATES - best_of_packs.len();
    let others: Vec<usize> = own
        .iter()
        .copied()
        .filter(|candidate_index| !best_of_packs.contains(candidate_index))
        .take(free_share)
        .collect();
    let is_in = |candidate_index: &usize| best_of_packs.contains(candidate_index) || others.contains(candidate_index);
    own.into_iter()
        .filter(is_in)
        .map(|candidate_index| (members[candidate_index].name.to_string(), priors[candidate_index]))
        .collect()
}

#[test]
fn every_channel_has_what_the_plain_rule_gives_it() {
    let snapshot = snapshot();
    for count in [0, 1, 40, 64, 65, 1_500] {
        let all = candidates(count, &snapshot);
        let channels = Pool::new(all.clone(), &snapshot).channels();
        assert_eq!(channels.len(), auto::CHANNELS.len());
        for (channel, ready) in auto::CHANNELS.iter().zip(channels) {
            assert_eq!((&*ready.name, ready.params.pack), (channel.name, channel.pack));
            let has: Vec<(String, Prior)> =
                ready.candidates.iter().map(|one| (one.name.to_string(), one.known.prior)).collect();
            assert_eq!(has, plainly(&all, channel, &snapshot), "{} of {count}", channel.name);
        }
    }
}

#[test]
fn a_family_is_compared_with_itself() {
    let snapshot = snapshot();
    let all = candidates(1_500, &snapshot);
    let families = Pool::new(all.clone(), &snapshot).families();
    let names: Vec<&str> = families.iter().map(|ready| &*ready.name).collect();
    assert_eq!(
        names,
        ["auto/claude", "auto/deepseek", "auto/gemini", "auto/gpt", "auto/llama", "auto/plain", "auto/qwen"]
    );
    let own: Vec<Candidate> = all.into_iter().filter(|one| one.name.contains("/claude-")).collect();
    let has: Vec<(String, Prior)> =
        families[0].candidates.iter().map(|one| (one.name.to_string(), one.known.prior)).collect();
    assert_eq!(has, plainly(&own, &auto::OF_FAMILY, &snapshot));
}

#[test]
fn a_channel_of_its_own_is_the_one_of_that_name() {
    let snapshot = snapshot();
    for count in [1, 1_500] {
        let pool = Pool::new(candidates(count, &snapshot), &snapshot);
        for ready in pool.channels().into_iter().chain(pool.families()) {
            let own = pool.channel(&ready.name).expect("a channel");
            let names = |ready: &Ready| ready.candidates.iter().map(|one| one.name.to_string()).collect::<Vec<_>>();
            assert_eq!((names(&own), own.is_cut), (names(&ready), ready.is_cut), "{} of {count}", ready.name);
        }
        assert!(pool.channel("auto/none").expect("a family without models").candidates.is_empty());
        assert!(pool.channel("other").is_none());
    }
}
