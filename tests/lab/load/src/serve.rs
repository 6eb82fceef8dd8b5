//! The line protocol on its socket.
//!
//! One thread per connection, a bounded number of them; requests are carried out one at a
//! time. A line that is too long or not UTF-8 ends its connection.

use crate::crew::Crew;
use crate::request::{Informant, LIMIT, Request};
use crate::{figures, log, machine};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Where it serves.
const ADDRESS: &str = "0.0.0.0:10302";

/// Most connections at a time.
const CONNECTIONS: usize = 16;

/// A connection that says nothing for this long is closed.
const IDLE: Duration = Duration::from_secs(600);

/// After this, the informant is started without anybody having asked for anything.
const UNASKED: Duration = Duration::from_secs(3);

/// Serves for ever. The informant, if it is wanted, is started at the first request: a
/// snapshot of the guest that is taken at the word on the console has none yet.
pub(crate) fn serve(crew: Crew) -> io::Result<()> {
    let listener = TcpListener::bind(ADDRESS)?;
    writeln!(io::stdout(), "LAB-SERVING")?;
    let crew = Arc::new(Mutex::new(crew));
    let unasked = Arc::clone(&crew);
    std::thread::spawn(move || {
        std::thread::sleep(UNASKED);
        unasked.lock().unwrap_or_else(PoisonError::into_inner).awake();
    });
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let stream = stream?;
        if open.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS {
            open.fetch_sub(1, Ordering::AcqRel);
            continue;
        }
        let (crew, open) = (Arc::clone(&crew), Arc::clone(&open));
        std::thread::spawn(move || {
            if let Err(error) = converse(&stream, &crew) {
                eprintln!("windlass-lab-load: {error}");
            }
            open.fetch_sub(1, Ordering::AcqRel);
        });
    }
    Ok(())
}

fn converse(stream: &TcpStream, crew: &Mutex<Crew>) -> io::Result<()> {
    stream.set_read_timeout(Some(IDLE))?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let mut line = String::new();
        reader.by_ref().take(LIMIT).read_line(&mut line)?;
        if line.is_empty() {
            return Ok(());
        }
        if !line.ends_with('\n') {
            return Err(io::Error::other("a line that is too long or cut off"));
        }
        let reply = match Request::parse(line.trim_end()) {
            Ok(request) => answer(&request, crew),
            Err(why) => format!("error {why}\n"),
        };
        writer.write_all(reply.as_bytes())?;
    }
}

fn answer(request: &Request, crew: &Mutex<Crew>) -> String {
    let mut crew = crew.lock().unwrap_or_else(PoisonError::into_inner);
    if !matches!(request, Request::Informant(Informant::Limit(_))) {
        crew.awake();
    }
    let done = match request {
        Request::Cpu(workers) => crew.work(*workers),
        Request::Memory(ramp) => crew.hold(*ramp),
        Request::Figures => return format!("ok {}\n", figures::line(crew.doing())),
        Request::Warnings => return told(log::warnings()),
        Request::Limit { milli, seconds } => return told(machine::limit(*milli, *seconds)),
        Request::Informant(what) => crew.informant(what),
        Request::Online => machine::online(),
        Request::Movable => machine::movable(),
        Request::Reboot => {
            machine::reboot();
            Ok(())
        }
    };
    match done {
        Ok(()) => "ok\n".to_owned(),
        Err(error) => format!("error {error}\n"),
    }
}

/// An answer that has something to tell.
fn told(what: io::Result<String>) -> String {
    match what {
        Ok(words) => format!("ok {words}\n"),
        Err(error) => format!("error {error}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_answered_and_a_long_line_ends_the_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (served, _) = listener.accept().unwrap();
        let server =
            std::thread::spawn(move || converse(&served, &Mutex::new(Crew::default())).is_err());

        client.write_all(b"figures\nbad\n").unwrap();
        let mut lines = BufReader::new(client.try_clone().unwrap()).lines();
        assert!(lines.next().unwrap().unwrap().starts_with("ok {\"mem_total\":"));
        assert_eq!(lines.next().unwrap().unwrap(), "error unknown request \"bad\"");

        client.write_all(&[b'x'; 600]).unwrap();
        assert!(server.join().unwrap(), "the long line was taken");
    }
}
