//! What `limitpoint list` prints: every instance of a concept with its formula and where it comes from.

use serde::Serialize;

/// One line of a catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CatalogueEntry {
    /// The name used in experiment files and on the command line.
    pub key: &'static str,
    /// The definition, in Unicode.
    pub formula: &'static str,
    /// Paper and statement, by the ids of the claims catalogue (for instance `A.eq1`).
    pub reference: &'static str,
}
