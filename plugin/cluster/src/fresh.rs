//! Requests over connections that are older than this process's leadership are passed over.
//!
//! A request of an agent may be on its way for a while. One that was sent before an earlier leader answered is not to count after
//! that answer, and a new leader cannot tell: it has not heard the agent yet, and believes its first word. Over a connection that
//! was opened since, nothing comes that was sent before.

use crate::books::ClusterBooks;
use axum::body::Bytes;
use axum::response::Response;
use http::Request;
use windlass_kit::server::{HangUp, OpenSince, Service};

/// A service of permits.
#[derive(Clone, Debug)]
pub struct Fresh<S> {
    service: S,
    books: ClusterBooks,
}

// === impl Fresh ===

impl<S> Fresh<S> {
    /// This service of these books.
    pub const fn new(service: S, books: ClusterBooks) -> Self {
        Self { service, books }
    }
}

impl<S: Service> Service for Fresh<S> {
    async fn answer(&self, request: Request<Bytes>, since: OpenSince) -> Response {
        if self.books.began_after(since.0) {
            return HangUp::response();
        }
        self.service.answer(request, since).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::books::Terms;
    use crate::leadership::Leadership;
    use axum::Router;
    use std::time::{Duration, Instant};
    use windlass_kit::clock::Clock;
    use windlass_plugin_core::pods::Pools;
    use windlass_protocol::{Bytes as Memory, ComputeUnit, MilliCpu, Resources};

    #[tokio::test]
    async fn nothing_counts_of_a_connection_that_is_older_than_the_leadership() {
        let unit = ComputeUnit::new(MilliCpu::from_cores(1), Memory::from_gib(1)).unwrap();
        let terms = Terms { unit, reserve: Resources::ZERO, pools: Pools::default() };
        let books = ClusterBooks::new(terms, Clock::system(), Leadership::standby());
        let fresh = Fresh::new(Router::new(), books.clone());
        let before = Instant::now();
        let answer = |since: Instant| fresh.answer(Request::new(Bytes::new()), OpenSince(since));
        let is_passed_over = |response: &Response| response.extensions().get::<HangUp>().is_some();
        assert!(!is_passed_over(&answer(before).await), "a standby says that it is one");
        books.begin_epoch();
        assert!(is_passed_over(&answer(before).await));
        let after = Instant::now() + Duration::from_millis(1);
        assert!(!is_passed_over(&answer(after).await));
    }
}
