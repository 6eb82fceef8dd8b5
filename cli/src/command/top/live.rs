//! The screen of a terminal, until a person has seen enough.
//!
//! The host is asked apart, so that a key is obeyed at once also while the host is silent.

use super::app::{App, Order, Wish};
use super::order::Sorting;
use super::screen::{Paint, draw};
use super::sight::{Sight, look};
use crate::api::{Done, Pause};
use crate::client::{self, Client, vm_path};
use crate::explain::Explained;
use crate::failure::Failure;
use crate::out::is_coloured;
use crossterm::event::{self, Event, KeyEventKind};
use jiff::{SignedDuration, Timestamp};
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// How often the host is asked.
const EACH: Duration = Duration::from_secs(1);
/// How long a key or an answer waits at most to be seen.
const TURN: Duration = Duration::from_millis(100);
/// After this, a host that does not answer is said to be silent.
const SILENT: Duration = Duration::from_secs(3);
/// What may wait to be asked: looks wait for one another, so more is orders typed in a hurry.
const QUEUE: usize = 4;

/// What the host is asked.
enum Ask {
    /// For everything, and why this VM has its size.
    Look(Option<String>),
    Order(Order),
}

/// What it answered.
enum Answer {
    Seen(Result<Sight, String>),
    Told(String, Result<Box<Explained>, String>),
    Done(Result<String, String>),
}

/// Shows the VMs until a person has seen enough.
pub(super) fn run(client: &Client, sorting: Sorting) -> Result<(), Failure> {
    // Before the screen is taken over: a host that does not answer is said in plain text.
    let first = client::run(look(client))?;
    let app = App { only_looks: client.only_looks(), ..App::new(first, sorting) };
    let mut terminal = ratatui::try_init()
        .map_err(|error| Failure::CannotCreate(format!("cannot use the terminal: {error}")))?;
    let result = watch(client, &mut terminal, app);
    ratatui::restore();
    result.map_err(|error| Failure::CannotCreate(format!("cannot draw on the terminal: {error}")))
}

fn watch(client: &Client, terminal: &mut ratatui::DefaultTerminal, mut app: App) -> io::Result<()> {
    let paint = Paint { colour: is_coloured() };
    let (asks, answers) = asker(client.clone());
    // When the host is asked next, or since when it is.
    let (mut next, mut asked) = (Instant::now() + EACH, None);
    let mut is_news = true;
    loop {
        while let Ok(answer) = answers.try_recv() {
            is_news = true;
            if matches!(answer, Answer::Seen(_)) {
                (next, asked) = (Instant::now() + EACH, None);
            }
            match answer {
                Answer::Seen(sight) => app.see(sight),
                Answer::Told(vm, told) => app.tell(&vm, told),
                Answer::Done(said) => app.said = Some(said),
            }
        }
        if asked.is_none() && Instant::now() >= next {
            let look = Ask::Look(app.story().map(str::to_owned));
            asked = asks.try_send(look).is_ok().then(Instant::now);
        }
        if let Some(silent) = asked.map(|since| since.elapsed()).filter(|span| *span > SILENT) {
            app.see(Err(format!("the host has not answered for {} s", silent.as_secs())));
            is_news = true;
        }
        if is_news {
            terminal.draw(|frame| draw(frame, &mut app, paint))?;
        }
        is_news = event::poll(TURN)?;
        if !is_news {
            continue;
        }
        let Event::Key(key) = event::read()? else { continue };
        match Some(key).filter(|key| key.kind != KeyEventKind::Release).and_then(|k| app.press(k)) {
            Some(Wish::Quit) => return Ok(()),
            Some(Wish::Look) => next = Instant::now(),
            Some(Wish::Order(order)) => {
                if asks.try_send(Ask::Order(order)).is_err() {
                    app.said = Some(Err("not ordered: the host does not answer".to_owned()));
                }
                next = Instant::now();
            }
            None => {}
        }
    }
}

/// What asks the host, one question after the other. It ends with its sender.
fn asker(client: Client) -> (SyncSender<Ask>, Receiver<Answer>) {
    let (asks, asked) = sync_channel(QUEUE);
    let (answers, answered) = sync_channel(QUEUE);
    std::thread::spawn(move || {
        while let Ok(ask) = asked.recv() {
            for answer in ask_host(&client, ask) {
                if answers.send(answer).is_err() {
                    return;
                }
            }
        }
    });
    (asks, answered)
}

fn ask_host(client: &Client, ask: Ask) -> Vec<Answer> {
    let said = |failure: Failure| failure.to_string();
    match ask {
        Ask::Look(story) => {
            let told = story.map(|vm| {
                let path = vm_path("/v1/explain", &vm, "?minutes=60");
                let told = client::run(async { client.get(&path?).await });
                Answer::Told(vm, told.map(Box::new).map_err(said))
            });
            let seen = Answer::Seen(client::run(look(client)).map_err(said));
            told.into_iter().chain([seen]).collect()
        }
        Ask::Order(wanted) => {
            let done = client::run(order(client, &wanted)).map(|done| done.message).map_err(said);
            vec![Answer::Done(done)]
        }
    }
}

async fn order(client: &Client, order: &Order) -> Result<Done, Failure> {
    match order {
        Order::Pause(vm, minutes) => {
            let span = SignedDuration::from_mins(i64::from(*minutes));
            let end = Timestamp::now().checked_add(span);
            let end = end.map_err(|error| Failure::Failed(error.to_string()))?;
            let body = Pause { until: end.to_string() };
            client.post(&vm_path("/v1/vm", vm, "/pause")?, &body).await
        }
        Order::Resume(vm) => client.post(&vm_path("/v1/vm", vm, "/resume")?, &()).await,
    }
}
