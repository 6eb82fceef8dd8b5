//! Which addresses lead where, seen from the host and from the guest.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use windlass_agent_core::Guest;
use windlass_protocol::informant;

/// How a guest on QEMU's user network reaches the host.
const USER_NETWORK_HOST: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 2, 2));

/// The address at which `guest` reaches this host's `port`: what is declared;
/// else, for a guest behind a forwarded loopback port, the host of QEMU's user network; else
/// the local address from which the guest is reached.
pub(crate) fn callback(guest: &Guest, port: u16) -> io::Result<SocketAddr> {
    let ip = match guest.advertise {
        Some(ip) => ip,
        None if guest.informant.ip().is_loopback() => USER_NETWORK_HOST,
        None => local_address_towards(guest.informant)?,
    };
    Ok(SocketAddr::new(ip, port))
}

/// Where the guest's metrics are read: where it is declared; else at the informant's address,
/// if it is ours (by the port that it announces) or has announced nothing yet; else at the
/// announced port.
pub(crate) fn metrics(guest: &Guest, announced: Option<u16>) -> SocketAddr {
    match (guest.metrics, announced) {
        (Some(address), _) => address,
        (None, None | Some(informant::PORT)) => guest.informant,
        (None, Some(port)) => SocketAddr::new(guest.informant.ip(), port),
    }
}

/// Asks the routing table; nothing is sent.
fn local_address_towards(there: SocketAddr) -> io::Result<IpAddr> {
    let any: IpAddr = match there.ip() {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(there)?;
    Ok(socket.local_addr()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forwarded_guest_calls_back_through_the_user_network() {
        let guest = guest("127.0.0.2:10301");
        assert_eq!(callback(&guest, 10310).unwrap().to_string(), "10.0.2.2:10310");
        let guest = Guest { advertise: Some("192.0.2.7".parse().unwrap()), ..guest };
        assert_eq!(callback(&guest, 10310).unwrap().to_string(), "192.0.2.7:10310");
    }

    #[test]
    fn our_own_informant_is_read_where_it_is_reached_and_others_where_they_say() {
        let guest = guest("127.0.0.2:20301");
        for (announced, address) in [
            (None, "127.0.0.2:20301"),
            (Some(10301), "127.0.0.2:20301"),
            (Some(9100), "127.0.0.2:9100"),
        ] {
            assert_eq!(metrics(&guest, announced).to_string(), address);
        }
        let guest = Guest { metrics: Some("127.0.0.2:29100".parse().unwrap()), ..guest };
        assert_eq!(metrics(&guest, Some(9100)).to_string(), "127.0.0.2:29100");
    }

    #[test]
    fn a_guest_that_is_reached_directly_calls_back_where_it_is_reached_from() {
        assert_eq!(
            local_address_towards("127.0.0.9:1".parse().unwrap()).unwrap().to_string(),
            "127.0.0.1"
        );
    }

    fn guest(informant: &str) -> Guest {
        Guest { informant: informant.parse().unwrap(), advertise: None, metrics: None }
    }
}
