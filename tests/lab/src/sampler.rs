//! Figures from outside and inside, over time, beside whatever else is going on.

use crate::{Guest, Inside, Outside};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Most points that are kept: two guests, twice a second, for two hours.
const MOST: usize = 30_000;

/// One look at one guest. What did not answer is `None`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// When, since the sampler's start.
    pub at: Duration,
    /// Whose.
    pub guest: String,
    /// What its hypervisor says that it has.
    pub outside: Option<Outside>,
    /// What its kernel says that it has.
    pub inside: Option<Inside>,
}

/// Looks at guests until it is dropped.
pub struct Sampler {
    points: Arc<Mutex<Vec<Point>>>,
    tasks: JoinSet<()>,
}

// === impl Sampler ===

impl Sampler {
    /// Looks at each guest as often as said; must be called in a tokio runtime. `start` is
    /// what the points' times count from.
    pub fn start(guests: &[Arc<Guest>], start: Instant, every: Duration) -> Self {
        let points = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        for guest in guests {
            tasks.spawn(watch(Arc::clone(guest), Arc::clone(&points), start, every));
        }
        Self { points, tasks }
    }

    /// The points so far, in the order they were taken.
    pub fn points(&self) -> Vec<Point> {
        self.points.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The latest point of a guest.
    pub fn latest(&self, guest: &str) -> Option<Point> {
        let points = self.points.lock().unwrap_or_else(PoisonError::into_inner);
        points.iter().rev().find(|point| point.guest == guest).cloned()
    }

    /// Ends, and gives the points.
    pub async fn stop(mut self) -> Vec<Point> {
        self.tasks.shutdown().await;
        self.points()
    }
}

async fn watch(guest: Arc<Guest>, points: Arc<Mutex<Vec<Point>>>, start: Instant, every: Duration) {
    loop {
        let (outside, inside) = tokio::join!(guest.outside(), guest.inside());
        let point = Point {
            at: start.elapsed(),
            guest: guest.name().to_owned(),
            outside: outside.ok(),
            inside: inside.ok(),
        };
        {
            let mut points = points.lock().unwrap_or_else(PoisonError::into_inner);
            if points.len() >= MOST {
                return;
            }
            points.push(point);
        }
        tokio::time::sleep(every).await;
    }
}
