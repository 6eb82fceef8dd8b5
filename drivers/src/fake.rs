//! A driver in memory, for tests. (to be written)
