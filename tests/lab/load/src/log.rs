//! What the kernel has logged as a warning or worse.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;

const LOG: &str = "/dev/kmsg";

/// `O_NONBLOCK`: a read at the end of the log says so, and does not wait for more.
const NO_WAIT: i32 = 0o4000;

/// The kernel's number for "this record was overwritten": the next read has the oldest that is left.
const OVERWRITTEN: i32 = 32;

/// The longest record.
const RECORD: usize = 8192;

/// The level of a warning; what is worse has a lower one.
const WARNING: u32 = 4;

/// They are written as a JSON list of strings.
pub(crate) fn warnings() -> io::Result<String> {
    let mut log = File::options().read(true).custom_flags(NO_WAIT).open(LOG)?;
    let (mut record, mut list) = ([0; RECORD], Vec::new());
    loop {
        match log.read(&mut record) {
            Ok(0) => break,
            Ok(length) => list.extend(warning(&String::from_utf8_lossy(&record[..length]))),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.raw_os_error() == Some(OVERWRITTEN) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(format!("[{}]", list.join(",")))
}

/// The text of a record, quoted, if it is the kernel's and bad enough: `4,123,456,-;text` and lines that
/// tell more.
fn warning(record: &str) -> Option<String> {
    let (head, text) = record.split_once(';')?;
    let priority: u32 = head.split(',').next()?.parse().ok()?;
    (priority <= WARNING).then(|| quoted(text.lines().next().unwrap_or_default()))
}

fn quoted(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
    let text: String = text.chars().map(plain).collect();
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_kernel_warns_of_is_listed() {
        assert_eq!(warning("4,1,2,-;say \"no\"\n SUB=x\n").as_deref(), Some(r#""say \"no\"""#));
        assert_eq!(warning("3,1,2,-;bad\n").as_deref(), Some("\"bad\""));
        assert_eq!(warning("6,1,2,-;fine\n"), None);
        assert_eq!(warning("12,1,2,-;a program's warning\n"), None);
        assert_eq!(warning("nonsense"), None);
    }
}
