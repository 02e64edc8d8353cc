use super::super::facts::Prior;
use super::super::{expand, Candidate, Demand, Facts, Look, Memory, Obstacle, Pack, Random, Strategy, Targets};
use super::*;
use proptest::prelude::*;

struct Desk(Vec<(Memory, Random)>);

impl Desk {
    fn of(book: &Book) -> Self {
        Self(book.all().iter().map(|_| (Memory::default(), Random::seeded(1))).collect())
    }
}

impl Look for Desk {
    fn facts(&mut self, candidate: &Candidate) -> Facts {
        candidate.known
    }

    fn remember<T>(&mut self, combo: usize, work: impl FnOnce(&mut Memory, &mut Random) -> T) -> T {
        let (memory, random) = &mut self.0[combo];
        work(memory, random)
    }
}

/// Counts the combos and candidates that an expansion looks at.
struct CountingDesk {
    desk: Desk,
    combos: usize,
    candidates: usize,
}

impl Look for CountingDesk {
    fn facts(&mut self, candidate: &Candidate) -> Facts {
        self.candidates += 1;
        self.desk.facts(candidate)
    }

    fn remember<T>(&mut self, combo: usize, work: impl FnOnce(&mut Memory, &mut Random) -> T) -> T {
        self.combos += 1;
        self.desk.remember(combo, work)
    }
}

/// Builds a book from three providers with one model `m` each and these combos. The first provider has two connections.
fn book(combos: &str) -> Book {
    let connection = |id: &str, provider: &str, dialect: &str| {
        format!(
            r#"{{"id":"{id}","provider":"{provider}","prefixes":["{provider}"],"dialect":"{dialect}","base_url":"https://h","auth":"none"}}"#
        )
    };
    let connections = [
        connection("a1", "a", "openai"),
        connection("a2", "a", "openai"),
        connection("b1", "b", "openai"),
        connection("g", "g", "gemini"),
    ];
    let models =
        ["a", "b", "g"].map(|p| format!(r#"{{"id":"{p}/chat","provider":"{p}","context_length":9}}"#)).join(",");
    let prices = r#"{"model":"a/chat","input":5,"output":7},{"model":"b/chat","input":0,"output":0}"#;
    let connections = connections.join(",");
    let json = format!(
        r#"{{"version":1,"connections":[{connections}],"models":[{models}],"prices":[{prices}],"combos":[{combos}]}}"#
    );
    let snapshot = Snapshot::parse(json.as_bytes()).expect("a snapshot");
    Book::compile(&snapshot, &|_, connection| connection.dialect == crate::dialect::Dialect::Openai)
}

fn targets(book: &Book, name: &str) -> Targets {
    let at = book.find(name).expect("a combo");
    expand(book, at, &Demand::default(), &mut Desk::of(book))
}

fn named(book: &Book, name: &str) -> Vec<String> {
    let picks = targets(book, name).picks;
    let candidates = picks.iter().filter_map(|pick| pick.of(book));
    candidates
        .map(|candidate| match candidate.to {
            To::Connection { index, .. } => format!("{}@{index}", candidate.name),
            To::Combo(_) => panic!("a combo is no target"),
        })
        .collect()
}

#[test]
fn a_step_is_every_connection_and_shares_its_weight() {
    let book = book(
        r#"{"id":"i","name":"x","strategy":"priority","steps":[{"kind":"model","model":"a/m","weight":4},{"kind":"model","model":"b/m","weight":1},{"kind":"model","model":"g/m"},{"kind":"model","model":"none/m"}]}"#,
    );
    assert_eq!(named(&book, "combo/x"), ["a/m@0", "a/m@1", "b/m@2"], "what speaks another protocol is left out");
    let ready = book.get(book.find("x").expect("there")).expect("ready");
    assert_eq!(ready.candidates.iter().map(|one| one.known.weight).collect::<Vec<_>>(), [2.0, 2.0, 1.0]);
}

#[test]
fn a_step_may_name_its_connection_or_a_pattern() {
    let book = book(
        r#"{"id":"i","name":"x","steps":[{"kind":"model","model":"a/m","connection_id":"a2"},{"kind":"model","model":"*/chat"}]}"#,
    );
    assert_eq!(named(&book, "x"), ["a/m@1", "a/chat@0", "a/chat@1", "b/chat@2"]);
}

#[test]
fn a_nested_combo_stands_in_its_place_and_a_target_stands_once() {
    let book = book(
        r#"{"id":"1","name":"inner","steps":[{"kind":"model","model":"b/m"},{"kind":"model","model":"a/m","connection_id":"a1"}]},
           {"id":"2","name":"outer","steps":[{"kind":"combo-ref","combo":"inner"},{"kind":"model","model":"a/m"}]}"#,
    );
    assert_eq!(named(&book, "outer"), ["b/m@2", "a/m@0", "a/m@1"]);
}

#[test]
fn a_pipeline_may_use_a_target_twice_and_knows_its_steps() {
    let book = book(
        r#"{"id":"i","name":"x","strategy":"pipeline","steps":[{"kind":"model","model":"b/m"},{"kind":"model","model":"b/m"}]}"#,
    );
    let steps: Vec<usize> = targets(&book, "x").picks.iter().map(|pick| pick.step).collect();
    assert_eq!(steps, [0, 1]);
}

#[test]
fn a_circle_in_a_document_leads_nowhere() {
    let book = book(
        r#"{"id":"1","name":"x","steps":[{"kind":"combo-ref","combo":"y"},{"kind":"model","model":"b/m"}]},
           {"id":"2","name":"y","steps":[{"kind":"combo-ref","combo":"x"},{"kind":"model","model":"a/m","connection_id":"a1"}]}"#,
    );
    assert_eq!(named(&book, "x"), ["a/m@0", "b/m@2"]);
    assert!(!named(&book, "y").is_empty());
}

#[test]
fn combos_that_multiply_cost_no_more_than_their_bound() {
    let mut combos = vec![r#"{"id":"0","name":"c0","steps":[{"kind":"model","model":"b/m"}]}"#.to_owned()];
    for depth in 1..10 {
        let steps = vec![format!(r#"{{"kind":"combo-ref","combo":"c{}"}}"#, depth - 1); 50].join(",");
        combos.push(format!(r#"{{"id":"{depth}","name":"c{depth}","steps":[{steps}]}}"#));
    }
    let book = book(&combos.join(","));
    assert_eq!(named(&book, "c9"), ["b/m@2"]);
    // 50^9 ways lead down.
    let mut desk = CountingDesk { desk: Desk::of(&book), combos: 0, candidates: 0 };
    expand(&book, book.find("c9").expect("a combo"), &Demand::default(), &mut desk);
    assert!(desk.combos <= 64 && desk.candidates <= 64 * 1_024, "{} of {}", desk.candidates, desk.combos);
}

#[test]
fn auto_is_there_without_being_made() {
    let book = book("");
    assert_eq!(named(&book, "auto/cheap")[0], "b/chat@2", "what costs nothing");
    assert_eq!(named(&book, "auto/free"), ["b/chat@2"]);
    assert_eq!(named(&book, "auto").len(), 3);
    for channel in auto::CHANNELS {
        assert!(book.find(channel.name).is_some(), "{}", channel.name);
    }
    assert!(book.find("auto/nothing").is_none());
}

/// Builds a book with one provider of these models. Each has one price for input and output.
fn priced(models: &[(String, u64)]) -> Book {
    let listed: Vec<String> = models.iter().map(|(id, _)| format!(r#"{{"id":"{id}","provider":"a"}}"#)).collect();
    let prices: Vec<String> =
        models.iter().map(|(id, price)| format!(r#"{{"model":"{id}","input":{price},"output":{price}}}"#)).collect();
    let json = format!(
        r#"{{"version":1,"connections":[{{"id":"a1","provider":"a","prefixes":["a"],"dialect":"openai","base_url":"https://h","auth":"none"}}],
        "models":[{}],"prices":[{}]}}"#,
        listed.join(","),
        prices.join(",")
    );
    Book::compile(&Snapshot::parse(json.as_bytes()).expect("a snapshot"), &|_, _| true)
}

#[test]
fn every_family_has_a_channel_of_its_own_models() {
    let models = ["a/claude-opus-4", "a/claude-haiku-4", "a/vendor/gpt-5", "a/o3", "a/claude-embed", "a/chat-1"];
    let book = priced(&models.map(|id| (id.to_owned(), 5)));
    let mut claude = named(&book, "auto/claude");
    claude.sort_unstable();
    assert_eq!(claude, ["a/claude-haiku-4@0", "a/claude-opus-4@0"]);
    assert_eq!(named(&book, "combo/auto/gpt"), ["a/vendor/gpt-5@0"]);
    assert!(book.find("auto/o").is_none() && book.find("auto/llama").is_none());
    assert_eq!(named(&book, "auto/chat").len(), 5, "a channel goes before a family of its name");
    assert!(book.get(book.find("auto/claude").expect("there")).is_some_and(|ready| ready.is_auto));
}

#[test]
fn a_model_without_a_price_is_neither_the_cheapest_nor_the_dearest() {
    // US dollars per million tokens: 0.15, 1 and 15.
    let prices = [150_000, 1_000_000, 15_000_000];
    let mut models: Vec<(String, u64)> =
        prices.iter().enumerate().map(|(at, price)| (format!("a/m{at}"), *price)).collect();
    let cheapness = |models: &[(String, u64)]| {
        let book = priced(models);
        let ready = book.get(book.find("auto/cheap").expect("there")).expect("ready").clone();
        let mut by_name: Vec<(String, f32)> =
            ready.candidates.iter().map(|one| (one.name.to_string(), one.known.prior.cheapness)).collect();
        by_name.sort_by(|a, b| a.0.cmp(&b.0));
        by_name.into_iter().map(|(_, cheapness)| cheapness).collect::<Vec<f32>>()
    };
    let [small, middle, large] = cheapness(&models)[..] else { panic!("three models") };
    assert!(small > 0.85 && large < 0.01 && middle > large && small > middle);
    assert!(small > Prior::UNKNOWN && large < Prior::UNKNOWN);
    models.push(("a/m3".to_owned(), 0));
    let free = cheapness(&models);
    assert_eq!((free[0], free[3]), (small, 1.0), "what is free changes nothing for the others");
}

#[test]
fn a_caller_may_want_other_weights_than_the_channels() {
    let models: Vec<(String, u64)> = (0..2_000).map(|at| (format!("a/m{at}"), 10 + at * at * 1_000)).collect();
    let book = priced(&models);
    let at = book.find("auto").expect("a channel");
    assert_eq!(book.get(at).expect("ready").candidates.len(), auto::MAX_CANDIDATES);
    let first = |pack| {
        let demand = Demand { pack, ..Demand::default() };
        // One request in twenty explores, so the most frequent first choice counts.
        let mut desk = Desk::of(&book);
        let firsts = (0..9).filter_map(|_| expand(&book, at, &demand, &mut desk).picks[0].of(&book));
        let mut names: Vec<String> = firsts.map(|one| one.name.to_string()).collect();
        names.sort_unstable();
        names.swap_remove(4)
    };
    assert_eq!(first(Some(Pack::CostSaver)), "a/m0");
    assert_eq!(first(Some(Pack::QualityFirst)), "a/m1999");
    assert_eq!(first(None), first(Some(Pack::Balanced)));
}

#[test]
fn an_operators_combo_goes_before_a_channel_of_its_name() {
    let book = book(r#"{"id":"i","name":"auto/cheap","steps":[{"kind":"model","model":"a/m"}]}"#);
    assert_eq!(named(&book, "auto/cheap"), ["a/m@0", "a/m@1"]);
}

proptest! {
    #[test]
    fn any_document_compiles_and_any_combo_ends(
        links in proptest::collection::vec(proptest::collection::vec(0usize..8, 0..5), 8),
        strategies in proptest::collection::vec(0usize..Strategy::ALL.len(), 8),
    ) {
        let combos: Vec<String> = links.iter().zip(&strategies).enumerate().map(|(at, (to, strategy))| {
            let steps: Vec<String> = to.iter().map(|to| format!(r#"{{"kind":"combo-ref","combo":"c{to}"}}"#))
                .chain([r#"{"kind":"model","model":"a/m"}"#.to_owned()]).collect();
            format!(r#"{{"id":"{at}","name":"c{at}","strategy":"{}","steps":[{}]}}"#, Strategy::ALL[*strategy].1, steps.join(","))
        }).collect();
        let book = book(&combos.join(","));
        for at in 0..8 {
            let found = expand(&book, at, &Demand::default(), &mut Desk::of(&book));
            prop_assert!(!found.picks.is_empty(), "its own model is always there");
            prop_assert!(found.picks.len() <= super::super::expand::MAX_TARGETS);
        }
    }
}

#[test]
fn the_rules_of_every_combo_on_the_way_hold() {
    let model = |model: &str| format!(r#"{{"kind":"model","model":"{model}"}}"#);
    let combo = |id: &str, steps: &str, rules: &str| {
        format!(r#"{{"id":"{id}","name":"{id}","steps":[{steps}],"rules":{rules}}}"#)
    };
    let both = format!("{},{}", model("a/chat"), model("b/chat"));
    let nested = r#"{"kind":"combo-ref","combo":"inner"}"#;
    let book = book(
        &[
            combo("inner", &both, r#"{"allowed_providers":["a"]}"#),
            combo("outer", &format!("{nested},{}", model("b/chat")), r#"{"allowed_providers":["b"]}"#),
            combo("large", &both, r#"{"context":{"min_window":10,"is_strict":true}}"#),
            combo("family", &both, r#"{"allowed_model_families":["CH"]}"#),
        ]
        .join(","),
    );
    assert_eq!(named(&book, "inner"), ["a/chat@0", "a/chat@1"]);
    assert_eq!(named(&book, "outer"), ["b/chat@2"], "what either leaves out is left out");
    assert_eq!(named(&book, "family").len(), 3);
    let large = targets(&book, "large");
    assert!(large.picks.is_empty() && large.closed.is_empty());
    assert_eq!(large.barred.len(), 3);
    assert_eq!(large.barred[0].1, crate::strategy::Obstacle::Window(Some(9), 10));
}

#[test]
fn auto_sends_no_picture_to_a_model_that_reads_none() {
    let json = r#"{"version":1,
        "connections":[{"id":"a1","provider":"a","prefixes":["a"],"dialect":"openai","base_url":"https://h","auth":"none"}],
        "models":[{"id":"a/blind","provider":"a","capabilities":["tools"]},{"id":"a/seeing","provider":"a","capabilities":["tools","vision"]},
            {"id":"a/unknown","provider":"a"}],
        "combos":[{"id":"1","name":"own","strategy":"auto","steps":[{"kind":"model","model":"a/*"}]},
            {"id":"2","name":"listed","steps":[{"kind":"model","model":"a/blind"}]}]}"#;
    let book = Book::compile(&Snapshot::parse(json.as_bytes()).expect("a snapshot"), &|_, _| true);
    let names = |name: &str, has_picture| {
        let demand = Demand { has_picture, ..Demand::default() };
        let found = expand(&book, book.find(name).expect("a combo"), &demand, &mut Desk::of(&book));
        let mut names: Vec<String> =
            found.picks.iter().filter_map(|pick| Some(pick.of(&book)?.name.to_string())).collect();
        names.sort_unstable();
        (names.join(" "), found.barred.iter().map(|(_, why)| *why).collect::<Vec<_>>())
    };
    for name in ["auto", "own"] {
        assert_eq!(names(name, false), ("a/blind a/seeing a/unknown".into(), vec![]));
        assert_eq!(names(name, true), ("a/seeing a/unknown".into(), vec![Obstacle::Picture]));
    }
    assert_eq!(names("listed", true).0, "a/blind", "what the operator lists is the operator's word");
    let vision = book.all().iter().find(|ready| ready.name == "auto/vision").expect("the channel");
    assert_eq!(&*vision.candidates[0].name, "a/seeing", "by the catalogue rather than by its name");
}

#[test]
fn auto_asks_no_model_that_the_catalogue_has_for_something_else() {
    let json = r#"{"version":1,
        "connections":[{"id":"a1","provider":"a","prefixes":["a"],"dialect":"openai","base_url":"https://h","auth":"none"}],
        "models":[{"id":"a/flux-pro","provider":"a","mode":"image"},{"id":"a/live","provider":"a","mode":"realtime"},
            {"id":"a/said","provider":"a","mode":"chat"},{"id":"a/draws-image","provider":"a","mode":"chat"},{"id":"a/unknown","provider":"a"},{"id":"a/tts-1","provider":"a"}]}"#;
    let book = Book::compile(&Snapshot::parse(json.as_bytes()).expect("a snapshot"), &|_, _| true);
    let mut names = named(&book, "auto");
    names.sort_unstable();
    assert_eq!(
        names,
        ["a/draws-image@0", "a/said@0", "a/unknown@0"],
        "a type that is stated goes before what the name says"
    );
    assert!(book.find("auto/flux").is_none(), "nor is there a family of them");
}

#[test]
fn a_protected_conversation_stays_with_its_target_whatever_else_orders_them() {
    let nested = r#"{"id":"1","name":"inner","strategy":"random","steps":[{"kind":"model","model":"a/chat"}]}"#;
    let outer = |rules: &str| {
        let steps = r#"[{"kind":"model","model":"b/chat"},{"kind":"combo-ref","combo":"inner"}]"#;
        let rules = format!(r#"{{"context":{{"prefers_large":true}}{rules}}}"#);
        book(&format!(r#"{nested},{{"id":"2","name":"x","strategy":"random","steps":{steps},"rules":{rules}}}"#))
    };
    let first = |book: &Book, demand: &Demand| {
        let at = book.find("x").expect("a combo");
        let picks = expand(book, at, demand, &mut Desk::of(book)).picks;
        assert_eq!(picks.len(), 3);
        picks[0].of(book).expect("a candidate").known.id
    };
    let (free, protected) = (outer(""), outer(r#","context_cache_protection":true"#));
    let inner = protected.get(protected.find("inner").expect("a combo")).expect("ready");
    for served in inner.candidates.iter().map(|candidate| candidate.known.id) {
        let demand = Demand { last_target: Some(served), ..Demand::default() };
        assert_eq!(first(&protected, &demand), served);
        let long = Demand { input_tokens: 10, ..demand };
        let expected = first(&protected, &Demand { last_target: None, ..long });
        assert_eq!(first(&protected, &long), expected, "a conversation that has outgrown its target moves");
    }
    let last = inner.candidates[1].known.id;
    let demand = Demand { last_target: Some(last), ..Demand::default() };
    assert_ne!(first(&free, &demand), last, "what is nested is not held where nobody asks for it");
}

/// A caller that may use only what the function accepts.
struct Narrow<F>(Desk, F);

impl<F: Fn(&Candidate) -> bool> Look for Narrow<F> {
    fn facts(&mut self, candidate: &Candidate) -> Facts {
        self.0.facts(candidate)
    }

    fn is_restricted(&self) -> bool {
        true
    }

    fn admits(&self, _: &Ready, candidate: &Candidate) -> bool {
        (self.1)(candidate)
    }

    fn remember<T>(&mut self, combo: usize, work: impl FnOnce(&mut Memory, &mut Random) -> T) -> T {
        self.0.remember(combo, work)
    }
}

#[test]
fn targets_that_a_caller_may_not_use_take_no_place() {
    let models: Vec<String> = (0..50).map(|at| format!(r#"{{"id":"a/m{at:02}","provider":"a"}}"#)).collect();
    let json = format!(
        r#"{{"version":1,
        "connections":[{{"id":"a1","provider":"a","prefixes":["a"],"dialect":"openai","base_url":"https://h","auth":"none"}}],
        "models":[{}],"combos":[{{"id":"1","name":"all","steps":[{{"kind":"model","model":"a/*"}}]}},
            {{"id":"2","name":"outer","steps":[{{"kind":"combo-ref","combo":"all"}}]}}]}}"#,
        models.join(",")
    );
    let book = Book::compile(&Snapshot::parse(json.as_bytes()).expect("a snapshot"), &|_, _| true);
    for name in ["all", "outer", "auto"] {
        let mut desk = Narrow(Desk::of(&book), |one: &Candidate| &*one.name == "a/m49");
        let found = expand(&book, book.find(name).expect("a combo"), &Demand::default(), &mut desk);
        let names: Vec<&str> = found.picks.iter().filter_map(|pick| Some(&*pick.of(&book)?.name)).collect();
        assert_eq!((names, found.closed.len(), found.denied.len()), (vec!["a/m49"], 0, 49), "{name}");
    }
}

#[test]
fn a_channel_that_is_cut_is_filled_anew_for_who_may_use_others() {
    let models: Vec<String> = (0..200)
        .map(|at| format!(r#"{{"id":"a/claude-{at:03}","provider":"a"}}"#))
        .chain([r#"{"id":"a/tts-1","provider":"a"}"#.into()])
        .collect();
    let price = |at: usize| format!(r#"{{"model":"a/claude-{at:03}","input":{at},"output":{at}}}"#);
    let json = format!(
        r#"{{"version":1,"connections":[{{"id":"a1","provider":"a","prefixes":["a"],"dialect":"openai","base_url":"https://h","auth":"none"}}],
        "models":[{}],"prices":[{}]}}"#,
        models.join(","),
        (0..200).map(price).collect::<Vec<_>>().join(",")
    );
    let snapshot = Snapshot::parse(json.as_bytes()).expect("a snapshot");
    let book = Book::compile(&snapshot, &|_, _| true);
    for channel in ["auto", "auto/cheap", "auto/coding", "auto/claude"] {
        let ready = book.get(book.find(channel).expect("a channel")).expect("ready");
        assert!(ready.is_cut && ready.candidates.len() == auto::MAX_CANDIDATES, "{channel}");
        let left: Vec<String> = (0..200)
            .map(|at| format!("a/claude-{at:03}"))
            .filter(|name| ready.candidates.iter().all(|one| *one.name != **name))
            .collect();
        let may_use =
            |one: &Candidate| left.iter().take(100).any(|name| *one.name == **name) || one.name.contains("tts");
        let own = Book::of_channel(channel, &snapshot, &|_, _| true, &may_use).expect("a channel");
        let own = own.get(own.find(channel).expect("it")).expect("ready");
        assert_eq!((own.id.as_str(), own.strategy, own.is_auto), (ready.id.as_str(), ready.strategy, true));
        assert_eq!(own.candidates.len(), auto::MAX_CANDIDATES, "{channel}");
        assert!(own.candidates.iter().all(|one| may_use(one) && !one.name.contains("tts")), "{channel}");
    }
    assert!(Book::of_channel("other", &snapshot, &|_, _| true, &|_| true).is_none());
}
