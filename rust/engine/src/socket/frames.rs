//! WebSocket frames (RFC 6455, section 5) as the side that dials sends and reads them.

use bytes::{Buf as _, BytesMut};

/// A message that is larger is a fault.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
const MAX_CONTROL_BYTES: usize = 125;

pub const TEXT: u8 = 1;
pub const CLOSE: u8 = 8;
pub const PING: u8 = 9;
pub const PONG: u8 = 10;

/// What came whole.
#[derive(Debug, PartialEq, Eq)]
pub enum Message {
    Text(String),
    Binary,
    Ping(Vec<u8>),
    Pong,
    /// With the code, or 1005 where there is none.
    Close(u16),
}

/// The other side breaks the protocol; the code says how (section 7.4.1).
#[derive(Debug, PartialEq, Eq)]
pub struct FrameFault(pub u16);

/// Cuts bytes into messages.
#[derive(Debug, Default)]
pub struct Decoder {
    held: BytesMut,
    message: BytesMut,
    /// A message has begun, and whether it is a text.
    is_text: Option<bool>,
}

impl Decoder {
    pub fn push(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// Of messages that have not come whole.
    pub fn held_bytes(&self) -> usize {
        self.held.len() + self.message.len()
    }

    /// The next message, if it is there.
    pub fn message(&mut self) -> Result<Option<Message>, FrameFault> {
        loop {
            let Some((first, opcode, header, size)) = self.head()? else { return Ok(None) };
            if self.held.len() < header + size {
                return Ok(None);
            }
            self.held.advance(header);
            let payload = self.held.split_to(size);
            let is_last = first & 0x80 != 0;
            if opcode >= CLOSE {
                return Ok(Some(match opcode {
                    PING => Message::Ping(payload.to_vec()),
                    PONG => Message::Pong,
                    _ if payload.len() >= 2 => Message::Close(u16::from_be_bytes([payload[0], payload[1]])),
                    _ => Message::Close(1005),
                }));
            }
            if self.message.len() + payload.len() > MAX_MESSAGE_BYTES {
                return Err(FrameFault(1009));
            }
            match (opcode, self.is_text) {
                (0, Some(_)) => {}
                (1 | 2, None) => self.is_text = Some(opcode == TEXT),
                _ => return Err(FrameFault(1002)),
            }
            self.message.extend_from_slice(&payload);
            if is_last {
                let whole = std::mem::take(&mut self.message);
                if self.is_text.take() == Some(false) {
                    return Ok(Some(Message::Binary));
                }
                return String::from_utf8(whole.to_vec())
                    .map(|text| Some(Message::Text(text)))
                    .map_err(|_| FrameFault(1007));
            }
        }
    }

    /// First byte, opcode, size of the head and of the payload, once the head is there.
    fn head(&self) -> Result<Option<(u8, u8, usize, usize)>, FrameFault> {
        let (Some(&first), Some(&second)) = (self.held.first(), self.held.get(1)) else { return Ok(None) };
        let opcode = first & 0x0f;
        // Reserved bits, masked frames of a server, unknown opcodes.
        if first & 0x70 != 0 || second & 0x80 != 0 || !matches!(opcode, 0..=2 | 8..=10) {
            return Err(FrameFault(1002));
        }
        let (header, size) = match second {
            126 => match self.held.get(2..4) {
                Some(bytes) => (4, u64::from(u16::from_be_bytes([bytes[0], bytes[1]]))),
                None => return Ok(None),
            },
            127 => match self.held.get(2..10).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok()) {
                Some(bytes) => (10, u64::from_be_bytes(bytes)),
                None => return Ok(None),
            },
            short => (2, u64::from(short)),
        };
        let is_control = opcode >= CLOSE;
        if is_control && (size > MAX_CONTROL_BYTES as u64 || first & 0x80 == 0) {
            return Err(FrameFault(1002));
        }
        if size > MAX_MESSAGE_BYTES as u64 {
            return Err(FrameFault(1009));
        }
        Ok(Some((first, opcode, header, size as usize)))
    }
}

/// A whole frame, masked as a client's must be.
pub fn encode(opcode: u8, payload: &[u8], mask: [u8; 4]) -> Vec<u8> {
    let mut out = Vec::with_capacity(payload.len() + 14);
    out.push(0x80 | opcode);
    match payload.len() {
        short @ 0..=125 => out.push(0x80 | short as u8),
        middle @ 126..=0xffff => {
            out.push(0x80 | 0x7e);
            out.extend_from_slice(&(middle as u16).to_be_bytes());
        }
        long => {
            out.push(0x80 | 0x7f);
            out.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&mask);
    out.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, key)| byte ^ key));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut out = vec![first];
        match payload.len() {
            short @ 0..=125 => out.push(short as u8),
            long => {
                out.push(126);
                out.extend_from_slice(&(long as u16).to_be_bytes());
            }
        }
        out.extend_from_slice(payload);
        out
    }

    fn read(bytes: &[u8], step: usize) -> Result<Vec<Message>, FrameFault> {
        let mut decoder = Decoder::default();
        let mut found = Vec::new();
        for piece in bytes.chunks(step) {
            decoder.push(piece);
            while let Some(message) = decoder.message()? {
                found.push(message);
            }
        }
        Ok(found)
    }

    #[test]
    fn messages_are_the_same_however_they_are_cut() {
        let long = "x".repeat(300);
        let bytes = [
            frame(0x81, b"one"),
            frame(0x01, "h\u{e9}".as_bytes()),
            frame(0x89, b"p"),
            frame(0x80, b"llo"),
            frame(0x81, long.as_bytes()),
            frame(0x88, &[0x03, 0xe8]),
        ]
        .concat();
        for step in 1..bytes.len() {
            let messages = read(&bytes, step).expect("frames");
            let expected = [
                Message::Text("one".into()),
                Message::Ping(b"p".to_vec()),
                Message::Text("h\u{e9}llo".into()),
                Message::Text(long.clone()),
                Message::Close(1000),
            ];
            assert_eq!(messages, expected, "{step}");
        }
    }

    #[test]
    fn what_breaks_the_protocol_is_a_fault() {
        for (bytes, code) in [
            (frame(0xc1, b"a"), 1002),
            (vec![0x81, 0x81, 0, 0, 0, 0, 0], 1002),
            (frame(0x83, b"a"), 1002),
            (frame(0x80, b"a"), 1002),
            (frame(0x09, b"a"), 1002),
            (frame(0x89, &[0; 126]), 1002),
            ([frame(0x01, b"a"), frame(0x01, b"b")].concat(), 1002),
            (frame(0x81, b"\xff"), 1007),
            (vec![0x81, 127, 0, 0, 0, 0, 0x7f, 0, 0, 0], 1009),
        ] {
            assert_eq!(read(&bytes, 3), Err(FrameFault(code)), "{bytes:?}");
        }
    }

    #[test]
    fn a_frame_is_masked() {
        let sent = encode(TEXT, b"hi", [1, 2, 3, 4]);
        assert_eq!(sent, [0x81, 0x82, 1, 2, 3, 4, b'h' ^ 1, b'i' ^ 2]);
        assert_eq!(encode(TEXT, &[0; 300], [0; 4])[..4], [0x81, 0xfe, 1, 44]);
    }
}
