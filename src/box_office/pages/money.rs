//! Amounts as a buyer reads them. `static/shop.js` is handed the same symbol and digits.

/// How a currency is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Currency {
    /// What stands before the number.
    pub(super) symbol: String,
    /// Digits of the minor unit (ISO 4217).
    pub(super) digits: usize,
}

impl Currency {
    pub(super) fn of(code: &str) -> Self {
        let symbol = match code {
            "EUR" => "€".to_owned(),
            "USD" => "$".to_owned(),
            "GBP" => "£".to_owned(),
            "JPY" => "¥".to_owned(),
            other => format!("{other}\u{a0}"),
        };
        let digits = match code {
            "BIF" | "CLP" | "DJF" | "GNF" | "ISK" | "JPY" | "KMF" | "KRW" | "PYG" | "RWF" | "UGX" | "VND" | "VUV"
            | "XAF" | "XOF" | "XPF" => 0,
            "BHD" | "IQD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND" => 3,
            _ => 2,
        };
        Self { symbol, digits }
    }

    /// `(EUR, 123456)` → `€1,234.56`.
    pub(super) fn show(&self, minor: u64) -> String {
        let padded = format!("{minor:0>width$}", width = self.digits + 1);
        let (whole, fraction) = padded.split_at(padded.len() - self.digits);
        let mut grouped = String::new();
        for (at, digit) in whole.chars().enumerate() {
            if at > 0 && (whole.len() - at).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{}{grouped}{point}{fraction}", self.symbol)
    }
}

#[cfg(test)]
mod tests {
    use super::Currency;

    #[test]
    fn amounts_have_the_digits_of_their_currency() {
        let shown = |code, minor| Currency::of(code).show(minor);
        assert_eq!(shown("EUR", 4_500), "€45.00");
        assert_eq!(shown("EUR", 5), "€0.05");
        assert_eq!(shown("USD", 123_456_789), "$1,234,567.89");
        assert_eq!(shown("JPY", 4_500), "¥4,500");
        assert_eq!(shown("KWD", 12_345), "KWD\u{a0}12.345");
    }
}
