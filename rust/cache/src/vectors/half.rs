//! Half-precision numbers (IEEE 754 binary16).

/// Converts a half-precision number to single precision. A table of vectors has no infinities or not-a-number values;
/// they would become large numbers.
pub(super) fn to_f32(half: u16) -> f32 {
    let magnitude = f32::from_bits(u32::from(half & 0x7fff) << 13);
    // Adjusts the exponent bias, which differs between the formats: 2^(127 - 15).
    let value = magnitude * f32::from_bits(0x7780_0000);
    f32::from_bits(value.to_bits() | u32::from(half & 0x8000) << 16)
}

#[cfg(test)]
mod tests {
    use super::to_f32;

    #[test]
    fn known_numbers() {
        for (half, single) in [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x7bff, 65_504.0),
            (0x0001, 5.960_464_5e-8),
            (0x8400, -6.103_515_6e-5),
        ] {
            assert!((to_f32(half) - single).abs() <= single.abs() * 1e-6, "{half:#06x}");
        }
    }
}
