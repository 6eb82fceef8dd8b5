//! Kubernetes quantities, as the reference reads and writes them.
//!
//! Accepted: `2`, `0.25`, `1e3`, `250m`, `1536Mi`, `2k`; fractions of the smallest unit are rounded up.
//! Negative and too large amounts are errors; in the reference both wrap around. Written: the canonical
//! form, with the largest suffix that gives a whole number.

use crate::go_json::{Json, Path, Read, Write, Writer, read};
use crate::{BadBody, Bytes, MilliCpu};
use thiserror::Error;

/// The largest amount that a quantity holds, in its smallest unit.
const LARGEST: u64 = i64::MAX.unsigned_abs();
pub(crate) const LARGEST_MEMORY: Bytes = Bytes::from_bytes(LARGEST);
pub(crate) const LARGEST_CPU: MilliCpu = MilliCpu::from_milli(LARGEST);

/// The most significant digits; further digits only round up.
const DIGITS: usize = 20;

/// Why a text is not an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum QuantityError {
    /// Not in the form of a quantity.
    #[error("a quantity, as 250m, 0.5, 2 or 512Mi")]
    Form,
    /// Below zero.
    #[error("a quantity of zero or more")]
    Negative,
    /// Too large.
    #[error("a quantity that fits into 63 bits")]
    TooLarge,
}

/// Writes an amount of CPU as Kubernetes does: `250m`, `2`.
pub fn cpu_text(cpu: MilliCpu) -> String {
    let milli = cpu.milli();
    if milli.is_multiple_of(1000) { canonical(milli / 1000) } else { format!("{milli}m") }
}

/// Writes an amount of memory as Kubernetes does: `512Mi`, `0`.
pub fn memory_text(memory: Bytes) -> String {
    canonical(memory.bytes())
}

/// Reads an amount of CPU.
///
/// # Errors
/// The text is not a quantity, is negative, or is too large.
pub fn cpu(text: &str) -> Result<MilliCpu, QuantityError> {
    scaled(text, 3).map(MilliCpu::from_milli)
}

/// Reads an amount of memory, in bytes.
///
/// # Errors
/// The text is not a quantity, is negative, or is too large.
pub fn memory(text: &str) -> Result<Bytes, QuantityError> {
    scaled(text, 0).map(Bytes::from_bytes)
}

/// An amount in JSON is a quantity, as text or as a bare number; it is written as text.
macro_rules! in_json {
    ($type:ty, $read:path, $write:path) => {
        impl Read for $type {
            fn read(&mut self, at: &Path<'_>, json: &Json) -> Result<(), BadBody> {
                *self = read::quantity(at, json, $read)?;
                Ok(())
            }
        }

        impl Write for $type {
            fn write(&self, out: &mut Writer) {
                out.text(&$write(*self));
            }
        }
    };
}

in_json!(MilliCpu, cpu, cpu_text);
in_json!(Bytes, memory, memory_text);

/// Binary suffixes from 1024 on, decimal ones below, which leaves `1k` for a thousand.
fn canonical(amount: u64) -> String {
    let (base, suffixes): (u64, &[&str]) = if amount < 1024 {
        (1000, &["", "k"])
    } else {
        (1024, &["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"])
    };
    let (mut amount, mut power) = (amount, 0);
    // The last suffix exceeds 64 bits.
    while amount != 0 && amount.is_multiple_of(base) {
        amount /= base;
        power += 1;
    }
    format!("{amount}{}", suffixes[power])
}

/// The amount times ten to the power of `decimals`, rounded up.
fn scaled(text: &str, decimals: i64) -> Result<u64, QuantityError> {
    // As in the reference: a sign, digits, a fraction and a suffix, each of which may be empty. A text
    // without a digit is zero.
    let text = text.trim();
    let (whole, rest) = digits(text.strip_prefix(['+', '-']).unwrap_or(text));
    let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
    let exponents = exponents(suffix).filter(|_| !text.is_empty());
    let (decimal, binary) = exponents.ok_or(QuantityError::Form)?;

    let (mut amount, mut kept, mut dropped, mut more) = (0_u128, 0, 0_i64, false);
    for digit in whole.bytes().chain(fraction.bytes()) {
        if kept == DIGITS {
            (dropped, more) = (dropped.saturating_add(1), more || digit != b'0');
        } else if kept > 0 || digit != b'0' {
            (amount, kept) = (amount * 10 + u128::from(digit - b'0'), kept + 1);
        }
    }
    if amount == 0 {
        return Ok(0);
    }
    if text.starts_with('-') {
        return Err(QuantityError::Negative);
    }
    amount += u128::from(more);

    let places = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    let power = decimal.saturating_add(decimals).saturating_add(dropped).saturating_sub(places);
    // Twenty digits and sixty bits fit into 127.
    let amount = amount << binary;
    let tens = u32::try_from(power.unsigned_abs()).ok().and_then(|n| 10u128.checked_pow(n));
    let amount = match (power >= 0, tens) {
        (true, Some(tens)) => amount.checked_mul(tens).ok_or(QuantityError::TooLarge)?,
        (true, None) => return Err(QuantityError::TooLarge),
        (false, Some(tens)) => amount.div_ceil(tens),
        (false, None) => 1,
    };
    match u64::try_from(amount) {
        Ok(amount) if amount <= LARGEST => Ok(amount),
        Ok(_) | Err(_) => Err(QuantityError::TooLarge),
    }
}

/// Leading digits, and what follows them.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// The powers of ten and of two of a suffix.
fn exponents(suffix: &str) -> Option<(i64, u32)> {
    Some(match suffix {
        "n" => (-9, 0),
        "u" => (-6, 0),
        "m" => (-3, 0),
        "" => (0, 0),
        "k" => (3, 0),
        "M" => (6, 0),
        "G" => (9, 0),
        "T" => (12, 0),
        "P" => (15, 0),
        "E" => (18, 0),
        "Ki" => (0, 10),
        "Mi" => (0, 20),
        "Gi" => (0, 30),
        "Ti" => (0, 40),
        "Pi" => (0, 50),
        "Ei" => (0, 60),
        _ => {
            // A sign and digits, as Rust reads them.
            (suffix.strip_prefix(['e', 'E'])?.parse().ok()?, 0)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_read_in_every_form_and_rounded_up() {
        for (text, milli) in [
            ("0", 0),
            ("2", 2000),
            ("0.25", 250),
            ("250m", 250),
            ("1e3", 1_000_000),
            ("1E-1", 100),
            ("1e+1", 10_000),
            ("2k", 2_000_000),
            ("0.0001", 1),
            ("100n", 1),
            ("1500001n", 2),
            ("1500u", 2),
            ("999001u", 1000),
            ("1.0005", 1001),
            ("1.0000000000000000000000000", 1000),
            ("1.0000000000000000000000001", 1001),
            (" 1 ", 1000),
            ("+1", 1000),
            (".5", 500),
            ("1.", 1000),
            ("1Ki", 1_024_000),
            ("0.5Ki", 512_000),
            ("00000000000000000000000000000000000001", 1000),
            ("0.00000000000000000000000000000000000001", 1),
            ("-0", 0),
            ("1e-99999", 1),
            ("m", 0),
        ] {
            assert_eq!(cpu(text), Ok(MilliCpu::from_milli(milli)), "{text}");
        }
    }

    #[test]
    fn memory_is_read_in_bytes_and_rounded_up() {
        for (text, bytes) in [
            ("1Gi", 1 << 30),
            ("1536Mi", 1536 << 20),
            ("1.5Gi", 1536 << 20),
            ("1G", 1_000_000_000),
            ("1m", 1),
            ("1500m", 2),
            ("3k", 3_000),
            ("3M", 3_000_000),
            ("3T", 3_000_000_000_000),
            ("3P", 3_000_000_000_000_000),
            ("3E", 3_000_000_000_000_000_000),
            ("3Ti", 3 << 40),
            ("3Pi", 3 << 50),
            ("7Ei", 7 << 60),
            ("9223372036854775807", LARGEST),
            ("0.1Ki", 103),
            ("9223372036854775806.00000000000000000000001", LARGEST),
        ] {
            assert_eq!(memory(text), Ok(Bytes::from_bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        use QuantityError::{Form, Negative, TooLarge};
        for (text, error) in [
            ("", Form),
            (" ", Form),
            ("x", Form),
            ("1 Gi", Form),
            ("1GiB", Form),
            ("1e", Form),
            ("1e+", Form),
            ("1e1.5", Form),
            ("1m3", Form),
            ("--1", Form),
            ("0x10", Form),
            ("NaN", Form),
            ("1e99999999999999999999", Form),
            ("-1", Negative),
            ("-0.1m", Negative),
            ("9223372036854775808", TooLarge),
            ("8Ei", TooLarge),
            ("1e99", TooLarge),
            ("1e99999", TooLarge),
            ("99999999999999999999999999999999999999999999", TooLarge),
        ] {
            assert_eq!(memory(text), Err(error), "{text}");
        }
        assert_eq!(cpu("9223372036854775807"), Err(TooLarge));
    }

    #[test]
    fn amounts_are_written_in_the_canonical_form() {
        for (milli, text) in [
            (0, "0"),
            (250, "250m"),
            (1500, "1500m"),
            (2000, "2"),
            (1_000_000, "1k"),
            (1_024_000, "1Ki"),
            (1_500_500, "1500500m"),
        ] {
            assert_eq!(cpu_text(MilliCpu::from_milli(milli)), text);
        }
        for (bytes, text) in [
            (0, "0"),
            (512, "512"),
            (1000, "1k"),
            (1024, "1Ki"),
            (1 << 30, "1Gi"),
            (1536 << 20, "1536Mi"),
            ((1 << 30) + 1, "1073741825"),
            (1 << 60, "1Ei"),
        ] {
            assert_eq!(memory_text(Bytes::from_bytes(bytes)), text);
        }
    }
}
