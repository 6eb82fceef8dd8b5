//! A name server of a cluster: it knows one name, with the domain of the cluster at its end, and no other.
//!
//! Name servers are asked at port 53, so it has an address of its own of the loopback network, and needs root's rights.

use std::net::{Ipv4Addr, UdpSocket};

/// Names of a cluster end so.
pub const DOMAIN: &str = "cluster.local";

/// The domains in which the pod of a namespace looks for a name, as the kubelet writes them.
pub const RESOLVER: &str =
    "search windlass.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n";

/// The kind of question that has an answer (`A`): of the name there is no address of IPv6.
const ADDRESS: u16 = 1;
/// The flags of an answer, of a server that asks others on behalf of its clients.
const ANSWER: u16 = 0x8180;
/// The flag that the name does not exist.
const UNKNOWN: u16 = 3;

/// Serves a name, which is the loopback address, until the test ends; where it is asked.
pub fn serve(name: &str) -> Ipv4Addr {
    let own = (1..255).map(|last| Ipv4Addr::new(127, 53, 53, last));
    let bound = own.into_iter().find_map(|at| Some((at, UdpSocket::bind((at, 53)).ok()?)));
    let (at, socket) = bound.expect("a free address of the loopback network");
    let known = format!("{name}.{DOMAIN}");
    std::thread::spawn(move || {
        let mut bytes = [0; 512];
        while let Ok((size, from)) = socket.recv_from(&mut bytes) {
            // An asker that left is no failure of the server.
            let _unheard = socket.send_to(&answer(&bytes[..size], &known), from);
        }
    });
    at
}

/// The answer to a question.
fn answer(asked: &[u8], known: &str) -> Vec<u8> {
    let mut name: Vec<&str> = Vec::new();
    let mut place = 12;
    while asked[place] != 0 {
        let end = place + 1 + usize::from(asked[place]);
        name.push(std::str::from_utf8(&asked[place + 1..end]).unwrap());
        place = end;
    }
    let kind = u16::from_be_bytes([asked[place + 1], asked[place + 2]]);
    let is_known = name.join(".").eq_ignore_ascii_case(known);
    let has_address = is_known && kind == ADDRESS;
    let flags = ANSWER | if is_known { 0 } else { UNKNOWN };
    let mut said = asked[..2].to_vec();
    for number in [flags, 1, u16::from(has_address), 0, 0] {
        said.extend(number.to_be_bytes());
    }
    said.extend(&asked[12..place + 5]);
    if has_address {
        // The name of the question; an address of the internet, for 5 s, of four bytes.
        said.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4]);
        said.extend(Ipv4Addr::LOCALHOST.octets());
    }
    said
}
