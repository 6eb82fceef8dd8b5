//! What a request to the host's socket says, read strictly: a mistake is named, and nothing is guessed.

use crate::refused::Refused;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use std::time::Duration;
use windlass_protocol::Moment;

/// How far back `explain` looks unless told otherwise, in minutes.
const HOUR: u64 = 60;

/// The body of an order that has none: empty, `null` or `{}`.
pub(super) fn nothing(body: &[u8]) -> Result<(), Refused> {
    match body.trim_ascii() {
        b"" | b"null" | b"{}" => Ok(()),
        _ => Err(Refused::Senseless("the body: this order takes none".to_owned())),
    }
}

pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let field = if path == "." { "the body".to_owned() } else { path };
        Refused::Senseless(format!("{field}: {}", error.inner()))
    })?;
    json.end().map_err(|error| Refused::Senseless(format!("the body: {error}")))?;
    Ok(value)
}

pub(super) fn minutes(query: Option<&str>) -> Result<u64, Refused> {
    let Some(query) = query.filter(|query| !query.is_empty()) else { return Ok(HOUR) };
    let shown: String = query.chars().take(100).collect();
    query
        .strip_prefix("minutes=")
        .and_then(|minutes| minutes.parse().ok())
        .filter(|minutes| (1..=HOUR).contains(minutes))
        .ok_or_else(|| {
            Refused::Senseless(format!("{shown}: must be minutes=N, with N from 1 to 60"))
        })
}

pub(super) fn moment(until: &str, now: Moment) -> Result<Moment, Refused> {
    /// Longer than this is a file's `mode = "observe"`.
    const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);
    let shown: String = until.chars().take(50).collect();
    let time: Timestamp = until.parse().map_err(|_| {
        Refused::Senseless(format!("until = {shown}: must be RFC 3339, as 2026-12-24T18:00:00Z"))
    })?;
    let until = u64::try_from(time.as_millisecond()).map(Moment::from_millis).unwrap_or_default();
    if until <= now || until.since(now) > LONGEST {
        return Err(Refused::Senseless(format!(
            "until = {shown}: must be in the future, and less than 366 days away"
        )));
    }
    Ok(until)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_ends_in_the_future_and_within_366_days() {
        const NOW: i64 = 1_795_255_200_000;
        const LONGEST: i64 = 366 * 24 * 3_600_000;
        for (millis, may_be) in [(-1, false), (0, false), (1, true)]
            .into_iter()
            .chain([(LONGEST, true), (LONGEST + 1, false)])
        {
            let text = Timestamp::from_millisecond(NOW + millis).unwrap().to_string();
            let (now, until) = (Moment::from_millis(1_795_255_200_000), NOW + millis);
            let until = may_be.then(|| Moment::from_millis(until.try_into().unwrap()));
            assert_eq!(moment(&text, now).ok(), until, "{text}");
        }
    }
}
