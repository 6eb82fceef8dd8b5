//! The process that holds memory.
//!
//! It reads ramps on its input and answers each step with the bytes that it holds, so that
//! its parent knows how far it got when the kernel kills it. A new ramp takes effect after
//! the step under way. At the end of input it ends.

use crate::fill::{PIECE, Words};
use crate::request::Ramp;
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Obeys the ramps of `input` until it ends.
pub(crate) fn obey(input: impl BufRead, mut output: impl Write + Send) -> io::Result<()> {
    std::thread::scope(|scope| {
        let (send, ramps) = mpsc::channel();
        scope.spawn(move || climb(&ramps, &mut output));
        for line in input.lines() {
            let line = line?;
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let ramp = Ramp::parse(&words).map_err(io::Error::other)?;
            if send.send(ramp).is_err() {
                break;
            }
        }
        Ok(())
    })
}

fn climb(ramps: &mpsc::Receiver<Ramp>, output: &mut impl Write) -> io::Result<()> {
    let mut words = Words::seeded(0);
    let mut held: Vec<Box<[u64]>> = Vec::new();
    let Ok(mut ramp) = ramps.recv() else { return Ok(()) };
    loop {
        let target = pieces(ramp.target);
        let settled = held.len() == target;
        if held.len() > target {
            held.truncate(target);
        } else if !settled {
            let next = target.min(held.len() + pieces(ramp.step));
            held.resize_with(next, || words.piece());
        }
        if !settled {
            writeln!(output, "{}", held.len() * PIECE)?;
            output.flush()?;
        }
        let heard = if settled {
            ramps.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            ramps.recv_timeout(Duration::from_millis(u64::from(ramp.every)))
        };
        match heard {
            Ok(next) => ramp = next,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

fn pieces(mib: u32) -> usize {
    usize::try_from(mib).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender};

    #[test]
    fn memory_is_approached_in_steps_and_given_back() {
        let (ramps, input) = mpsc::channel();
        let (lines, output) = mpsc::channel();
        std::thread::spawn(move || climb(&input, &mut Lines { lines, line: Vec::new() }));

        ramps.send(Ramp { target: 5, step: 2, every: 0 }).unwrap();
        assert_eq!(take(&output, 3), [2 << 20, 4 << 20, 5 << 20]);
        ramps.send(Ramp { target: 1, step: 9, every: 0 }).unwrap();
        assert_eq!(take(&output, 1), [1 << 20]);
        drop(ramps);
        assert!(output.recv().is_err(), "it outlived its input");
    }

    #[test]
    fn a_ramp_that_is_no_ramp_ends_the_process() {
        assert!(obey(io::Cursor::new("nonsense\n"), io::sink()).is_err());
    }

    fn take(output: &Receiver<u64>, lines: usize) -> Vec<u64> {
        let wait = Duration::from_secs(30);
        (0..lines).map(|_| output.recv_timeout(wait).unwrap()).collect()
    }

    struct Lines {
        lines: Sender<u64>,
        line: Vec<u8>,
    }

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.line.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            let line = String::from_utf8(std::mem::take(&mut self.line)).unwrap();
            self.lines.send(line.trim().parse().unwrap()).map_err(io::Error::other)
        }
    }
}
