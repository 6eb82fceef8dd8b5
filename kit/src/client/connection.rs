//! One exchange over a connection: a request, and its answer.
//!
//! HTTP/1.1 is that of `ureq-proto`, which turns requests into bytes and bytes into answers, and reads and writes nothing itself. So a
//! connection between two exchanges is its stream alone, and an exchange has no buffers but what is sent and what has arrived: an agent
//! has connections to each of its VMs, and asks them all the time.

use super::request::{Address, Answer, Ask, ClientError, Peer};
use http::{HeaderValue, Method, Request, header};
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::ready;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use ureq_proto::BodyMode;
use ureq_proto::client::state::{RecvBody, RecvResponse};
use ureq_proto::client::{Call, RecvBodyResult, RecvResponseResult, SendRequestResult};

/// The most bytes of an answer's head.
const MAX_HEAD: usize = 16 * 1024;

/// The most bytes of a request's head: a token has up to 64 KiB.
const MAX_SAID: usize = 128 * 1024;

/// What most heads of requests have room in.
const USUAL_SAID: usize = 512;

/// Bytes that are read at once.
const READ: usize = 16 * 1024;

thread_local! {
    /// Where bytes are read to. What has arrived is kept in as many bytes as it has.
    static PLACE: RefCell<[u8; READ]> = const { RefCell::new([0; READ]) };
}

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Whether the peer should keep the connection after its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    Close,
    Keep,
}

/// How far a request without an answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The client sent no byte of it.
    Not,
    /// The connection ended before an answer.
    Perhaps,
    /// The answer was unusable, or not HTTP.
    Yes,
}

/// Why a request has no answer.
pub(super) struct Unanswered {
    pub(super) error: ClientError,
    pub(super) asked: Asked,
}

/// An answer.
pub(super) struct Answered {
    pub(super) answer: Answer,
    /// Both sides keep the connection, and nothing came after the answer.
    pub(super) is_kept: bool,
}

/// An answer on its way.
struct Exchange<'a, S> {
    stream: &'a mut S,
    to: &'a Peer,
    /// The most bytes of its body.
    most: usize,
    /// What has arrived, and was not read yet.
    arrived: Vec<u8>,
}

pub(super) async fn connect(address: SocketAddr, to: &Address) -> Result<TcpStream, ClientError> {
    let connected = async {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    };
    connected.await.map_err(|source| ClientError::Connect(to.clone(), source))
}

/// Sends a request over this connection and reads its answer, without a deadline. Without an answer the connection is not to be used
/// any more.
pub(super) async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    to: &Peer,
    ask: &Ask,
    after: After,
) -> Result<Answered, Unanswered> {
    let (call, said) =
        say(to, ask, after).map_err(|error| Unanswered { error, asked: Asked::Not })?;
    let mut sent = 0;
    let is_said = match write(stream, &said, &mut sent).await {
        Ok(()) => true,
        Err(error) if sent == 0 => {
            return Err(Unanswered { error: broken(to, error), asked: Asked::Not });
        }
        // A peer that refuses a request need not read it all before it says so.
        Err(_) => false,
    };
    drop(said);
    let mut exchange = Exchange { stream, to, most: ask.max_answer, arrived: Vec::new() };
    let mut answered = exchange.answer(call).await?;
    answered.is_kept &= is_said;
    Ok(answered)
}

/// The bytes of a request, and what reads its answer.
fn say(to: &Peer, ask: &Ask, after: After) -> Result<(Call<RecvResponse>, Vec<u8>), ClientError> {
    let wrong = |error: ureq_proto::Error| broken(to, error);
    let mut call = Call::new(request(to, ask, after)?).map_err(wrong)?;
    if !ask.body.is_empty() {
        call.force_send_body();
    }
    let mut call = call.proceed();
    let mut said = vec![0; USUAL_SAID];
    let mut head = 0;
    while !call.can_proceed() {
        match call.write(&mut said[head..]) {
            Ok(written) => head += written,
            Err(ureq_proto::Error::OutputOverflow) if said.len() < MAX_SAID => {
                said.resize(said.len() * 2, 0);
            }
            Err(error) => return Err(wrong(error)),
        }
    }
    said.truncate(head);
    said.extend_from_slice(&ask.body);
    let unsaid = || broken(to, io::Error::other("the request cannot be said"));
    let call = match call.proceed().map_err(wrong)?.ok_or_else(unsaid)? {
        SendRequestResult::RecvResponse(call) => call,
        SendRequestResult::SendBody(mut call) => {
            call.consume_direct_write(ask.body.len()).map_err(wrong)?;
            call.write(&[], &mut []).map_err(wrong)?;
            call.proceed().ok_or_else(unsaid)?
        }
        // Nobody asks to be told that a request may go on.
        SendRequestResult::Await100(_) => return Err(unsaid()),
    };
    Ok((call, said))
}

fn request(to: &Peer, ask: &Ask, after: After) -> Result<Request<()>, ClientError> {
    let no_path = || ClientError::Path(ask.path.clone());
    let mut request = Request::builder()
        .method(&ask.method)
        .uri(ask.path.as_str())
        .header(header::HOST, to.host.clone().ok_or_else(no_path)?)
        .header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .body(())
        .map_err(|_| no_path())?;
    let headers = request.headers_mut();
    if after == After::Close {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    headers.extend(ask.headers.clone());
    if !ask.body.is_empty() || [Method::POST, Method::PUT, Method::PATCH].contains(&ask.method) {
        headers.insert(header::CONTENT_LENGTH, ask.body.len().into());
    }
    Ok(request)
}

/// Writes all of it; `sent`: how much of it.
async fn write<S: AsyncWrite + Unpin>(
    stream: &mut S,
    said: &[u8],
    sent: &mut usize,
) -> io::Result<()> {
    while *sent < said.len() {
        match stream.write(&said[*sent..]).await? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => *sent += written,
        }
    }
    stream.flush().await
}

fn broken(to: &Peer, source: impl Into<Cause>) -> ClientError {
    ClientError::Broken(to.address.clone(), source.into())
}

// === impl Exchange ===

impl<S: AsyncRead + Unpin> Exchange<'_, S> {
    async fn answer(&mut self, mut call: Call<RecvResponse>) -> Result<Answered, Unanswered> {
        let status = loop {
            if !self.arrived.is_empty() {
                let read = call.try_response(&self.arrived, false);
                let (used, response) = read.map_err(|error| self.unusable(error))?;
                self.arrived.drain(..used);
                match response {
                    Some(response) => break response.status().as_u16(),
                    // What only informs comes before the answer.
                    None if used > 0 => continue,
                    None if self.arrived.len() > MAX_HEAD => {
                        let why = format!("its head is larger than {MAX_HEAD} bytes");
                        return Err(self.unusable(why));
                    }
                    None => {}
                }
            }
            let came = self.more().await.and_then(|came| match came {
                0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended before an answer")),
                came => Ok(came),
            });
            came.map_err(|error| Unanswered {
                error: broken(self.to, error),
                asked: Asked::Perhaps,
            })?;
        };
        let (body, must_close) = match call.proceed() {
            Some(RecvResponseResult::RecvBody(call)) => self.body(call).await?,
            Some(RecvResponseResult::Redirect(call)) => (Vec::new(), call.must_close_connection()),
            Some(RecvResponseResult::Cleanup(call)) => (Vec::new(), call.must_close_connection()),
            None => return Err(self.unusable("it is not whole")),
        };
        let answer = Answer { status, body: body.into() };
        Ok(Answered { answer, is_kept: !must_close && self.arrived.is_empty() })
    }

    /// The body of an answer, and whether the connection must close after it.
    async fn body(&mut self, mut call: Call<RecvBody>) -> Result<(Vec<u8>, bool), Unanswered> {
        let mode = call.body_mode();
        if let BodyMode::LengthDelimited(length) = mode
            && length > self.most as u64
        {
            // A body that is declared too large is not read.
            return Err(self.too_large());
        }
        let mut body = Vec::new();
        loop {
            let stays = self.arrived.len();
            self.read_into(&mut body, &mut call)?;
            if mode != BodyMode::CloseDelimited && call.can_proceed() {
                break;
            }
            if self.arrived.len() == stays && stays > MAX_HEAD {
                return Err(self.unusable("its chunks have no end"));
            }
            match self.more().await {
                Ok(0) if mode == BodyMode::CloseDelimited => break,
                Ok(0) => return Err(self.unusable("it ended within its answer")),
                Ok(_) => {}
                Err(error) => return Err(self.unusable(error)),
            }
        }
        match call.proceed() {
            Some(RecvBodyResult::Cleanup(call)) => Ok((body, call.must_close_connection())),
            Some(RecvBodyResult::Redirect(call)) => Ok((body, call.must_close_connection())),
            None => Err(self.unusable("it is not whole")),
        }
    }

    /// Adds what has arrived of a body.
    fn read_into(
        &mut self,
        body: &mut Vec<u8>,
        call: &mut Call<RecvBody>,
    ) -> Result<(), Unanswered> {
        while !self.arrived.is_empty() {
            let known = body.len();
            body.resize(known + self.arrived.len(), 0);
            let read = call.read(&self.arrived, &mut body[known..]);
            let (used, came) = read.map_err(|error| self.unusable(error))?;
            body.truncate(known + came);
            self.arrived.drain(..used);
            if body.len() > self.most {
                return Err(self.too_large());
            }
            if used == 0 || call.can_proceed() {
                break;
            }
        }
        Ok(())
    }

    /// Waits for bytes; how many came, none at the end of the connection.
    async fn more(&mut self) -> io::Result<usize> {
        let Self { stream, arrived, .. } = self;
        poll_fn(|cx| {
            PLACE.with_borrow_mut(|place| {
                let mut read = ReadBuf::new(place);
                ready!(Pin::new(&mut **stream).poll_read(cx, &mut read))?;
                arrived.extend_from_slice(read.filled());
                Ok(read.filled().len()).into()
            })
        })
        .await
    }

    fn unusable(&self, why: impl Into<Cause>) -> Unanswered {
        Unanswered { error: broken(self.to, why), asked: Asked::Yes }
    }

    fn too_large(&self) -> Unanswered {
        let error = ClientError::TooLarge(self.to.address.clone(), self.most);
        Unanswered { error, asked: Asked::Yes }
    }
}
