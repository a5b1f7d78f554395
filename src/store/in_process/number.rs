//! Numbers as Redis reads and writes them.

/// A decimal integer without leading zeros, plus sign or spaces.
pub fn parse_integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let canonical = match digits {
        [b'0'] => text.len() == 1,
        [b'1'..=b'9', ..] => true,
        _ => false,
    };
    if !canonical {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A floating-point number or an infinity; never NaN.
pub fn parse_float(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let number: f64 = text.parse().ok()?;
    // A finite text too large for a double is an error, not an infinity.
    let overflowed = number.is_infinite() && text.contains(|c: char| c.is_ascii_digit());
    (!number.is_nan() && !overflowed).then_some(number)
}

/// C's `%.17g`: digits enough for any double, whole numbers below 10^17 written plainly.
pub fn format_float(number: f64) -> String {
    if !number.is_finite() {
        return if number.is_nan() { "nan".into() } else { format!("{number}") };
    }
    let scientific = format!("{number:.16e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..17).contains(&exponent) {
        let decimals = usize::try_from(16 - exponent).unwrap_or(0);
        return without_trailing_zeros(&format!("{number:.decimals$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_trailing_zeros(mantissa), exponent.abs())
}

fn without_trailing_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_c_writes_them() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (3.0, "3"),
            (0.5, "0.5"),
            (0.1, "0.10000000000000001"),
            (1_700_000_000_123_456.0, "1700000000123456"),
            (9_007_199_254_740_992.0, "9007199254740992"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (-2.5e20, "-2.5e+20"),
            (1e-4, "0.0001"),
            (1.5e-5, "1.5e-05"),
            (1e300, "1.0000000000000001e+300"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(format_float(number), text);
        }
    }

    #[test]
    fn integers_are_strict() {
        assert_eq!(parse_integer(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse_integer(b"0"), Some(0));
        for text in ["", "-", "-0", "01", "+1", " 1", "1 ", "1.0", "9223372036854775808", "x"] {
            assert_eq!(parse_integer(text.as_bytes()), None, "{text:?}");
        }
    }
}
