//! Reads bodies of OpenAI chat completions.

use super::{command, Reader};

pub(super) fn read(reader: &mut Reader<'_, '_>) {
    let tape = reader.tape;
    let Some(messages) = tape.member(0, "messages") else { return };
    for (turn, message) in tape.elements(messages).enumerate() {
        let role = reader.role(message);
        reader.note_mark(message);
        for call in tape.member(message, "tool_calls").into_iter().flat_map(|calls| tape.elements(calls)) {
            let (Some(id), Some(function)) = (tape.member_text(call, "id"), tape.member(call, "function")) else {
                continue;
            };
            let name = tape.member_text(function, "name").unwrap_or_default();
            let arguments = tape.member_text(function, "arguments").unwrap_or_default();
            reader.commands.insert(id.into_owned(), command::of_text(&name, &arguments));
        }
        let id = tape.member_text(message, "tool_call_id");
        let ran = id.and_then(|id| reader.commands.get(id.as_ref()).cloned());
        if let Some(content) = tape.member(message, "content") {
            reader.content(content, role, turn, ran.as_ref());
        }
    }
}
