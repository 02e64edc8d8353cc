//! Numbers in JSON that are as long as a payment card number.

/// The length of the shortest payment card number. Other findings do not consist of digits alone.
const MIN_DIGITS: usize = 13;
/// The length of the longest payment card number.
const MAX_DIGITS: usize = 19;

/// Whether a number may be as long as a card number: of enough digits, or written with an exponent or a fraction.
pub(super) fn is_long_number(number: &[u8]) -> bool {
    let is_digits = number.iter().all(u8::is_ascii_digit);
    is_digits && number.len() >= MIN_DIGITS || !is_digits && integer_of(number).is_some()
}

/// The digits of a whole number as long as a card number that is written with an exponent or a fraction, such as
/// `4.111111111111111e15`.
pub(super) fn integer_of(number: &[u8]) -> Option<String> {
    let text =
        std::str::from_utf8(number).ok().filter(|text| text.as_bytes().first().is_some_and(u8::is_ascii_digit))?;
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    let length = usize::try_from(i32::try_from(whole.len()).ok()?.checked_add(exponent)?).ok()?;
    if !(MIN_DIGITS..=MAX_DIGITS).contains(&length) || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let rest = digits.get(length..).unwrap_or_default();
    let number = format!("{:0<length$}", &digits[..digits.len().min(length)]);
    rest.bytes().all(|digit| digit == b'0').then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_read_however_they_are_written() {
        let card = "4111111111111111";
        for number in
            [card, "4.111111111111111e15", "4111111111111111.00", "41111111111111110E-1", "0.4111111111111111e+16"]
        {
            let digits = integer_of(number.as_bytes()).map(|digits| digits.trim_start_matches('0').to_owned());
            assert_eq!(digits.as_deref(), Some(card), "{number}");
            assert!(is_long_number(number.as_bytes()), "{number}");
        }
        for number in [
            "-4111111111111111.0",
            "4111111111111111.5",
            "1.5",
            "1e400",
            "1e-400",
            "1e99999999999",
            "e5",
            "4.1.1e15",
            "",
        ] {
            assert_eq!(integer_of(number.as_bytes()), None, "{number}");
        }
    }
}
