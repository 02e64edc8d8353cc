//! Texts that are designed to be slow or misleading, for the tests and for the example `hostile`.

/// Texts that are difficult for some reader when repeated: unterminated openings, the syntax of every engine, terminal
/// and script controls.
const SEEDS: [&str; 26] = [
    "a",
    "\"",
    "` ",
    "please ",
    "\n",
    "error\n",
    "[{\"a\":1},",
    "{\"a\":1}\n{\"a\":",
    "\u{1b}[",
    "\u{1b}[31\u{e9}",
    "\r",
    ";base64,",
    "diff --git\n",
    "\u{4f60}",
    "\u{201c}",
    "\u{ab} ",
    "\0",
    "\u{202e}\u{2066}please \u{2069}",
    "\u{1f468}\u{200d}\u{1f469}",
    "```\n",
    "```\n~~~\n",
    "could you please, ",
    "src/a.rs:4 ",
    "the of and to ",
    "1.2.3.4 ",
    "[\u{2026} 3 lines left out]\n",
];

/// Named texts of about `bytes` bytes: the repeated seeds, nested brackets, lines that all differ, one long line, and
/// long lines.
pub(crate) fn texts(bytes: usize) -> Vec<(String, String)> {
    let deep = |open: &str, close: &str| {
        let times = bytes / (open.len() + close.len());
        open.repeat(times) + &close.repeat(times)
    };
    let differing: Vec<String> = (0..bytes / 24).map(|at| format!("error {at}: x{}", at * 7_919)).collect();
    let named = [
        ("deep lists", deep("[", "]")),
        ("deep objects", deep("{\"a\":", "}")),
        ("lines that differ", differing.join("\n")),
        ("long lines", format!("{}\n", "y".repeat(500)).repeat(bytes / 501)),
    ];
    let named = named.into_iter().map(|(name, text)| (name.to_owned(), text));
    named.chain(SEEDS.iter().map(|seed| (format!("{seed:?}"), seed.repeat(bytes / seed.len())))).collect()
}
