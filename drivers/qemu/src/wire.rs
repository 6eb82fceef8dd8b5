//! What QEMU says on a monitor: one JSON object per line.
//!
//! A [`Line`] is a greeting, the answer to one command, or an event. Anything else is
//! not QMP, and ends the connection. How lines are bounded and read is in [`Lines`]; who waits
//! for which is in `link` and `reader`. The result of a command is kept as it came, and is read once, by
//! the one who asked.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use windlass_protocol::words::sanitized;

/// Bytes of one line. The longest answer that is asked for here, `query-pci` of a machine full
/// of devices, has a tenth of that.
const LONGEST_LINE: usize = 1 << 20;

/// Bytes that are read at once: most answers are shorter, and each monitor has such a buffer.
const BUFFER: usize = 2 * 1024;

/// Characters of QEMU's words, and of words about them, that are shown and kept.
const MOST_WORDS: usize = 300;

/// One line from the monitor.
#[derive(Debug)]
pub(crate) enum Line {
    /// The first line of a connection.
    Greeting(Greeting),
    /// The answer to the command of this number.
    Answer(u64, Result<Returned, QmpError>),
    /// Something happened.
    Event(Event),
}

/// The first line of a connection.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Greeting {
    pub(crate) version: Package,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Package {
    pub(crate) qemu: Version,
}

/// A version of QEMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) struct Version {
    pub(crate) major: u32,
    pub(crate) minor: u32,
    pub(crate) micro: u32,
}

/// The result of a command, as it came.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Returned(Box<RawValue>);

/// A refusal by QEMU.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Error)]
#[error("{desc}")]
pub(crate) struct QmpError {
    pub(crate) class: String,
    pub(crate) desc: String,
}

/// Something that happened, as far as it is of use here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The guest restarted.
    Reset,
    /// A device is gone for good.
    Deleted(String),
    /// The guest keeps a device that it was asked to give back.
    Kept(String),
    /// Something else that may have changed a size, or whether QEMU runs the guest.
    Changed,
    /// Of no use here.
    Other,
}

/// Why a line could not be had.
#[derive(Debug, Error)]
pub(crate) enum BadLine {
    /// More than [`LONGEST_LINE`].
    #[error("a line of more than {LONGEST_LINE} bytes")]
    TooLong,
    /// Not a line of QMP.
    #[error("a line that is not qmp: {0}")]
    NotQmp(String),
    /// The connection broke.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// Lines of bounded length. [`Lines::next`] may be dropped and called again: nothing is lost.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    from: BufReader<R>,
    begun: Vec<u8>,
}

#[derive(Deserialize)]
struct RawLine {
    #[serde(rename = "QMP")]
    greeting: Option<Greeting>,
    #[serde(rename = "return")]
    done: Option<Returned>,
    error: Option<QmpError>,
    event: Option<String>,
    #[serde(default)]
    data: Value,
    id: Option<u64>,
}

// === impl Line ===

impl Line {
    /// Reads one line of text.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, BadLine> {
        let raw: RawLine =
            serde_json::from_slice(text).map_err(|error| BadLine::not_qmp(&error.to_string()))?;
        match raw {
            RawLine { greeting: Some(greeting), .. } => Ok(Self::Greeting(greeting)),
            RawLine { event: Some(name), data, .. } => Ok(Self::Event(Event::parse(&name, &data))),
            RawLine { id: Some(id), error: Some(QmpError { class, desc }), .. } => {
                let (class, desc) = (words(&class), words(&desc));
                Ok(Self::Answer(id, Err(QmpError { class, desc })))
            }
            RawLine { id: Some(id), done: Some(value), .. } => Ok(Self::Answer(id, Ok(value))),
            RawLine { error: Some(error), .. } => Err(BadLine::not_qmp(&error.desc)),
            _ => Err(BadLine::not_qmp("neither greeting, answer nor event")),
        }
    }
}

// === impl Returned ===

impl Returned {
    /// Reads it.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.0.get())
    }
}

// === impl BadLine ===

impl BadLine {
    fn not_qmp(why: &str) -> Self {
        Self::NotQmp(words(why))
    }
}

/// A text that QEMU had a part in, fit to be logged and shown.
pub(crate) fn words(text: &str) -> String {
    sanitized(text, MOST_WORDS)
}

// === impl Event ===

impl Event {
    fn parse(name: &str, data: &Value) -> Self {
        let device = |of: &Value| of.get("device").and_then(Value::as_str).map(str::to_owned);
        match name {
            "RESET" => Self::Reset,
            "DEVICE_DELETED" => device(data).map_or(Self::Changed, Self::Deleted),
            "MEM_UNPLUG_ERROR" | "DEVICE_UNPLUG_GUEST_ERROR" => {
                device(data).map_or(Self::Changed, Self::Kept)
            }
            "ACPI_DEVICE_OST" => {
                let info = data.get("info").unwrap_or(&Value::Null);
                match device(info) {
                    Some(device) if ejection_failed(info) => Self::Kept(device),
                    Some(_) | None => Self::Changed,
                }
            }
            "MEMORY_DEVICE_SIZE_CHANGE" => Self::Changed,
            // What stops the guest for another reason says STOP too; of a migration QEMU speaks only
            // where that was switched on.
            "STOP" | "RESUME" | "SUSPEND" | "WAKEUP" | "MIGRATION" => Self::Changed,
            _ => Self::Other,
        }
    }
}

/// ACPI 6.3, table 6-52 and 6-53: a request to eject, by hardware (3) or by the guest (0x103),
/// which is neither done (0) nor under way (0x84).
fn ejection_failed(info: &Value) -> bool {
    let number = |field: &str| info.get(field).and_then(Value::as_u64);
    matches!(number("source"), Some(3 | 0x103)) && !matches!(number("status"), Some(0 | 0x84))
}

// === impl Version ===

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.micro)
    }
}

// === impl Lines ===

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from: BufReader::with_capacity(BUFFER, from), begun: Vec::new() }
    }

    /// The next line; `None` at the end, also if that cuts a line short.
    pub(crate) async fn next(&mut self) -> Result<Option<Line>, BadLine> {
        loop {
            let chunk = self.from.fill_buf().await?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(chunk.len(), |end| end + 1);
            if self.begun.len() + taken > LONGEST_LINE {
                return Err(BadLine::TooLong);
            }
            self.begun.extend_from_slice(&chunk[..taken]);
            self.from.consume(taken);
            if end.is_some() {
                let line = std::mem::take(&mut self.begun);
                return Line::parse(&line).map(Some);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_carry_the_number_of_their_command() {
        let Line::Answer(7, Ok(answer)) = parse(r#"{"return": {"of": 4}, "id": 7}"#) else {
            panic!("a result is an answer");
        };
        assert_eq!(answer.read::<Value>().unwrap(), serde_json::json!({"of": 4}));
        let Line::Answer(8, Err(error)) =
            parse(r#"{"id": 8, "error": {"class": "GenericError", "desc": "CPU exists"}}"#)
        else {
            panic!("an error is an answer");
        };
        assert_eq!(error.to_string(), "CPU exists");
    }

    #[test]
    fn words_of_any_length_are_shortened_and_move_no_cursor() {
        let long = "\\u001b[2J".repeat(500);
        let text = format!(r#"{{"id": 8, "error": {{"class": "{long}", "desc": "{long}"}}}}"#);
        let Line::Answer(8, Err(error)) = parse(&text) else { panic!("an error is an answer") };
        let broken = Line::parse(format!(r#"{{"id": "{long}"}}"#).as_bytes()).unwrap_err();
        for words in [error.class, error.desc, broken.to_string()] {
            assert!(words.len() < 1200, "{} bytes", words.len());
            assert!(!words.contains('\u{1b}'), "{words}");
        }
    }

    #[test]
    fn a_greeting_names_the_version() {
        let Line::Greeting(greeting) = parse(
            r#"{"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}, "package": ""},
                "capabilities": ["oob"]}}"#,
        ) else {
            panic!("this is what QEMU 7.2 says");
        };
        assert_eq!(greeting.version.qemu.to_string(), "7.2.22");
    }

    #[test]
    fn events_say_what_is_worth_knowing() {
        let ost = |source: u64, status: u64| {
            format!(
                r#"{{"event": "ACPI_DEVICE_OST", "data": {{"info": {{"device": "d",
                    "source": {source}, "status": {status}, "slot": "0", "slot-type": "DIMM"}}}}}}"#
            )
        };
        let device = || "d".to_owned();
        for (text, event) in [
            (r#"{"event": "RESET", "data": {"guest": true}}"#.to_owned(), Event::Reset),
            (
                r#"{"event": "DEVICE_DELETED", "data": {"device": "d", "path": "/p"}}"#.to_owned(),
                Event::Deleted(device()),
            ),
            (r#"{"event": "DEVICE_DELETED", "data": {"path": "/p"}}"#.to_owned(), Event::Changed),
            (
                r#"{"event": "MEM_UNPLUG_ERROR", "data": {"device": "d", "msg": ""}}"#.to_owned(),
                Event::Kept(device()),
            ),
            (ost(3, 130), Event::Kept(device())),
            (ost(3, 132), Event::Changed),
            (ost(3, 0), Event::Changed),
            (ost(1, 1), Event::Changed),
            (r#"{"event": "MEMORY_DEVICE_SIZE_CHANGE"}"#.to_owned(), Event::Changed),
            (r#"{"event": "STOP"}"#.to_owned(), Event::Changed),
            (r#"{"event": "RESUME"}"#.to_owned(), Event::Changed),
            (r#"{"event": "MIGRATION", "data": {"status": "active"}}"#.to_owned(), Event::Changed),
            (r#"{"event": "FROM_THE_FUTURE", "data": 7}"#.to_owned(), Event::Other),
        ] {
            let Line::Event(found) = parse(&text) else { panic!("{text} is an event") };
            assert_eq!(found, event, "{text}");
        }
    }

    #[test]
    fn what_is_not_qmp_is_an_error_in_words() {
        for (text, words) in [
            ("GET / HTTP/1.1", "expected value"),
            ("{}", "neither greeting, answer nor event"),
            (r#"{"return": {}}"#, "neither greeting"),
            (r#"{"return": {}, "id": "seven"}"#, "invalid type: string"),
            (r#"{"error": {"class": "GenericError", "desc": "JSON parse error"}}"#, "JSON parse"),
            (r#"{"QMP": {}}"#, "missing field `version`"),
            (&"[".repeat(10_000), "invalid"),
        ] {
            let error = Line::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(words), "{text:.40}: {error}");
        }
    }

    #[tokio::test]
    async fn a_line_may_come_in_pieces_but_not_without_end() {
        let text = b"{\"return\": {}, \"id\": 1}\r\n{\"return\": 2, \"id\": 2}\n{\"cut";
        let mut lines = Lines::new(tokio::io::BufReader::with_capacity(3, &text[..]));
        assert!(matches!(lines.next().await, Ok(Some(Line::Answer(1, Ok(_))))));
        assert!(matches!(lines.next().await, Ok(Some(Line::Answer(2, Ok(_))))));
        assert!(matches!(lines.next().await, Ok(None)));

        let answer = b"{\"return\": 3, \"id\": 3}\n";
        let longest = [vec![b' '; LONGEST_LINE - answer.len()], answer.to_vec()].concat();
        let read = Lines::new(&longest[..]).next().await;
        assert!(matches!(read, Ok(Some(Line::Answer(3, Ok(_))))), "{read:?}");
        let endless = vec![b' '; LONGEST_LINE + 1];
        assert!(matches!(Lines::new(&endless[..]).next().await, Err(BadLine::TooLong)));
    }

    fn parse(text: &str) -> Line {
        Line::parse(text.as_bytes()).unwrap()
    }
}
