//! What a person does in `top`: which VM is selected, which page is open, what is asked.
//!
//! A value without I/O: it takes keys and answers, and says what is wished for.

use super::order::Sorting;
use super::sight::Sight;
use super::table::{Line, lines};
use crate::explain::Explained;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::widgets::TableState;

/// What is shown, and what a person can do with it.
#[derive(Debug)]
pub(super) struct App {
    pub(super) sorting: Sorting,
    pub(super) sight: Sight,
    /// The VMs in their order.
    pub(super) lines: Vec<Line>,
    /// Which of them is selected, and where the screen begins.
    pub(super) table: TableState,
    pub(super) page: Page,
    /// What is asked before it is ordered.
    pub(super) question: Option<Question>,
    /// What an order led to, until the next key.
    pub(super) said: Option<Result<String, String>>,
    /// Why what is shown is old.
    pub(super) trouble: Option<String>,
    /// Whether this user may look and order nothing.
    pub(super) only_looks: bool,
}

/// What fills the screen.
#[derive(Debug)]
pub(super) enum Page {
    /// Every VM.
    List,
    /// Why one VM has its size.
    Story(Box<Story>),
    /// What the keys do and the words mean; lines from the top that are scrolled away.
    Help(usize),
}

#[derive(Debug)]
pub(super) struct Story {
    pub(super) vm: String,
    /// What the host says of it; `None` until it does.
    pub(super) told: Option<Result<Box<Explained>, String>>,
    /// Every decision, not only the last changes.
    pub(super) verbose: bool,
    /// Lines from the top that are scrolled away.
    pub(super) scroll: usize,
}

/// An order that a person is about to give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// For how long is this VM to keep its size?
    Pause(String),
    /// Is this VM to follow its load again?
    Resume(String),
}

/// What a key leads to, beyond what is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Seen enough.
    Quit,
    /// Ask the host at once, for what a page newly shows.
    Look,
    /// Tell the host.
    Order(Order),
}

/// What the host can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// This VM keeps its size for so many minutes.
    Pause(String, u32),
    /// This VM follows its load again.
    Resume(String),
}

/// How long a pause can be, by key: minutes, and how that reads.
pub(super) const SPANS: [(char, u32, &str); 3] =
    [('1', 15, "15 min"), ('2', 60, "1 h"), ('3', 480, "8 h")];

/// What a user is told who may look and order nothing.
const ONLY_LOOKS: &str =
    "you may only look: root and members of group windlass may pause and resume VMs";

/// Lines that a page up or down moves.
const PAGE: isize = 10;

// === impl App ===

impl App {
    /// After the first look.
    pub(super) fn new(sight: Sight, sorting: Sorting) -> Self {
        let lines = lines(&sight, sorting);
        let table = TableState::default().with_selected((!lines.is_empty()).then_some(0));
        let (page, question, said, trouble) = (Page::List, None, None, None);
        Self { sorting, sight, lines, table, page, question, said, trouble, only_looks: false }
    }

    /// Takes what a look gave. What was selected stays selected, wherever it stands now.
    pub(super) fn see(&mut self, sight: Result<Sight, String>) {
        match sight {
            Ok(sight) => {
                self.trouble = None;
                self.sight = sight;
                self.arrange();
            }
            Err(why) => self.trouble = Some(why),
        }
    }

    /// Takes what the host says of a VM, if that is still the one that is looked at.
    pub(super) fn tell(&mut self, vm: &str, told: Result<Box<Explained>, String>) {
        if let Page::Story(story) = &mut self.page
            && story.vm == vm
        {
            story.told = Some(told);
        }
    }

    /// The VM whose story is to be asked for.
    pub(super) fn story(&self) -> Option<&str> {
        match &self.page {
            Page::Story(story) => Some(&story.vm),
            Page::List | Page::Help(_) => None,
        }
    }

    pub(super) fn press(&mut self, key: KeyEvent) -> Option<Wish> {
        self.said = None;
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Some(Wish::Quit);
        }
        if let Some(question) = self.question.take() {
            return question.answered(key.code);
        }
        match &mut self.page {
            Page::List => self.press_in_list(key.code),
            Page::Story(_) => self.press_in_story(key.code),
            Page::Help(scroll) => {
                match way(key.code) {
                    Some(by) => *scroll = scroll.saturating_add_signed(by),
                    None => self.page = Page::List,
                }
                None
            }
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "a key without a meaning does nothing")]
    fn press_in_list(&mut self, key: KeyCode) -> Option<Wish> {
        if let Some(by) = way(key) {
            self.select(by);
            return None;
        }
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return Some(Wish::Quit),
            KeyCode::Left => self.sort(self.sorting.moved(-1)),
            KeyCode::Right => self.sort(self.sorting.moved(1)),
            KeyCode::Char('r') => {
                self.sort(Sorting { reversed: !self.sorting.reversed, ..self.sorting });
            }
            KeyCode::Char('p') => {
                let vm = self.selected()?.to_owned();
                self.ask_to_pause(vm);
            }
            KeyCode::Char('?' | 'h') => self.page = Page::Help(0),
            KeyCode::Enter => {
                let vm = self.selected()?.to_owned();
                let story = Story { vm, told: None, verbose: false, scroll: 0 };
                self.page = Page::Story(Box::new(story));
                return Some(Wish::Look);
            }
            _ => {}
        }
        None
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "a key without a meaning does nothing")]
    fn press_in_story(&mut self, key: KeyCode) -> Option<Wish> {
        let Page::Story(story) = &mut self.page else { return None };
        if let Some(by) = way(key) {
            story.scroll = story.scroll.saturating_add_signed(by);
            return None;
        }
        match key {
            KeyCode::Char('q') | KeyCode::Esc | KeyCode::Enter | KeyCode::Backspace => {
                self.page = Page::List;
            }
            KeyCode::Char('v') => {
                story.verbose = !story.verbose;
                story.scroll = 0;
            }
            KeyCode::Char('p') => {
                let vm = story.vm.clone();
                self.ask_to_pause(vm);
            }
            _ => {}
        }
        None
    }

    fn ask_to_pause(&mut self, vm: String) {
        if self.only_looks {
            self.said = Some(Err(ONLY_LOOKS.to_owned()));
        } else if self.sight.is_paused(&vm) {
            self.question = Some(Question::Resume(vm));
        } else {
            self.question = Some(Question::Pause(vm));
        }
    }

    fn selected(&self) -> Option<&str> {
        self.lines.get(self.table.selected()?).map(|line| line.vm.as_str())
    }

    fn select(&mut self, by: isize) {
        let last = self.lines.len().checked_sub(1);
        let at = self.table.selected().unwrap_or_default().saturating_add_signed(by);
        self.table.select(last.map(|last| at.min(last)));
    }

    fn sort(&mut self, sorting: Sorting) {
        self.sorting = sorting;
        self.arrange();
    }

    /// Puts the VMs in order. A VM that is gone leaves the selection where it stood.
    fn arrange(&mut self) {
        let selected = self.selected().map(str::to_owned);
        self.lines = lines(&self.sight, self.sorting);
        let at = self.lines.iter().position(|line| Some(&line.vm) == selected.as_ref());
        match at {
            Some(at) => self.table.select(Some(at)),
            None => self.select(0),
        }
    }
}

// === impl Question ===

impl Question {
    /// Any other key than those that are named is a no.
    fn answered(self, key: KeyCode) -> Option<Wish> {
        let KeyCode::Char(key) = key else { return None };
        match self {
            Self::Pause(vm) => {
                let (_, minutes, _) = SPANS.iter().find(|(span, ..)| *span == key)?;
                Some(Wish::Order(Order::Pause(vm, *minutes)))
            }
            Self::Resume(vm) => (key == 'y').then_some(Wish::Order(Order::Resume(vm))),
        }
    }
}

/// By how many lines a key moves, downwards.
#[expect(clippy::wildcard_enum_match_arm, reason = "a key without a meaning does nothing")]
const fn way(key: KeyCode) -> Option<isize> {
    match key {
        KeyCode::Up | KeyCode::Char('k') => Some(-1),
        KeyCode::Down | KeyCode::Char('j') => Some(1),
        KeyCode::PageUp => Some(-PAGE),
        KeyCode::PageDown | KeyCode::Char(' ') => Some(PAGE),
        KeyCode::Home | KeyCode::Char('g') => Some(isize::MIN),
        KeyCode::End | KeyCode::Char('G') => Some(isize::MAX),
        _ => None,
    }
}
