//! The reading half of a connection: it hands answers to their callers, and events to the agent.
//!
//! A reset is never lost: while the agent takes no notices, it is remembered and reading goes on.
//! Other changes need only be heard of once, and are dropped when their channel is nearly full.
//! The reader ends with the connection, and its end closes the channel of notices and ends what is awaited.

use crate::awaited::Awaited;
use crate::wire::{Event, Line, Lines};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::AsyncRead;
use tokio::sync::mpsc;
use windlass_drivers::Notice;

/// Notices that the agent has not taken yet.
pub(crate) const NOTICES: usize = 8;

/// Where answers go; nothing is awaited any more once the reader is gone.
#[derive(Debug)]
pub(crate) struct Answers(pub(crate) Awaited);

/// Devices that the guest was asked to give back, and neither gave nor refused yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unplugging(Arc<Mutex<BTreeSet<String>>>);

/// The reading half of a connection.
#[derive(Debug)]
pub(crate) struct Reader<R> {
    pub(crate) lines: Lines<R>,
    pub(crate) answers: Answers,
    pub(crate) notices: mpsc::Sender<Notice>,
    pub(crate) unplugging: Unplugging,
}

// === impl Reader ===

impl<R: AsyncRead + Unpin> Reader<R> {
    /// Reads to the end, and says what that was.
    pub(crate) async fn run(mut self) -> String {
        let mut reset_owed = false;
        let why = loop {
            let line = tokio::select! {
                // A closed channel owes nothing to anybody.
                place = self.notices.reserve(), if reset_owed => {
                    reset_owed = false;
                    if let Ok(place) = place {
                        place.send(Notice::Reset);
                    }
                    continue;
                }
                line = self.lines.next() => line,
            };
            match line {
                Ok(Some(Line::Event(event))) => reset_owed |= !self.pass_on(event),
                Ok(Some(Line::Answer(id, answer))) => {
                    if !self.answers.0.hear(id, answer) {
                        break "an answer that nobody asked for".to_owned();
                    }
                }
                Ok(Some(Line::Greeting(_))) => break "a second greeting".to_owned(),
                Ok(None) => break "it ended".to_owned(),
                Err(error) => break error.to_string(),
            }
        };
        // The agent hears of the end when the channel closes, and of this before.
        if reset_owed && let Ok(place) = self.notices.try_reserve() {
            place.send(Notice::Reset);
        }
        why
    }

    /// Whether nothing is owed after that.
    fn pass_on(&self, event: Event) -> bool {
        match event {
            Event::Reset => return self.notices.try_send(Notice::Reset).is_ok(),
            Event::Deleted(device) | Event::Kept(device) => {
                self.unplugging.settle(&device);
                self.changed();
            }
            Event::Changed => self.changed(),
            Event::Other => {}
        }
        true
    }

    /// Leaves the last place to a reset.
    fn changed(&self) {
        if self.notices.capacity() > 1 {
            // Only this task sends, so there is room unless the agent has stopped listening.
            let _ = self.notices.try_send(Notice::Changed);
        }
    }
}

// === impl Answers ===

impl Drop for Answers {
    fn drop(&mut self) {
        self.0.end();
    }
}

// === impl Unplugging ===

impl Unplugging {
    /// The guest was asked to give this device back.
    pub(crate) fn ask(&self, device: &str) {
        self.with(|devices| devices.insert(device.to_owned()));
    }

    /// The guest gave it back, or refused.
    pub(crate) fn settle(&self, device: &str) {
        self.with(|devices| devices.remove(device));
    }

    /// Whether the guest was asked, and has not answered.
    pub(crate) fn has(&self, device: &str) -> bool {
        self.with(|devices| devices.contains(device))
    }

    fn with<T>(&self, act: impl FnOnce(&mut BTreeSet<String>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    #[tokio::test]
    async fn a_reset_outlives_a_flood_of_changes_that_nobody_reads() {
        let (mut qemu, reader, mut notices, answers) = pair();
        let answer = answers.begin(1, 1);
        let reading = tokio::task::JoinSet::from_iter([reader.run()]);
        for _ in 0..1000 {
            qemu.write_all(b"{\"event\": \"MEMORY_DEVICE_SIZE_CHANGE\"}\n").await.unwrap();
        }
        for _ in 0..5 {
            qemu.write_all(b"{\"event\": \"RESET\"}\n").await.unwrap();
        }
        // Answers are still read, though no notice is taken.
        qemu.write_all(b"{\"return\": {}, \"id\": 1}\n").await.unwrap();
        drop(qemu);
        reading.join_all().await;
        assert_eq!(answer.await.unwrap().len(), 1);
        let mut heard = Vec::new();
        while let Some(notice) = notices.recv().await {
            heard.push(notice);
        }
        assert!(heard.len() <= NOTICES);
        assert!(heard.contains(&Notice::Changed) && heard.contains(&Notice::Reset), "{heard:?}");
    }

    #[tokio::test]
    async fn a_reset_that_found_no_place_comes_as_soon_as_there_is_one() {
        let (mut qemu, reader, mut notices, answers) = pair();
        let answer = answers.begin(1, 1);
        let _reading = tokio::task::JoinSet::from_iter([reader.run()]);
        for _ in 0..NOTICES + 3 {
            qemu.write_all(b"{\"event\": \"RESET\"}\n").await.unwrap();
        }
        qemu.write_all(b"{\"return\": {}, \"id\": 1}\n").await.unwrap();
        assert_eq!(answer.await.unwrap().len(), 1);
        for _ in 0..=NOTICES {
            assert_eq!(notices.recv().await, Some(Notice::Reset));
        }
    }

    #[tokio::test]
    async fn an_answer_that_nobody_asked_for_ends_the_connection() {
        let (mut qemu, reader, _notices, answers) = pair();
        let answer = answers.begin(1, 1);
        let reading = tokio::task::JoinSet::from_iter([reader.run()]);
        for id in 1..=2 {
            qemu.write_all(format!("{{\"return\": {{}}, \"id\": {id}}}\n").as_bytes())
                .await
                .unwrap();
        }
        assert_eq!(reading.join_all().await, ["an answer that nobody asked for"]);
        assert_eq!(answer.await.unwrap().len(), 1);
        assert!(answers.begin(3, 1).await.is_err());
    }

    #[tokio::test]
    async fn a_device_is_unplugging_until_the_guest_gave_it_or_kept_it() {
        let (mut qemu, reader, mut notices, _answers) = pair();
        let unplugging = reader.unplugging.clone();
        let _reading = tokio::task::JoinSet::from_iter([reader.run()]);
        for device in ["given", "kept", "silent"] {
            unplugging.ask(device);
        }
        qemu.write_all(b"{\"event\": \"DEVICE_DELETED\", \"data\": {\"device\": \"given\"}}\n")
            .await
            .unwrap();
        qemu.write_all(
            b"{\"event\": \"ACPI_DEVICE_OST\", \"data\": {\"info\": {\"device\": \"kept\", \
              \"source\": 3, \"status\": 130}}}\n",
        )
        .await
        .unwrap();
        assert_eq!(notices.recv().await, Some(Notice::Changed));
        assert_eq!(notices.recv().await, Some(Notice::Changed));
        assert_eq!(["given", "kept", "silent"].map(|id| unplugging.has(id)), [false, false, true]);
        drop(qemu);
        assert_eq!(notices.recv().await, None, "the guest did not restart");
    }

    type Pair =
        (tokio::io::DuplexStream, Reader<tokio::io::DuplexStream>, mpsc::Receiver<Notice>, Awaited);

    fn pair() -> Pair {
        let (qemu, here) = tokio::io::duplex(1024);
        let answers = Awaited::default();
        let (notices, noticed) = mpsc::channel(NOTICES);
        let unplugging = Unplugging::default();
        let lines = Lines::new(here);
        let reader = Reader { lines, answers: Answers(answers.clone()), notices, unplugging };
        (qemu, reader, noticed, answers)
    }
}
