//! The unit of an amount of memory, and what to write in place of one that is none.
//!
//! Only units whose meaning is the same to everybody are taken. `MB` and `M` are ten to the sixth to
//! some and two to the twentieth to others, so neither is, and the error says what to write.

use crate::words::defused;

/// Characters of a unit that a person made up.
const LONGEST: usize = 20;

/// What is wrong with the unit of this text, if that is what is wrong with it.
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
        let unit = defused(unit, LONGEST);
        format!("{unit} is no unit of memory here; write {meant}")
    })
}

/// The number and the unit, neither of them checked.
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
    fn a_unit_that_is_none_is_named_with_the_one_to_write() {
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
    fn a_text_whose_unit_is_right_is_wrong_for_another_reason() {
        for text in ["500MiB", "0B", "", "MiB", "-1MiB", "1.2.3GiB", "lots"] {
            assert_eq!(complaint(text), None, "{text}");
        }
    }
}
