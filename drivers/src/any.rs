//! Drivers of any kind behind one type: one agent has VMs of different hypervisors side by side.

use crate::{Attach, Driver, DriverError, Notice};
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::mpsc;
use windlass_protocol::{Capabilities, LimitCounts, Resize, Seen};

/// A way to reach a VM, of whatever kind. Cheap to clone. Two are equal if they are the same way of
/// the same kind.
#[derive(Clone)]
pub struct AnyAttach(Arc<dyn Attaches>);

/// A connection to a VM, of whatever kind.
pub struct AnyDriver(Box<dyn Drives>);

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, DriverError>> + Send + 'a>>;

/// [`Attach`], of whatever type.
trait Attaches: Any + Send + Sync {
    fn place(&self) -> String;
    fn is_same_way(&self, other: &dyn Attaches) -> bool;
    fn attach(&self) -> Answer<'_, (AnyDriver, mpsc::Receiver<Notice>)>;
}

/// [`Driver`], of whatever type.
trait Drives: Send {
    fn capabilities(&self) -> Capabilities;
    fn limit_counts(&self) -> Option<LimitCounts>;
    fn see(&mut self) -> Answer<'_, Seen>;
    fn resize(&mut self, resize: Resize) -> Answer<'_, ()>;
}

// === impl AnyAttach ===

impl AnyAttach {
    /// This way, of which the kind no longer shows.
    pub fn new(attach: impl Attach) -> Self {
        Self(Arc::new(attach))
    }
}

impl Attach for AnyAttach {
    type Driver = AnyDriver;

    fn place(&self) -> String {
        self.0.place()
    }

    fn is_same_way(&self, other: &Self) -> bool {
        self.0.is_same_way(other.0.as_ref())
    }

    async fn attach(&self) -> Result<(AnyDriver, mpsc::Receiver<Notice>), DriverError> {
        self.0.attach().await
    }
}

impl PartialEq for AnyAttach {
    fn eq(&self, other: &Self) -> bool {
        Attach::is_same_way(self, other)
    }
}

impl fmt::Debug for AnyAttach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnyAttach").field(&self.0.place()).finish()
    }
}

impl<A: Attach> Attaches for A {
    fn place(&self) -> String {
        Attach::place(self)
    }

    fn is_same_way(&self, other: &dyn Attaches) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref().is_some_and(|other| Attach::is_same_way(self, other))
    }

    fn attach(&self) -> Answer<'_, (AnyDriver, mpsc::Receiver<Notice>)> {
        Box::pin(async move {
            let (driver, notices) = Attach::attach(self).await?;
            Ok((AnyDriver(Box::new(driver)), notices))
        })
    }
}

// === impl AnyDriver ===

impl Driver for AnyDriver {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn limit_counts(&self) -> Option<LimitCounts> {
        self.0.limit_counts()
    }

    async fn see(&mut self) -> Result<Seen, DriverError> {
        self.0.see().await
    }

    async fn resize(&mut self, resize: Resize) -> Result<(), DriverError> {
        self.0.resize(resize).await
    }
}

impl<D: Driver> Drives for D {
    fn capabilities(&self) -> Capabilities {
        Driver::capabilities(self)
    }

    fn limit_counts(&self) -> Option<LimitCounts> {
        Driver::limit_counts(self)
    }

    fn see(&mut self) -> Answer<'_, Seen> {
        Box::pin(Driver::see(self))
    }

    fn resize(&mut self, resize: Resize) -> Answer<'_, ()> {
        Box::pin(Driver::resize(self, resize))
    }
}
