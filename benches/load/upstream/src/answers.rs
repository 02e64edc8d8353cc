//! Every byte that is ever sent, made once.

const ID: &str = r#""id":"chatcmpl-bench","created":1700000000,"model":"mock""#;
const USAGE: &str = r#"{"prompt_tokens":9,"completion_tokens":100,"total_tokens":109}"#;
const TEXT: &str = "The quick brown fox jumps over the lazy dog and runs on through the wood. ";

/// Whole answers with their heads, and the parts of a stream, each framed as one chunk.
pub struct Answers {
    pub unary: Vec<u8>,
    pub models: Vec<u8>,
    pub health: Vec<u8>,
    pub not_found: Vec<u8>,
    pub stream_head: Vec<u8>,
    pub chunk: Vec<u8>,
    pub usage_chunk: Vec<u8>,
    pub stream_end: Vec<u8>,
    /// Content chunks in a stream.
    pub chunks: usize,
}

impl Answers {
    pub fn new(chunks: usize) -> Self {
        let text = TEXT.repeat(4);
        let unary = format!(
            r#"{{{ID},"object":"chat.completion","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"finish_reason":"stop"}}],"usage":{USAGE}}}"#
        );
        let models = r#"{"object":"list","data":[{"id":"mock","object":"model","created":1700000000,"owned_by":"bench"},{"id":"stall","object":"model","created":1700000000,"owned_by":"bench"}]}"#;
        let delta = |choices: &str, rest: &str| {
            framed(&format!("data: {{{ID},\"object\":\"chat.completion.chunk\",\"choices\":[{choices}]{rest}}}\n\n"))
        };
        let mut stream_end = delta(r#"{"index":0,"delta":{},"finish_reason":"stop"}"#, "");
        let usage_chunk = delta("", &format!(",\"usage\":{USAGE}"));
        stream_end.extend_from_slice(&framed("data: [DONE]\n\n"));
        stream_end.extend_from_slice(b"0\r\n\r\n");
        Self {
            unary: whole("200 OK", &unary),
            models: whole("200 OK", models),
            health: whole("200 OK", r#"{"status":"ok","model_path":"mock"}"#),
            not_found: whole("404 Not Found", r#"{"error":{"message":"no such path"}}"#),
            stream_head: b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
                .to_vec(),
            chunk: delta(r#"{"index":0,"delta":{"content":"lorem "},"finish_reason":null}"#, ""),
            usage_chunk,
            stream_end,
            chunks,
        }
    }
}

fn whole(status: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        .into_bytes()
}

fn framed(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_framed_by_its_length_in_hex() {
        assert_eq!(framed("data: 0123456789\n\n"), b"12\r\ndata: 0123456789\n\n\r\n");
    }

    #[test]
    fn an_answer_tells_its_length() {
        let text = String::from_utf8(Answers::new(1).unary).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())));
    }

    #[test]
    fn usage_comes_before_the_end() {
        let answers = Answers::new(1);
        assert!(answers.stream_end.ends_with(b"data: [DONE]\n\n\r\n0\r\n\r\n"));
        assert!(String::from_utf8(answers.usage_chunk).unwrap().contains("completion_tokens"));
    }
}
