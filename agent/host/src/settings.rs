//! The configuration file of the program, as far as a running host reads it again.

use windlass_kit::problem::Problem;

/// What SIGHUP has read again. The disk is asked apart; this judges the text.
pub trait Settings: Send {
    /// What problems call the file.
    fn file(&self) -> &'static str;

    /// Takes into force what may change while the program runs. Which keys have changed and wait for
    /// the next start.
    ///
    /// # Errors
    /// Everything that is wrong with the text: what was in force stays so.
    fn follow(&mut self, text: &str) -> Result<Vec<&'static str>, Vec<Problem>>;
}
