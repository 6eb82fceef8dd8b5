//! One connection, which carries one request after another.

use super::request::{Address, Answer, Ask, ClientError};
use bytes::Bytes;
use http::{HeaderValue, Request, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Body;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::Poll;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// The most bytes of an answer's head.
const MAX_HEAD: usize = 16 * 1024;

/// One connection, as long as it carries a request. Only a request in progress drives it, so it needs no
/// task. Dropping this value closes it. [`Connection::into_stream`] leaves the stream alone, without the
/// buffers of a request: an agent has idle connections to each of its VMs.
#[derive(Debug)]
pub(super) struct Connection<S: AsyncRead + AsyncWrite + Unpin> {
    sender: SendRequest<Full<Bytes>>,
    /// Boxed, because futures of several layers hold it.
    connection: Box<http1::Connection<TokioIo<S>, Full<Bytes>>>,
    /// The connection has ended and must not be polled again.
    ended: bool,
}

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

pub(super) async fn connect(address: SocketAddr, to: &Address) -> Result<TcpStream, ClientError> {
    let connected = async {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    };
    connected.await.map_err(|source| ClientError::Connect(to.clone(), source))
}

// === impl Connection ===

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Connection<S> {
    /// Uses a new stream to `to`.
    pub(super) async fn over(stream: S, to: &Address) -> Result<Self, ClientError> {
        let made = http1::Builder::new().max_buf_size(MAX_HEAD).handshake(TokioIo::new(stream));
        let (sender, connection) = made.await.map_err(|error| broken(to, 0, error.into()))?;
        Ok(Self { sender, connection: Box::new(connection), ended: false })
    }

    /// The stream, if it can carry another request: both sides keep it, and the peer sent nothing after its
    /// answer.
    pub(super) async fn into_stream(mut self) -> Option<S> {
        let Self { sender, connection, ended } = &mut self;
        let is_open = poll_fn(|cx| {
            *ended = *ended || Pin::new(&mut *connection).poll(cx).is_ready();
            Poll::Ready(!*ended && matches!(sender.poll_ready(cx), Poll::Ready(Ok(()))))
        });
        if !is_open.await {
            return None;
        }
        let parts = self.connection.into_parts();
        parts.read_buf.is_empty().then(|| parts.io.into_inner())
    }

    /// Sends a request, without a deadline.
    pub(super) async fn ask(
        &mut self,
        to: &Address,
        ask: &Ask,
        after: After,
    ) -> Result<Answer, Unanswered> {
        let limit = ask.max_answer;
        let request =
            request(to, ask, after).map_err(|error| Unanswered { error, asked: Asked::Not })?;
        let Self { sender, connection, ended } = self;
        let mut answer = pin!(async {
            let response = sender.send_request(request).await.map_err(|error| {
                let asked = if error.is_canceled() {
                    Asked::Not
                } else if error.is_incomplete_message() || is_io(&error) {
                    Asked::Perhaps
                } else {
                    Asked::Yes
                };
                Unanswered { error: broken(to, limit, error.into()), asked }
            })?;
            let status = response.status().as_u16();
            // A body that is declared too large is not read.
            if response.body().size_hint().lower() > limit as u64 {
                let error = ClientError::TooLarge(to.clone(), limit);
                return Err(Unanswered { error, asked: Asked::Yes });
            }
            let body = Limited::new(response.into_body(), limit).collect().await;
            let body = body
                .map_err(|why| Unanswered { error: broken(to, limit, why), asked: Asked::Yes })?;
            Ok(Answer { status, body: body.to_bytes() })
        });
        tokio::select! {
            biased;
            answer = &mut answer => answer,
            // The answer may have arrived before the end of the connection.
            Ok(()) | Err(_) = &mut *connection => {
                *ended = true;
                answer.await
            }
        }
    }
}

fn request(to: &Address, ask: &Ask, after: After) -> Result<Request<Full<Bytes>>, ClientError> {
    let mut request = Request::builder()
        .method(&ask.method)
        .uri(ask.path.as_str())
        .header(header::HOST, to.host())
        .header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .body(Full::new(ask.body.clone()))
        .map_err(|_| ClientError::Path(ask.path.clone()))?;
    if after == After::Close {
        request.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    request.headers_mut().extend(ask.headers.clone());
    Ok(request)
}

fn broken(
    to: &Address,
    limit: usize,
    source: Box<dyn std::error::Error + Send + Sync>,
) -> ClientError {
    if source.is::<LengthLimitError>() {
        ClientError::TooLarge(to.clone(), limit)
    } else {
        ClientError::Broken(to.clone(), source)
    }
}

/// Whether the system ended the connection.
fn is_io(error: &hyper::Error) -> bool {
    std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<std::io::Error>)
}
