//! Records and analyses for people: figures for papers.

mod svg;

pub use svg::{Figure, figures};
