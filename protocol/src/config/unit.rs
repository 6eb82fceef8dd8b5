//! The unit of an amount of memory, and the valid unit to write in place of an invalid one.
//!
//! Ambiguous units are invalid: `MB` and `M` mean ten to the sixth to some people and two to the
//! twentieth to others. The error names the unit to write.

use crate::words::sanitized;

/// The most characters of an unknown unit that an error quotes.
const LONGEST: usize = 20;

/// The error of this text, if its unit is invalid.
pub(super) fn complaint(text: &str) -> Option<String> {
    let (number, unit) = cut(text);
    number.parse::<f64>().ok()?;
    let meant = match unit.to_ascii_lowercase().as_str() {
        "" => return Some("has no unit; write MiB or GiB, as \"512MiB\"".to_owned()),
        "k" | "kb" | "ki" | "kib" => "KiB",
        "m" | "mb" | "mi" | "mib" => "MiB",
        "g" | "gb" | "gi" | "gib" => "GiB",
        "t" | "tb" | "ti" | "tib" => "TiB",
        _ => "MiB or GiB, as \"512MiB\"",
    };
    let is_one = matches!(unit, "B" | "KiB" | "MiB" | "GiB" | "TiB");
    (!is_one).then(|| {
        let unit = sanitized(unit, LONGEST);
        format!("{unit} is no unit of memory here; write {meant}")
    })
}

/// The number and the unit, both unchecked.
pub(super) fn cut(text: &str) -> (&str, &str) {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    (number, unit.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_unit_is_named_with_the_valid_one() {
        for (text, said) in [
            ("500MB", "MB is no unit of memory here; write MiB"),
            ("4G", "G is no unit of memory here; write GiB"),
            ("1.5 Gi", "Gi is no unit of memory here; write GiB"),
            ("512mib", "mib is no unit of memory here; write MiB"),
            ("9kb", "kb is no unit of memory here; write KiB"),
            ("2Ti", "Ti is no unit of memory here; write TiB"),
            ("2 sacks", "sacks is no unit of memory here; write MiB or GiB, as \"512MiB\""),
            ("512", "has no unit; write MiB or GiB, as \"512MiB\""),
        ] {
            assert_eq!(complaint(text).as_deref(), Some(said), "{text}");
        }
    }

    #[test]
    fn a_text_with_a_valid_unit_has_no_error_of_the_unit() {
        for text in ["500MiB", "0B", "", "MiB", "-1MiB", "1.2.3GiB", "lots"] {
            assert_eq!(complaint(text), None, "{text}");
        }
    }
}
