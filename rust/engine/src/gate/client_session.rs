//! Headers by which coding tools name their session. They count as `X-Session-Id`, which takes precedence.

/// The headers, those with precedence first: Claude Code, Qwen Code, and the names that versions of Codex use.
const NAMES: [&[u8]; 7] = [
    b"x-claude-code-session-id",
    b"x-qwen-code-session-id",
    b"session_id",
    b"session-id",
    b"conversation_id",
    b"thread_id",
    b"thread-id",
];
/// A longer value is not a session.
const MAX_BYTES: usize = 256;

/// The session that a coding tool named.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClientSession<'a> {
    named: Option<(usize, &'a str)>,
}

impl<'a> ClientSession<'a> {
    /// Reads one of the headers. Other software may use the same names, so a value that is no session is ignored.
    pub fn take(&mut self, name: &[u8], value: &'a [u8]) {
        let Some(rank) = NAMES.iter().position(|known| *known == name) else { return };
        let is_visible = value.iter().all(|byte| (0x21..0x7f).contains(byte));
        if !is_visible || !(1..=MAX_BYTES).contains(&value.len()) || self.named.is_some_and(|(known, _)| known <= rank)
        {
            return;
        }
        self.named = std::str::from_utf8(value).ok().map(|session| (rank, session));
    }

    pub fn id(self) -> Option<&'a str> {
        self.named.map(|(_, session)| session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session<'a>(headers: &[(&str, &'a str)]) -> Option<&'a str> {
        let mut session = ClientSession::default();
        for (name, value) in headers {
            session.take(name.as_bytes(), value.as_bytes());
        }
        session.id()
    }

    #[test]
    fn each_tool_names_its_session() {
        for name in NAMES {
            let name = std::str::from_utf8(name).expect("a name");
            assert_eq!(session(&[(name, "one")]), Some("one"), "{name}");
        }
        assert_eq!(session(&[("x-other", "one")]), None);
    }

    #[test]
    fn the_session_precedes_the_conversation() {
        assert_eq!(session(&[("conversation_id", "two"), ("session_id", "one")]), Some("one"));
        assert_eq!(session(&[("session_id", "one"), ("thread-id", "two")]), Some("one"));
    }

    #[test]
    fn a_value_that_is_no_session_is_ignored() {
        let long = "x".repeat(MAX_BYTES + 1);
        for value in ["", "a b", "a\tb", "é", long.as_str()] {
            assert_eq!(session(&[("session_id", value)]), None, "{value}");
        }
    }
}
