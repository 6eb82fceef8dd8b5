//! The program that makes load inside a lab guest, and tells what the guest sees.
//!
//! It runs in an initramfs with nothing but busybox beside it, so it is one static file over
//! the standard library. It serves a line protocol ([`request`]); what burns CPU and what
//! holds memory are processes of their own, so that the kernel's out-of-memory killer takes
//! the load and leaves the one who can tell of it.

mod crew;
mod figures;
mod fill;
mod hold;
mod lie;
mod log;
mod machine;
mod request;
mod serve;

use crew::Crew;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["serve"] => serve::serve(Crew::default()),
        ["serve", "informant"] => serve::serve(Crew::with_informant(None)),
        ["serve", "informant", versions] => serve::serve(Crew::with_informant(Some(versions))),
        ["spin"] => machine::step_back().and_then(|()| fill::spin()),
        ["hold"] => machine::step_back()
            .and_then(|()| hold::obey(std::io::stdin().lock(), std::io::stdout())),
        _ => Err(std::io::Error::other(
            "usage: windlass-lab-load serve [informant [VERSIONS]] | spin | hold",
        )),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("windlass-lab-load: {error}");
            ExitCode::FAILURE
        }
    }
}
