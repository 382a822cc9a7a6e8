//! Examples: where they come from and what is known about them.
//!
//! ```text
//! DataSpec ──load──► DataSplit { train, test, truth }
//!    │                    ▲
//!    ├─ generators        │   gaussians, sparse_gaussians, teacher_student, circle, regression, matrices
//!    ├─ embedded          │   digits, points
//!    └─ files ────────────┘   idx, cifar, npy, csv_table, svmlight, safetensors_file; export writes them
//! ```
//!
//! Inputs are dense or sparse, see [`Inputs`]. A [`Dataset`] is checked once, in [`Dataset::new`]; what comes later
//! need not look for NaN or foreign labels again. Random draws use the streams `data` (inputs and subsets), `teacher`
//! (teachers, separators, solutions) and `split` (train against test), so the same seed gives the same bits. Loaders
//! refuse damaged files with the file, the place and a remedy; they neither panic nor believe a length before
//! comparing it with the bytes that are there.

mod dataset;
mod error;
mod inputs;
mod task;
mod transforms;

mod circle;
mod gaussians;
mod matrices;
mod points;
mod regression;
mod sparse_gaussians;
mod teacher;
mod teacher_student;

mod digits;

mod cifar;
mod csv_table;
mod elements;
mod file;
mod idx;
mod images;
mod npy;
mod picture;
mod safetensors_file;
mod source;
mod svmlight;

mod spec;

mod export;
mod npy_writer;

#[cfg(test)]
mod hostile;

pub use circle::CircleTeacher;
pub use csv_table::TargetColumn;
pub use dataset::{Dataset, Targets};
pub use digits::Digits;
pub use error::DataError;
pub use export::to_npz;
pub use file::{File, FileFormat};
pub use gaussians::Gaussians;
pub use images::{ImageFolder, data_folder};
pub use inputs::{Inputs, NeedsDense};
pub use matrices::{Matrices, MatrixTask};
pub use npy::read_npy;
pub use picture::Channels;
pub use points::Points;
pub use regression::{Regression, Solution};
pub use sparse_gaussians::SparseGaussians;
pub use spec::{DataSpec, DataSplit, GroundTruth};
pub use task::Task;
pub use teacher::{ReluTeacher, TeacherNeuron};
pub use teacher_student::TeacherStudent;
pub use transforms::{Normalisation, Standardisation};

use crate::memory::{bytes, require};

/// Bytes that a generated value takes: itself, and itself once more while examples are shaped and copied.
const GENERATED: usize = 16;

/// Refuses a count below `least` or more values than fit in memory.
fn check_size(counts: &[(&'static str, usize, usize)], dimension: usize) -> Result<(), DataError> {
    for &(setting, value, least) in counts {
        if value < least {
            return Err(DataError::setting(setting, value, format!("at least {least}")));
        }
        let what = match dimension {
            0 | 1 => format!("{setting} = {value}"),
            _ => format!("{setting} = {value} with {dimension} numbers each"),
        };
        require(what, bytes(&[value, dimension.max(1)], GENERATED), "ask for fewer")?;
    }
    Ok(())
}
