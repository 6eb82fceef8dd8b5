//! A listener whose answers are bytes that a function puts together.

use super::{Request, read_request};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A request that is not there after this is let go of.
const PATIENCE: Duration = Duration::from_secs(15);

/// What is done with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// These bytes are sent.
    Bytes(Vec<u8>),
    /// Nothing is said, until the other side or this server ends.
    Silence,
    /// The connection is closed without a word.
    HangUp,
}

/// A server of one request per connection. It ends, and its port closes, with this value.
#[derive(Debug)]
pub struct Server {
    addr: SocketAddr,
    ended: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

// === impl Server ===

impl Server {
    /// On a free port of `ip`, or of every address if `ip` is not one of this machine.
    ///
    /// # Errors
    /// If no port can be had.
    pub fn start(
        ip: IpAddr,
        reply: impl Fn(Request) -> Reply + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let listener = TcpListener::bind((ip, 0)).or_else(|_| TcpListener::bind((any, 0)))?;
        let addr = listener.local_addr()?;
        let ended = Arc::new(AtomicBool::new(false));
        let (flag, reply) = (Arc::clone(&ended), Arc::new(reply));
        let accepting = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if flag.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(stream), flag, reply) = (stream, Arc::clone(&flag), Arc::clone(&reply))
                else {
                    continue;
                };
                // A peer that goes away in the middle is its own affair.
                std::thread::spawn(move || drop(serve(stream, &flag, reply.as_ref())));
            }
        });
        Ok(Self { addr, ended, accepting: Some(accepting) })
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.addr.port()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // Wakes the thread, which then lets go of its port.
        let ip = self.addr.ip();
        let ip = if ip.is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { ip };
        let _ = TcpStream::connect((ip, self.addr.port()));
        drop(self.accepting.take().map(JoinHandle::join));
    }
}

fn serve(
    mut stream: TcpStream,
    ended: &AtomicBool,
    reply: &(impl Fn(Request) -> Reply + ?Sized),
) -> io::Result<()> {
    let Some(request) = read_request(&mut stream, Instant::now() + PATIENCE)? else {
        return Ok(());
    };
    match reply(request) {
        Reply::Bytes(bytes) => {
            stream.write_all(&bytes)?;
            stream.shutdown(std::net::Shutdown::Write)?;
            // Until the other side has read it: a close with unread input would cut it.
            stream.set_read_timeout(Some(Duration::from_secs(1)))?;
            let _ = stream.read(&mut [0; 64]);
        }
        Reply::Silence => {
            stream.set_read_timeout(Some(Duration::from_millis(100)))?;
            while !ended.load(Ordering::SeqCst) {
                match stream.read(&mut [0; 64]) {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Reply::HangUp => {}
    }
    Ok(())
}
