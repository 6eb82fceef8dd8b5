//! The keys of the agent's files: what is refused, and what the page says of them.

mod files;
mod kubernetes;
mod page;
