//! Files that people write: each has one [`Table`] of typed [`Field`]s.
//!
//! A field states once its name, its [`Kind`] (notation and range), its default and its purpose. A
//! [`Reader`] reads a file by its table and finds every [`Problem`], not only the first. The documents,
//! `windlass check --keys` and the tests come from [`Table::rows`]. `kit::config` turns text into
//! [`Node`]s.
//!
//! ```text
//!   text ── kit::config ──► nodes ── Reader (by a Table) ──► values of a program's own type
//!                                        └──► problems: field, value, range
//! ```

mod field;
mod kind;
mod node;
mod problem;
mod reader;
mod typed;

pub use field::{Field, Form, Row, Table, Value, key};
pub(crate) use kind::MOST_SLOTS;
pub use kind::{Kind, MEMORY};
pub use node::{Node, memory};
pub use problem::Problem;
pub use reader::Reader;
pub use typed::Typed;
