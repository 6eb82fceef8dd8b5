//! Parses RFC 3339 into a [`Moment`], for the annotation of a pause.

use crate::Moment;

/// Parses `2026-11-21T16:04:00Z`, with an optional fraction and any offset. `None` if the text is not a
/// time, or is before 1970.
pub(crate) fn parse(text: &str) -> Option<Moment> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let (clock, offset) = time.split_at(time.find(['Z', 'z', '+', '-'])?);
    let (clock, fraction) = clock.split_once('.').map_or((clock, None), |(c, f)| (c, Some(f)));
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days(year, month, day)? * 86_400 + hour * 3600 + minute * 60 + second;
    let millis = (seconds - offset_seconds(offset)?) * 1000 + fraction.map_or(Some(0), millis)?;
    u64::try_from(millis).ok().map(Moment::from_millis)
}

/// Numbers with exactly these counts of digits.
fn numbers<const N: usize>(text: &str, between: char, digits: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(between);
    let mut numbers = [0; N];
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts.next()?;
        if part.len() != digits || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

/// The first three digits of a fraction.
fn millis(fraction: &str) -> Option<i64> {
    if fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    format!("{fraction:0<3}")[..3].parse().ok()
}

fn offset_seconds(offset: &str) -> Option<i64> {
    let (sign, clock) = match offset.split_at_checked(1)? {
        ("Z" | "z", "") => return Some(0),
        ("+", clock) => (1, clock),
        ("-", clock) => (-1, clock),
        _ => return None,
    };
    let [hour, minute] = numbers(clock, ':', [2, 2])?;
    (hour < 24 && minute < 60).then_some(sign * (hour * 3600 + minute * 60))
}

/// Days from 1970-01-01 to a day of the Gregorian calendar, if that day exists.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let lengths = [31, 28 + i64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let before = usize::try_from(month - 1).ok()?;
    let length = *lengths.get(before)?;
    if !(1..=length).contains(&day) {
        return None;
    }
    let past = year - 1;
    let years = past * 365 + past / 4 - past / 100 + past / 400;
    // 719,162 days lie between the first days of the years 1 and 1970.
    Some(years - 719_162 + lengths[..before].iter().sum::<i64>() + day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_fraction_and_offset() {
        for (text, millis) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T00:00:00.5z", 500),
            ("2000-02-29T12:00:00Z", 951_825_600_000),
            ("2024-02-29T00:00:00Z", 1_709_164_800_000),
            ("2026-11-21T16:04:00Z", 1_795_277_040_000),
            ("2026-11-21T17:34:00.123456+01:30", 1_795_277_040_123),
            ("2026-11-21 15:04:00-01:00", 1_795_277_040_000),
            ("2026-11-21T23:59:59Z", 1_795_305_599_000),
            // The last second of a minute that has a leap second is the first of the next.
            ("2026-11-21T23:59:60Z", 1_795_305_600_000),
        ] {
            assert_eq!(parse(text), Some(Moment::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "tomorrow",
            "2026-11-21",
            "2026-11-21T16:04:00",
            "2026-11-21T16:04Z",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-11-21T24:00:00Z",
            "2026-11-21T16:60:00Z",
            "2026-11-21T16:04:61Z",
            "2026-11-21T16:04:00.Z",
            "2026-11-21T16:04:00+1",
            "2026-11-21T16:04:00+24:00",
            "2026-11-21T16:04:00+01:60",
            "2026-11-21T16:04:00++1:30",
            "2026-11-21T6:04:00Z",
            "2026-1-21T16:04:00Z",
            "2100-02-29T00:00:00Z",
            "2026-11-21T16:04:00Zx",
            "1969-12-31T23:59:59Z",
            "+026-11-21T16:04:00Z",
            "2026-11-21T16:04:00é",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
