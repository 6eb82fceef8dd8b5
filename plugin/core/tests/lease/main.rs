//! Who leads: stories of one or two processes, and the law that no two answer at once.

mod laws;
mod stories;
mod world;
