//! What the files of several programs claim at once: an address, a call-back port, a socket has one owner.
//!
//! A file may be left over from a program that does not run, so a conflict is said and is no failure.

use super::files::Read;
use super::report::Check;
use crate::command::configured::Configured;
use windlass_kit::addresses::{is_one_host, overlap};

/// Each conflict between two files; nothing is said where there is none.
pub(super) fn checks(files: &[&Read]) -> Vec<Check> {
    let mut checks = Vec::new();
    for (nth, file) in files.iter().enumerate() {
        for other in files.iter().skip(nth + 1) {
            let (Ok(mine), Ok(theirs)) = (&file.config, &other.config) else { continue };
            let (path, other) = (file.path.display(), other.path.display().to_string());
            let check = |claim| {
                let advice =
                    "Of two programs that run at once, the second cannot have it: change one file.";
                Check::limited(format!("{path}: {claim}"), advice, file.page())
            };
            checks.extend(claims(mine, theirs, &other).into_iter().map(check));
        }
    }
    checks
}

/// What `mine` claims that `theirs` claims, too, which stands in the file `other`.
fn claims(mine: &Configured, theirs: &Configured, other: &str) -> Vec<String> {
    let mut claims = Vec::new();
    if let (Some(own), Some(their)) = (mine.of_host(), theirs.of_host())
        && own.socket == their.socket
    {
        claims.push(format!("socket = {} is socket of {other}, too", own.socket.display()));
    }
    let (own, their) = (mine.called_back(), theirs.called_back());
    for (key, at) in mine.addresses() {
        let same = theirs.addresses().into_iter().filter(|(_, their)| overlap(at, *their));
        claims.extend(same.map(|(their, _)| format!("{key} = {at} is {their} of {other}, too")));
        if their.is_some_and(|their| their.calls_back(at)) {
            claims.push(format!("{key} = {at} lies within callback_ports of {other}"));
        }
    }
    let Some(own) = own else { return claims };
    let (first, last) = (own.callback_ports.start(), own.callback_ports.end());
    for (key, at) in theirs.addresses().into_iter().filter(|(_, at)| own.calls_back(*at)) {
        claims.push(format!("callback_ports = {first}-{last} hold {key} of {other}, {at}"));
    }
    let shared = their.filter(|their| {
        is_one_host(own.callback_listen, their.callback_listen)
            && first <= their.callback_ports.end()
            && their.callback_ports.start() <= last
    });
    claims.extend(shared.map(|their| {
        let (start, end) = (their.callback_ports.start(), their.callback_ports.end());
        format!("callback_ports = {first}-{last} overlap {start}-{end} of {other}")
    }));
    claims
}
