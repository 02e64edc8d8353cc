//! The command of a tool call, read from its arguments.

use fairlead_core::json::Kind;

use crate::tape::Tape;

/// The argument names that coding agents use for a command.
const COMMANDS: [&str; 4] = ["command", "cmd", "script", "code"];
/// The argument names that they use for a file.
const FILES: [&str; 4] = ["file_path", "path", "filename", "uri"];

/// The command of a tool call: the command line if the arguments have one, or else the name of the tool with its file.
/// `arguments` is the index of an object.
pub(super) fn of(tape: &Tape<'_>, name: &str, arguments: usize) -> String {
    for (key, value) in tape.members(arguments) {
        if COMMANDS.contains(&key.as_ref()) {
            // Shells are called with lists such as ["bash", "-lc", "git status"].
            let index = match tape.kind(value) {
                Some(Kind::Array) => tape.elements(value).last().unwrap_or(value),
                _ => value,
            };
            if let Some(text) = tape.text(index) {
                return command_line(&text);
            }
        }
    }
    let file = tape.members(arguments).find(|(key, _)| FILES.contains(&key.as_ref()));
    let file = file.and_then(|(_, value)| tape.text(value)).unwrap_or_default();
    format!("{} {file}", name.to_lowercase())
}

/// For arguments that are JSON text inside a string.
pub(super) fn of_text(name: &str, arguments: &str) -> String {
    match Tape::read(arguments.as_bytes()) {
        Ok(tape) => of(&tape, name, 0),
        Err(_) => name.to_lowercase(),
    }
}

/// The last command of a line that first changes directories or sets variables, without its pipes.
fn command_line(text: &str) -> String {
    let last = text.rsplit("&&").next().unwrap_or(text).trim();
    let first = last.split('|').next().unwrap_or(last).trim();
    let words = first.split_whitespace().skip_while(|word| {
        word.contains('=') && !word.starts_with('-') || matches!(*word, "sudo" | "time" | "nice" | "npx" | "env")
    });
    words.take(24).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_lose_what_stands_around_them() {
        assert_eq!(
            of_text("shell", r#"{"command":["bash","-lc","cd a && CI=1 npx jest --ci | tail -5"]}"#),
            "jest --ci"
        );
        assert_eq!(of_text("Read", r#"{"file_path":"src/a.rs"}"#), "read src/a.rs");
        assert_eq!(of_text("odd", "{"), "odd");
    }
}
