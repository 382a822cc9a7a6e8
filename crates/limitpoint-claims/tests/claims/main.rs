//! What four papers on implicit bias claim, at a reduced scale: one file per paper, the test name is the statement.
//!
//! | file | paper |
//! |---|---|
//! | `paper_a` | Flavors of Margin: Implicit Bias of Steepest Descent in Homogeneous Neural Networks |
//! | `paper_b` | Characterizing Implicit Bias in Terms of Optimization Geometry |
//! | `paper_c` | Implicit Bias of Mirror Flow in Homogeneous Neural Networks |
//! | `paper_d` | Gradient Descent Maximizes the Margin of Homogeneous Neural Networks |
//! | `beyond` | no paper: open questions that were measured |
//!
//! Identifiers such as A.thm3.1 are those of the claims catalogue. Tolerances are stated where they are used.

#![expect(clippy::print_stderr, reason = "a skipped test says so")]

mod beyond;
mod paper_a;
mod paper_b;
mod paper_c;
mod paper_d;
mod support;
