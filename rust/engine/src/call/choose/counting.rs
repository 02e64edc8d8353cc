//! Units of a call other than tokens: estimated before the call to reserve them, and after it if the provider did not
//! report them.

use crate::blocking;
use crate::call::choose::endpoints::{BillingUnit, Endpoint};
use crate::gate::upload::Stored;
use crate::upstream::wire::Chunk;
use fairlead_core::{json, Units};
use fairlead_dialect::openai::metered::Metered;
use fairlead_dialect::openai::request::MAX_DEPTH;
use std::os::unix::fs::FileExt as _;

/// The number of pages of a document is unknown before it is read.
const ASSUMED_PAGES: u64 = 16;
/// The assumed rate of a recording of unknown length: 128 kbit/s, common for compressed speech.
const USUAL_BYTES_PER_S: u64 = 16_000;
/// The lowest rate of compressed speech, which gives the longest possible duration.
const LEAST_BYTES_PER_S: u64 = 2_000;
/// The highest rate that the header of a WAV file may declare: 192 kHz, 8 channels, 32 bits.
const MOST_BYTES_PER_S: u64 = 6_144_000;
/// The length of a WAV header, which contains the bytes per second.
const WAV_HEAD_BYTES: u64 = 44;

/// The maximum units of a request, and the likely units if the provider reports none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Expected {
    pub most: Units,
    pub likely: Units,
}

impl Expected {
    fn just(units: Units) -> Self {
        Self { most: units, likely: units }
    }
}

/// Estimates the units of a JSON request; `choices` is the number of requested results.
pub(crate) fn of_json(endpoint: &Endpoint, body: &[u8], choices: u64) -> Expected {
    let none = Units::default();
    match endpoint.billing {
        BillingUnit::Images => Expected { most: Units { images: choices, ..none }, likely: none },
        BillingUnit::Pages => Expected { most: Units { pages: ASSUMED_PAGES, ..none }, likely: none },
        BillingUnit::Searches => Expected::just(Units { queries: 1, ..none }),
        BillingUnit::Characters => {
            Expected::just(Units { characters: characters(body, endpoint.needs.member), ..none })
        }
        BillingUnit::Tokens | BillingUnit::Audio => Expected::default(),
    }
}

fn characters(body: &[u8], member: &str) -> u64 {
    let wanted = [member];
    let Ok(scan) = json::scan_object(body, &wanted, MAX_DEPTH) else { return 0 };
    let text = scan.get(member).and_then(|value| json::as_str(body, value));
    text.map_or(0, |text| text.chars().count() as u64)
}

/// Estimates the units of a form.
pub(crate) async fn of_form(endpoint: &Endpoint, stored: &Stored, choices: u64) -> Expected {
    if endpoint.billing != BillingUnit::Audio {
        return of_json(endpoint, b"{}", choices);
    }
    let Some(part) = stored.form.part(endpoint.needs.member) else { return Expected::default() };
    let bytes = part.end - part.start;
    let head = stored.chunk(part.start, part.end.min(part.start + WAV_HEAD_BYTES));
    let (likely, most) = match read(head).await.as_deref().and_then(wav_bytes_per_s) {
        Some(bytes_per_s) => (bytes_per_s, bytes_per_s),
        None => (USUAL_BYTES_PER_S, LEAST_BYTES_PER_S),
    };
    let lasting = |bytes_per_s: u64| {
        let audio_ms = bytes.saturating_mul(1_000).div_ceil(bytes_per_s);
        Units { audio_ms, ..Units::default() }
    };
    Expected { most: lasting(most), likely: lasting(likely) }
}

async fn read(chunk: Chunk) -> Option<Vec<u8>> {
    match chunk {
        Chunk::Bytes(bytes) => Some(bytes.to_vec()),
        Chunk::File { file, start, end } => {
            let work = move || {
                let mut head = vec![0; usize::try_from(end - start).ok()?];
                file.read_exact_at(&mut head, start).ok().map(|()| head)
            };
            blocking::disk(work).await.ok().flatten()
        }
    }
}

/// Parses RIFF, WAVE and a leading format chunk, the layout that recorders write.
fn wav_bytes_per_s(head: &[u8]) -> Option<u64> {
    if head.get(..4)? != b"RIFF" || head.get(8..16)? != b"WAVEfmt " {
        return None;
    }
    let bytes_per_s = u64::from(u32::from_le_bytes(head.get(28..32)?.try_into().ok()?));
    (LEAST_BYTES_PER_S..=MOST_BYTES_PER_S).contains(&bytes_per_s).then_some(bytes_per_s)
}

/// Returns the units that a response used.
pub(crate) fn came_to(endpoint: &Endpoint, seen: &Metered, likely: Units) -> Units {
    let units = likely.updated_with(seen.units);
    match endpoint.billing {
        BillingUnit::Images => Units { images: seen.listed, ..units },
        _ => units,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::choose::endpoints;
    use fairlead_core::routes::Relayed;

    fn expected(kind: Relayed, body: &str) -> Expected {
        of_json(endpoints::of(kind), body.as_bytes(), 3)
    }

    #[test]
    fn a_request_tells_what_it_may_come_to() {
        assert_eq!(expected(Relayed::Images, "{}").most.images, 3);
        assert_eq!(expected(Relayed::Speech, r#"{"input":"gr\u00fc\u00df dich"}"#).likely.characters, 9);
        assert_eq!(expected(Relayed::Speech, r#"{"input":7}"#).likely.characters, 0);
        assert_eq!(expected(Relayed::Rerank, "{}").likely.queries, 1);
        assert_eq!(expected(Relayed::Ocr, "{}").likely.pages, 0);
        assert_eq!(expected(Relayed::Embeddings, r#"{"input":"x"}"#).most, Units::default());
    }

    #[test]
    fn a_recording_is_as_long_as_its_header_says() {
        let mut head = b"RIFF....WAVEfmt ............".to_vec();
        head.extend(32_000_u32.to_le_bytes());
        assert_eq!(wav_bytes_per_s(&head), Some(32_000));
        for absurd in [0, 1, u32::MAX] {
            head.truncate(28);
            head.extend(absurd.to_le_bytes());
            assert_eq!(wav_bytes_per_s(&head), None, "{absurd}");
        }
        assert_eq!(wav_bytes_per_s(b"ID3"), None);
    }
}
