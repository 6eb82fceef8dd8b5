//! What stands in place of a Service: it passes connections on to one plugin at a time.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// An address that stays while what is behind it changes. It ends with its value.
pub(crate) struct Front {
    address: SocketAddr,
    behind: Arc<Mutex<String>>,
    _work: JoinSet<()>,
}

// === impl Front ===

impl Front {
    /// One that leads nowhere yet.
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let behind = Arc::<Mutex<String>>::default();
        let work = JoinSet::from_iter([pass(listener, Arc::clone(&behind))]);
        Self { address, behind, _work: work }
    }

    /// Where it is.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// New connections go there.
    pub(crate) fn lead_to(&self, address: &str) {
        address.clone_into(&mut self.behind.lock().unwrap());
    }
}

async fn pass(listener: TcpListener, behind: Arc<Mutex<String>>) {
    let mut connections = JoinSet::new();
    loop {
        let (mut near, _) = listener.accept().await.unwrap();
        let to = behind.lock().unwrap().clone();
        connections.spawn(async move {
            // Where nobody is, the caller's connection is closed.
            if let Ok(mut far) = TcpStream::connect(to).await {
                let _either_has_left = copy_bidirectional(&mut near, &mut far).await;
            }
        });
        while connections.try_join_next().is_some() {}
    }
}
