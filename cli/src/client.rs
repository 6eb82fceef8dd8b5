//! The command line as a client of the host's socket.
//!
//! What can be told apart is told apart: no socket, a socket that no process serves, a socket
//! that this user may not open, a host that refuses. Every request has a deadline. A user who may
//! not open the socket for orders looks through the one that only shows.

use crate::api::{NOT_AFTER, Refusal, view_socket};
use crate::failure::Failure;
use axum::http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use windlass_kit::client::{Address, Ask, ClientError, ask, with_causes};
use windlass_kit::clock::Clock;

/// A host answers from what it knows; the longest wait is for a slow disk.
const DEADLINE: Duration = Duration::from_secs(20);

/// An order takes effect within this or not at all. The rest of the deadline is for the answer.
const IN_EFFECT_WITHIN: Duration = DEADLINE.saturating_sub(Duration::from_secs(5));

/// An hour of decisions of one VM takes about a megabyte.
const LARGEST: usize = 64 << 20;

/// A connection to a running host.
#[derive(Clone, Debug)]
pub struct Client {
    socket: PathBuf,
    /// The socket takes no orders.
    only_looks: bool,
}

// === impl Client ===

impl Client {
    /// A client of the host at this socket, which was just seen to answer; of its socket that only
    /// shows, where this user may open only that.
    ///
    /// # Errors
    /// No process serves the socket, or this user may not open it.
    pub fn to(socket: &Path) -> Result<Self, Failure> {
        open(socket, |socket| UnixStream::connect(socket).map(drop))
            .map(|open| Self { only_looks: open != socket, socket: open })
            .map_err(|error| unreachable(socket, &error))
    }

    /// Whether this user may look and order nothing.
    pub(crate) const fn only_looks(&self) -> bool {
        self.only_looks
    }

    /// Reads something.
    ///
    /// # Errors
    /// The host does not answer, or refuses.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.ask(Ask::new(Method::GET, path, "")).await
    }

    /// Orders something.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn post<B: Serialize, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<T, Failure> {
        self.send(Method::POST, path, body).await
    }

    /// Orders something by a method of its own.
    pub(crate) async fn send<B: Serialize, T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &B,
    ) -> Result<T, Failure> {
        let body = serde_json::to_vec(body)
            .map_err(|error| Failure::Failed(format!("cannot write the request: {error}")))?;
        let not_after = Clock::system().now().after(IN_EFFECT_WITHIN).millis();
        self.ask(Ask::new(method, path, body).with(NOT_AFTER, not_after.into())).await
    }

    async fn ask<T: DeserializeOwned>(&self, request: Ask) -> Result<T, Failure> {
        let request = request.within(DEADLINE).at_most(LARGEST);
        let is_order = request.headers.contains_key(NOT_AFTER);
        let answer = ask(&Address::Unix(self.socket.clone()), request)
            .await
            .map_err(|error| unanswered(&self.socket, &error, is_order))?;
        if !(200..300).contains(&answer.status) {
            return Err(refused(answer.status, &answer.body));
        }
        serde_json::from_slice(&answer.body).map_err(|error| {
            Failure::Failed(format!(
                "the host's answer is not understood (another release?): {error}"
            ))
        })
    }
}

/// The socket that this user may open: that for orders, else the one that only shows.
fn open(socket: &Path, connect: impl Fn(&Path) -> io::Result<()>) -> io::Result<PathBuf> {
    let Err(error) = connect(socket) else { return Ok(socket.to_path_buf()) };
    let shows = view_socket(socket);
    if error.kind() == ErrorKind::PermissionDenied && connect(&shows).is_ok() {
        return Ok(shows);
    }
    Err(error)
}

/// Runs one command's requests to their end.
///
/// # Errors
/// What the command says, or that no runtime could be had.
pub fn run<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Failed(format!("cannot start: {error}")))?
        .block_on(work)
}

/// The path of a VM's endpoint. `db1` and `default/db1` are the same VM.
///
/// # Errors
/// This cannot be the name of a VM.
pub fn vm_path(prefix: &str, vm: &str, suffix: &str) -> Result<String, Failure> {
    let name = vm.strip_prefix("default/").unwrap_or(vm);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || !name.chars().all(plain) {
        return Err(Failure::Usage(format!(
            "`{vm}` is no name of a VM: letters, digits, `-`, `_` and `.` only"
        )));
    }
    Ok(format!("{prefix}/{name}{suffix}"))
}

fn unreachable(socket: &Path, error: &io::Error) -> Failure {
    let kind = error.kind();
    if kind == ErrorKind::PermissionDenied {
        return Failure::Forbidden(format!(
            "{}: permission denied; be root, or a member of group windlass (to look: windlass-view)",
            socket.display()
        ));
    }
    let why = if kind == ErrorKind::NotFound {
        "there is no such socket; is `windlass host` running?".to_owned()
    } else if kind == ErrorKind::ConnectionRefused {
        "the socket is there and no process serves it; did `windlass host` end?".to_owned()
    } else {
        error.to_string()
    };
    Failure::Unreachable { socket: socket.to_path_buf(), why }
}

/// A request was not answered. The failure names the socket, so its reason does not.
fn unanswered(socket: &Path, error: &ClientError, is_order: bool) -> Failure {
    let why = match error {
        ClientError::Connect(_, source) => return unreachable(socket, source),
        ClientError::NoAnswer(_, limit) => {
            let end = if is_order { "; the order takes no effect later" } else { "" };
            format!("no answer within {limit:?}{end}")
        }
        ClientError::TooLarge(_, limit) => format!("the answer is larger than {limit} bytes"),
        ClientError::Broken(_, source) => {
            format!("the connection broke: {}", with_causes(source.as_ref()))
        }
        ClientError::Path(_) | ClientError::Handshake(..) => error.to_string(),
    };
    Failure::Unreachable { socket: socket.to_path_buf(), why }
}

fn refused(status: u16, body: &[u8]) -> Failure {
    let message = serde_json::from_slice::<Refusal>(body).map_or_else(
        |_| format!("the host answered {status}: {}", String::from_utf8_lossy(body).trim()),
        |refusal| refusal.message,
    );
    match status {
        403 => Failure::Forbidden(message),
        404 => Failure::Missing(message),
        422 => Failure::Invalid(message),
        _ => Failure::Refused(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::time::{SystemTime, UNIX_EPOCH};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixListener;
    use windlass_testkit::Folder;

    #[test]
    fn each_socket_that_cannot_be_used_has_its_words() {
        let said = |kind: ErrorKind| unreachable(Path::new("/host.sock"), &kind.into());
        let forbidden = said(ErrorKind::PermissionDenied);
        assert!(matches!(&forbidden, Failure::Forbidden(_)), "{forbidden:?}");
        assert!(forbidden.to_string().contains("a member of group windlass"), "{forbidden}");
        for (kind, words) in [
            (ErrorKind::NotFound, "there is no such socket; is `windlass host` running?"),
            (ErrorKind::ConnectionRefused, "the socket is there and no process serves it; did"),
            (ErrorKind::TimedOut, "timed out"),
        ] {
            let failure = said(kind);
            let Failure::Unreachable { why, .. } = &failure else { panic!("{failure:?}") };
            assert!(why.starts_with(words), "{why}");
        }
    }

    #[test]
    fn who_may_not_order_looks_and_nothing_else_leads_to_the_other_socket() {
        let tried = |order: Option<ErrorKind>, show: Option<ErrorKind>| {
            let connect = |socket: &Path| {
                let fails = if socket == Path::new("/host.sock") { order } else { show };
                fails.map_or(Ok(()), |kind| Err(kind.into()))
            };
            open(Path::new("/host.sock"), connect).map_err(|error| error.kind())
        };
        let (denied, absent) = (ErrorKind::PermissionDenied, ErrorKind::NotFound);
        assert_eq!(tried(None, None).unwrap(), Path::new("/host.sock"));
        assert_eq!(tried(Some(denied), None).unwrap(), Path::new("/host.view.sock"));
        assert_eq!(tried(Some(denied), Some(absent)), Err(denied));
        assert_eq!(tried(Some(absent), None), Err(absent));
    }

    #[test]
    fn a_refusal_is_told_by_its_status_and_in_the_host_s_words() {
        let words = br#"{"code":"x","message":"because"}"#;
        let all = [403, 404, 422, 409, 500].map(|status| refused(status, words));
        assert!(all.iter().all(|failure| failure.to_string() == "because"), "{all:?}");
        assert!(
            matches!(
                all,
                [
                    Failure::Forbidden(_),
                    Failure::Missing(_),
                    Failure::Invalid(_),
                    Failure::Refused(_),
                    Failure::Refused(_)
                ]
            ),
            "{all:?}"
        );
        assert_eq!(refused(502, b"sorry\n").to_string(), "the host answered 502: sorry");
    }

    #[tokio::test]
    async fn only_an_order_that_was_sent_is_said_to_take_no_effect_later() {
        let dir = Folder::create().unwrap();
        let socket = dir.path().join("host.sock");
        let client = Client { only_looks: false, socket: socket.clone() };
        let said = |why: &str| format!("no host answers at {}: {why}", socket.display());
        let nobody = client.post::<_, Value>("/v1/freeze", &()).await.unwrap_err().to_string();
        assert_eq!(nobody, said("there is no such socket; is `windlass host` running?"));
        // It accepts, as a host does that is stopped, and says nothing.
        let _host = UnixListener::bind(&socket).unwrap();
        tokio::time::pause();
        let order = client.post::<_, Value>("/v1/freeze", &()).await.unwrap_err().to_string();
        assert_eq!(order, said("no answer within 20s; the order takes no effect later"));
        let question = client.get::<Value>("/v1/state").await.unwrap_err().to_string();
        assert_eq!(question, said("no answer within 20s"));
    }

    #[test]
    fn an_answer_that_is_not_whole_names_the_socket_once() {
        let socket = Path::new("/host.sock");
        let to = || Address::Unix(socket.to_path_buf());
        let broken: Box<dyn std::error::Error + Send + Sync> = "it hung up".into();
        for (error, why) in [
            (ClientError::TooLarge(to(), 7), "the answer is larger than 7 bytes"),
            (ClientError::Broken(to(), broken), "the connection broke: it hung up"),
        ] {
            let said = unanswered(socket, &error, true).to_string();
            assert_eq!(said, format!("no host answers at /host.sock: {why}"));
        }
    }

    #[tokio::test]
    async fn an_order_says_until_when_it_may_take_effect_and_a_question_does_not() {
        let dir = Folder::create().unwrap();
        let socket = dir.path().join("host.sock");
        let host = UnixListener::bind(&socket).unwrap();
        let client = Client { only_looks: false, socket };
        let heard = async || {
            let mut head = [0; 4096];
            let (mut stream, _) = host.accept().await.unwrap();
            let length = stream.read(&mut head).await.unwrap();
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
            stream.write_all(answer).await.unwrap();
            String::from_utf8_lossy(&head[..length]).into_owned()
        };
        let (answer, asked) = tokio::join!(client.get::<Value>("/v1/state"), heard());
        answer.unwrap();
        assert!(!asked.contains("windlass-not-after"), "{asked}");
        let millis = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let before = millis();
        let order = client.post::<_, Value>("/v1/freeze", &());
        let (answer, asked) = tokio::join!(order, heard());
        answer.unwrap();
        let mut lines = asked.lines();
        let moment = lines.find_map(|line| line.strip_prefix("windlass-not-after: ")).unwrap();
        let moment: u128 = moment.parse().unwrap();
        assert!((before + 15_000..=millis() + 15_000).contains(&moment), "{moment} {before}");
    }
}
