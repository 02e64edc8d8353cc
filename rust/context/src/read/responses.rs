//! Reads bodies of OpenAI Responses.

use fairlead_core::json::Kind;

use crate::conversation::Role;

use super::{command, Reader};

pub(super) fn read(reader: &mut Reader<'_, '_>) {
    let tape = reader.tape;
    if let Some(instructions) = tape.member(0, "instructions") {
        reader.content(instructions, Role::System, 0, None);
    }
    let Some(input) = tape.member(0, "input") else { return };
    if tape.kind(input) == Some(Kind::String) {
        reader.content(input, Role::User, 0, None);
    }
    for (turn, item) in tape.elements(input).enumerate() {
        match tape.member_text(item, "type").as_deref() {
            Some("function_call" | "custom_tool_call") => {
                let id = tape.member_text(item, "call_id").unwrap_or_default();
                let name = tape.member_text(item, "name").unwrap_or_default();
                let arguments = tape.member_text(item, "arguments").unwrap_or_default();
                reader.commands.insert(id.into_owned(), command::of_text(&name, &arguments));
            }
            Some("function_call_output" | "custom_tool_call_output") => {
                let id = tape.member_text(item, "call_id").unwrap_or_default();
                let ran = reader.commands.get(id.as_ref()).cloned();
                if let Some(output) = tape.member(item, "output") {
                    reader.content(output, Role::Tool, turn, ran.as_ref());
                }
            }
            None | Some("message") => {
                let role = reader.role(item);
                if let Some(content) = tape.member(item, "content") {
                    reader.content(content, role, turn, None);
                }
            }
            // Reasoning and calls of hosted tools are sent back unchanged.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use fairlead_core::Dialect;

    use crate::conversation::Role;
    use crate::read::conversation;
    use crate::tape::Tape;

    #[test]
    fn results_of_functions_and_of_custom_tools_are_read() {
        for kind in ["function_call", "custom_tool_call"] {
            let body = format!(
                r#"{{"input":[{{"type":"{kind}","call_id":"c","name":"f"}},{{"type":"{kind}_output","call_id":"c","output":"text"}}]}}"#
            );
            let tape = Tape::read(body.as_bytes()).expect("JSON");
            let read = conversation(Dialect::OpenaiResponses, &tape);
            let pieces: Vec<(&str, Role)> = read.pieces.iter().map(|piece| (&*piece.text, piece.role)).collect();
            assert_eq!(pieces, [("text", Role::Tool)], "{kind}");
            assert_eq!(read.pieces[0].command.as_deref(), Some("f"), "{kind}");
        }
    }
}
