//! What a person sees on a terminal, which `script` lends.

use crate::support::{Host, until, vm_file};
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use windlass_testkit::qmp::Machine;

#[test]
fn the_table_is_drawn_again_until_a_key_ends_it() {
    let host = Host::start();
    for key in ["q", "\u{3}", "\u{1b}"] {
        let mut terminal = Terminal::start(&host, 100, "top");
        terminal.shows("node 4 vCPU / 4GiB;");
        // No other key ends it.
        terminal.types("cx");
        host.say(&["freeze"]);
        terminal.shows("FROZEN");
        host.say(&["thaw"]);
        terminal.types(key);
        until("it ends", || terminal.code().is_some());
        assert_eq!(terminal.code(), Some(0), "{key:?}");
    }
}

#[test]
fn keys_select_explain_and_pause_a_vm() {
    let host = Host::start();
    let machine = Machine::start(host.path("a.sock"), 0);
    host.put("a", &vm_file(machine.path(), "127.0.0.71:1"));
    until("it is there", || host.say(&["top"]).contains("\n a "));
    let mut terminal = Terminal::start(&host, 100, "top");
    // Only what changes is drawn, so words without colour are looked for one by one.
    terminal.shows("explain");
    terminal.types("\r");
    terminal.shows("Esc");
    terminal.types("p");
    terminal.shows("Pause a?");
    terminal.types("2");
    terminal.shows("a keeps its size until");
    assert!(host.say(&["vm", "list", "--output", "json"]).contains("\"what\": \"pause\""));
    terminal.shows("resume");
    terminal.types("p");
    terminal.shows("Resume a?");
    terminal.types("n");
    terminal.types("\u{3}");
    until("it ends", || terminal.code().is_some());
    assert_eq!(terminal.code(), Some(0));
    assert!(!host.say(&["vm", "list"]).contains("resumed"));
}

#[test]
fn a_story_is_broken_where_the_terminal_ends() {
    let host = Host::start();
    host.put("a", &vm_file(&host.path("a.sock"), "127.0.0.71:1"));
    until("it is known", || host.windlass(&["explain", "a"]).status.success());
    let lines = |text: &str| text.trim().lines().count();
    let on_a_terminal = |columns| {
        let mut terminal = Terminal::start(&host, columns, "explain a");
        until("it ends", || terminal.code().is_some());
        lines(&terminal.whole())
    };
    let in_a_pipe = lines(&host.say(&["explain", "a"]));
    assert_eq!(on_a_terminal(500), in_a_pipe);
    assert!(on_a_terminal(30) > in_a_pipe);
}

/// A command on a terminal. It ends with this value.
struct Terminal {
    script: Child,
    said: Arc<Mutex<Vec<u8>>>,
    reading: Option<JoinHandle<()>>,
}

impl Terminal {
    fn start(host: &Host, columns: u16, command: &str) -> Self {
        let line =
            format!("stty rows 24 cols {columns}; exec {} {command}", crate::support::PROGRAM);
        let mut script =
            host.on_a_terminal(&line).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = script.stdout.take().unwrap();
        let said = Arc::new(Mutex::new(Vec::new()));
        let of_thread = said.clone();
        let reading = std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut part) {
                of_thread.lock().unwrap().extend_from_slice(&part[..length]);
            }
        });
        Self { script, said, reading: Some(reading) }
    }

    fn types(&mut self, keys: &str) {
        self.script.stdin.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&self.said.lock().unwrap()).into_owned()
    }

    /// All of it, once the command has ended.
    fn whole(&mut self) -> String {
        self.reading.take().unwrap().join().unwrap();
        self.said()
    }

    fn shows(&mut self, words: &str) {
        until(words, || {
            let goes_on = self.code().is_none();
            let is_shown = self.said().contains(words);
            assert!(is_shown || goes_on, "it has ended: {}", self.said());
            is_shown
        });
    }

    fn code(&mut self) -> Option<i32> {
        self.script.try_wait().unwrap().and_then(|status| status.code())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}
