//! The private core of the Python package: arrays in, numbers out. What people call is written in Python, in
//! `python/limitpoint`; its stubs are in `_core.pyi`.
//!
//! | file | holds |
//! |---|---|
//! | `audit` | norms, tangent problems and files of foreign models, paths of foreign optimisers |
//! | `convert` | JSON as Python objects, errors as exceptions |
//! | `data` | arrays as data sets |
//! | `run` | a training in memory, and a run of a folder |
//! | `settings` | what is trained and how, as Python says it |
//! | `experiment` | experiments in folders, watched and interrupted from Python |
//! | `record` | tables, reports and figures |
//! | `judge` | exact margins and nearest solutions |
//! | `verbs` | fingerprints, horizons, claims of papers, the command line |

mod audit;
mod convert;
mod data;
mod experiment;
mod judge;
mod record;
mod run;
mod settings;
mod verbs;

/// The module `limitpoint._core`.
#[pyo3::pymodule]
mod _core {
    #[pymodule_export]
    use crate::audit::{
        check_tangent, fingerprint_paths, gram_weights, norm_values, probes, save_tangent, scores_of, tangent,
    };
    #[pymodule_export]
    use crate::convert::{Damaged, Error};
    #[pymodule_export]
    use crate::data::Data;
    #[pymodule_export]
    use crate::experiment::{open_run, run_experiment, run_names};
    #[pymodule_export]
    use crate::judge::{free_margin, interpolate, solve_margin};
    #[pymodule_export]
    use crate::record::Record;
    #[pymodule_export]
    use crate::run::{Run, train};
    #[pymodule_export]
    use crate::verbs::{claims, fingerprint, horizon, list_claims, main, model_text};
}
