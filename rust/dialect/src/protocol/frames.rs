//! Amazon's event stream (`application/vnd.amazon.eventstream`): binary messages with headers, a payload and two
//! checksums.
//!
//! ```text
//! total length u32 | length of headers u32 | CRC of both u32 | headers | payload | CRC of all before u32
//! ```

use bytes::{Buf as _, Bytes, BytesMut};

/// The lengths and their checksum.
const PRELUDE_BYTES: usize = 12;
const CRC_BYTES: usize = 4;
/// Amazon allows 16 MiB of payload and 128 KiB of headers.
const MAX_FRAME_BYTES: usize = (16 << 20) + (128 << 10) + PRELUDE_BYTES + CRC_BYTES;

/// One message with the headers that say what it is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Frame {
    /// `event`, `exception` or `error`.
    pub(super) message_type: String,
    /// The name of the event, of the exception, or the code of the error.
    pub(super) name: String,
    /// The text of an `error`, which has no payload.
    pub(super) error_message: String,
    pub(super) payload: Bytes,
}

/// The stream is damaged: a checksum or a length is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Damaged;

/// Collects chunks until a message is complete.
#[derive(Debug, Default)]
pub(super) struct Frames {
    buffer: BytesMut,
}

impl Frames {
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// Whether a message has begun and is not complete.
    pub(super) fn is_mid_frame(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Returns the next complete message.
    pub(super) fn next_frame(&mut self) -> Result<Option<Frame>, Damaged> {
        let Some(mut prelude) = self.buffer.get(..PRELUDE_BYTES) else { return Ok(None) };
        let is_sound = crc32(&prelude[..8]) == (&prelude[8..]).get_u32();
        let (total, headers) = (prelude.get_u32() as usize, prelude.get_u32() as usize);
        let least = headers.saturating_add(PRELUDE_BYTES + CRC_BYTES);
        if !is_sound || total < least || total > MAX_FRAME_BYTES {
            return Err(Damaged);
        }
        if self.buffer.len() < total {
            return Ok(None);
        }
        let frame = self.buffer.split_to(total).freeze();
        let (content, mut crc) = frame.split_at(total - CRC_BYTES);
        if crc32(content) != crc.get_u32() {
            return Err(Damaged);
        }
        let payload = frame.slice(PRELUDE_BYTES + headers..total - CRC_BYTES);
        read_headers(frame.slice(PRELUDE_BYTES..PRELUDE_BYTES + headers), payload).map(Some).ok_or(Damaged)
    }
}

fn read_headers(mut headers: Bytes, payload: Bytes) -> Option<Frame> {
    let mut frame = Frame { payload, ..Frame::default() };
    while headers.has_remaining() {
        let length = usize::from(headers.try_get_u8().ok()?);
        let name = take(&mut headers, length)?;
        let value = read_value(&mut headers)?;
        let text = || String::from_utf8_lossy(&value).into_owned();
        match &name[..] {
            b":message-type" => frame.message_type = text(),
            b":event-type" | b":exception-type" | b":error-code" => frame.name = text(),
            b":error-message" => frame.error_message = text(),
            _ => {}
        }
    }
    Some(frame)
}

/// Reads the value of a header. The first byte is its type.
fn read_value(headers: &mut Bytes) -> Option<Bytes> {
    let length = match headers.try_get_u8().ok()? {
        // True and false.
        0 | 1 => 0,
        // Integers of 1, 2, 4 and 8 bytes.
        2 => 1,
        3 => 2,
        4 => 4,
        // An integer or a time.
        5 | 8 => 8,
        // Bytes or a text.
        6 | 7 => usize::from(headers.try_get_u16().ok()?),
        // A UUID.
        9 => 16,
        _ => return None,
    };
    take(headers, length)
}

fn take(bytes: &mut Bytes, length: usize) -> Option<Bytes> {
    (bytes.len() >= length).then(|| bytes.split_to(length))
}

/// CRC-32 as in gzip (reflected polynomial 0xEDB88320).
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    !bytes.iter().fold(u32::MAX, |crc, byte| (crc >> 8) ^ TABLE[usize::from(crc as u8 ^ byte)])
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut crc = at as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[at] = crc;
        at += 1;
    }
    table
}

/// Writes a message, for tests.
#[cfg(test)]
pub(crate) fn frame(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut written = Vec::new();
    for (name, value) in headers {
        written.push(name.len() as u8);
        written.extend_from_slice(name.as_bytes());
        written.push(7);
        written.extend_from_slice(&(value.len() as u16).to_be_bytes());
        written.extend_from_slice(value.as_bytes());
    }
    let total = PRELUDE_BYTES + written.len() + payload.len() + CRC_BYTES;
    let mut out = Vec::new();
    out.extend_from_slice(&(total as u32).to_be_bytes());
    out.extend_from_slice(&(written.len() as u32).to_be_bytes());
    out.extend_from_slice(&crc32(&out).to_be_bytes());
    out.extend_from_slice(&written);
    out.extend_from_slice(payload);
    out.extend_from_slice(&crc32(&out).to_be_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Messages of Amazon's own test suite for the format (`smithy-lang/smithy`, aws-event-stream).
    const PAYLOAD_NO_HEADERS: &str = "0000001d00000000fd528c5a7b27666f6f273a27626172277dc3653936";
    const PAYLOAD_ONE_STRING_HEADER: &str = "0000003d0000002007fd83960c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b27666f6f273a27626172277d8d9c08b1";

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
    }

    #[test]
    fn the_published_messages_are_read() {
        for hex in [PAYLOAD_NO_HEADERS, PAYLOAD_ONE_STRING_HEADER] {
            let mut frames = Frames::default();
            frames.push(&bytes(hex));
            let read = frames.next_frame().expect("sound").expect("complete");
            assert_eq!(&read.payload[..], b"{'foo':'bar'}");
            assert!(!frames.is_mid_frame());
        }
        assert_eq!(frame(&[], b"{'foo':'bar'}"), bytes(PAYLOAD_NO_HEADERS));
        assert_eq!(frame(&[("content-type", "application/json")], b"{'foo':'bar'}"), bytes(PAYLOAD_ONE_STRING_HEADER));
    }

    #[test]
    fn the_checksum_is_that_of_gzip() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let whole = frame(&[(":message-type", "event"), (":event-type", "chunk")], b"{}");
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            let mut frames = Frames::default();
            frames.push(&damaged);
            assert_eq!(frames.next_frame(), Err(Damaged), "byte {at}");
        }
    }

    proptest! {
        #[test]
        fn messages_are_read_however_they_are_cut(payloads in prop::collection::vec(".{0,40}", 1..5), size in 1_usize..40) {
            let stream: Vec<u8> =
                payloads.iter().flat_map(|text| frame(&[(":message-type", "event")], text.as_bytes())).collect();
            let mut frames = Frames::default();
            let mut read = Vec::new();
            for chunk in stream.chunks(size) {
                frames.push(chunk);
                while let Some(frame) = frames.next_frame().expect("sound") {
                    read.push(String::from_utf8(frame.payload.to_vec()).expect("text"));
                }
            }
            prop_assert_eq!(read, payloads);
            prop_assert!(!frames.is_mid_frame());
        }

        #[test]
        fn noise_is_never_a_panic(noise in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut frames = Frames::default();
            frames.push(&noise);
            while let Ok(Some(_)) = frames.next_frame() {}
        }
    }
}
