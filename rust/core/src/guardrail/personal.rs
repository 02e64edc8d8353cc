//! Personal data: email addresses, payment cards, bank accounts, telephone and social security numbers. A number counts
//! only with valid check digits or with the separators that people write.

use super::patterns::{always, Characters, Pattern};
use std::sync::LazyLock;

pub(super) static PATTERNS: LazyLock<[Pattern; 5]> = LazyLock::new(|| {
    [
        Pattern::new(
            "email",
            const { &[Characters::one(b'@')] },
            r"[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@(?:[A-Za-z0-9\u{C0}-\u{24F}-]{1,63}\.){1,5}[A-Za-z]{2,24}(?-u:\b)",
            always,
        )
        .anywhere(),
        Pattern::new(
            "card",
            const { &[Characters::DIGITS] },
            r"(?-u:\b)[2-6][0-9](?:[ -]?[0-9]){11,17}(?-u:\b)",
            is_card,
        ),
        Pattern::new(
            "iban",
            const { &[Characters::CAPITALS, Characters::DIGITS] },
            r"(?-u:\b)[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?-u:\b)",
            is_iban,
        ),
        Pattern::new(
            "ssn",
            const { &[Characters::one(b'-'), Characters::DIGITS] },
            r"(?-u:\b)[0-9]{3}-[0-9]{2}-[0-9]{4}(?-u:\b)",
            is_ssn,
        ),
        Pattern::new(
            "phone",
            const { &[Characters::DIGITS] },
            r"(?:\+[1-9][0-9]{0,2}[ .-]?(?:\([0-9]{1,4}\)[ .-]?)?[0-9]{1,4}(?:[ .-]?[0-9]{2,4}){2,4}|\([2-9][0-9]{2}\) ?[0-9]{3}-[0-9]{4}|(?-u:\b)[2-9][0-9]{2}-[0-9]{3}-[0-9]{4})(?-u:\b)",
            is_phone,
        ),
    ]
});

fn digits(text: &str) -> impl DoubleEndedIterator<Item = u32> + '_ {
    text.chars().filter_map(|c| c.to_digit(10))
}

/// Whether the number has the prefix and length of a card network and passes the Luhn check (ISO/IEC 7812-1).
fn is_card(text: &str) -> bool {
    let count = digits(text).count();
    let range = digits(text).take(2).fold(0, |range, digit| range * 10 + digit);
    let is_length = match range {
        40..=49 => matches!(count, 13 | 16 | 19),
        34 | 37 => count == 15,
        30 | 36 | 38 | 39 => count == 14,
        22..=27 | 51..=55 => count == 16,
        50 | 56..=69 => (16..=19).contains(&count),
        _ => false,
    };
    let sum: u32 = digits(text)
        .rev()
        .enumerate()
        .map(|(at, digit)| match digit * (1 + at as u32 % 2) {
            twice @ 10.. => twice - 9,
            once => once,
        })
        .sum();
    is_length && sum.is_multiple_of(10)
}

/// ISO 13616: with its first four characters moved to the end and letters replaced by two digits, the number is 1
/// modulo 97.
fn is_iban(text: &str) -> bool {
    let plain: Vec<u8> = text.bytes().filter(|byte| *byte != b' ').collect();
    if !(15..=34).contains(&plain.len()) {
        return false;
    }
    let rest = plain[4..].iter().chain(&plain[..4]).try_fold(0_u32, |rest, byte| {
        let value = char::from(*byte).to_digit(36)?;
        Some((rest * if value > 9 { 100 } else { 10 } + value) % 97)
    });
    rest == Some(1)
}

/// Areas 000, 666 and 900 and above, group 00 and serial 0000 are never assigned.
fn is_ssn(text: &str) -> bool {
    let (area, group, serial) = (&text[..3], &text[4..6], &text[7..]);
    !matches!(area, "000" | "666") && !area.starts_with('9') && group != "00" && serial != "0000"
}

/// E.164 allows at most 15 digits. A number of fewer than 8 digits can be many other things.
fn is_phone(text: &str) -> bool {
    (8..=15).contains(&digits(text).count())
}
