//! Figures and tables of the papers in the papers' own settings.
//!
//! An [`Exhibit`] is read from runs in folders, which any number of workers on any machines make over days, or from
//! claims that are short at any scale. Its [`ExhibitRecord`] puts print beside ours and says what was not run.
//!
//! | file | holds |
//! |---|---|
//! | `run_sets` | the runs: built-in experiments under overrides |
//! | `material` | what these runs left behind |
//! | `elsewhere` | runs of other days and machines, beside the records |
//! | `reading` | numbers beside print, figures, words |
//! | `record`, `page` | all of it as JSON and as a page, and the index of all pages |
//! | `stored` | final weights beside a record, and the record checked against them |
//! | `estimate` | what a set of runs would take |
//! | `teacher`, `pairs`, `circle`, `depths`, `digits`, `photographs` | how single exhibits are read |

mod circle;
mod depths;
mod digits;
mod elsewhere;
mod estimate;
mod material;
mod page;
mod pairs;
mod photographs;
mod reading;
mod record;
mod run_sets;
mod stored;
mod teacher;

pub use elsewhere::{finished_elsewhere, keep_runs};
pub use estimate::Estimate;
pub use material::{Gathered, Material};
pub use page::index;
pub use reading::{Reading, Row};
pub use record::{End, ExhibitRecord, Extent, SetRecord};
pub use run_sets::{RUN_SETS, RunSet};
pub use stored::{CheckedExhibit, check_exhibit, is_exhibit, keep_weights};

use crate::ClaimError;

/// A figure or a table of a paper.
#[derive(Debug, Clone, Copy)]
pub struct Exhibit {
    /// Its id, such as `C.tab2`.
    pub id: &'static str,
    /// What it shows.
    pub shows: &'static str,
    /// What it is made of.
    pub made_of: MadeOf,
    /// What the paper leaves open or what cannot be followed, and what was taken instead.
    pub departures: &'static [&'static str],
}

/// What an exhibit is made of.
#[derive(Debug, Clone, Copy)]
pub enum MadeOf {
    /// Runs in folders.
    Runs {
        /// Names of their sets.
        sets: &'static [&'static str],
        /// How they are read.
        read: fn(&Material) -> Result<Reading, ClaimError>,
    },
    /// Claims that are short in the paper's setting.
    Claims(&'static [&'static str]),
    /// A picture of an idea.
    Illustration,
}

impl Exhibit {
    /// The names of its sets of runs.
    pub fn sets(&self) -> &'static [&'static str] {
        match self.made_of {
            MadeOf::Runs { sets, .. } => sets,
            MadeOf::Claims(_) | MadeOf::Illustration => &[],
        }
    }
}

const fn of_claims(id: &'static str, shows: &'static str, claims: &'static [&'static str]) -> Exhibit {
    Exhibit { id, shows, made_of: MadeOf::Claims(claims), departures: &[] }
}

/// All forty, in the order of the papers.
///
/// ```
/// assert_eq!(limitpoint_claims::exhibits().len(), 40);
/// ```
pub fn exhibits() -> Vec<Exhibit> {
    let mut all = vec![];
    all.extend(teacher::EXHIBITS);
    all.extend(pairs::EXHIBITS);
    all.push(Exhibit {
        id: "A.fig4",
        shows: "A point near the subdifferential of a norm: a sketch of a definition",
        made_of: MadeOf::Illustration,
        departures: &[],
    });
    all.push(of_claims(
        "B.fig1",
        "Limits of momentum, natural gradient and ℓ4/3 steepest descent beside the minimum of their potential",
        &["B.ex2", "B.ex3", "B.ex4"],
    ));
    all.push(of_claims(
        "C.fig1",
        "Solutions of the balance equation, and level sets of Q beside the ℓ1 ball",
        &["C.fig1L", "C.fig1R"],
    ));
    all.push(of_claims("C.tab1", "Two families of potentials and their horizons", &["C.tab1"]));
    all.push(of_claims("C.tab10", "Rates and λ that keep the first update, by the scale of the start", &["C.tab10"]));
    all.extend(circle::EXHIBITS);
    all.extend(depths::EXHIBITS);
    all.extend(photographs::EXHIBITS);
    all.extend(digits::EXHIBITS);
    all.push(of_claims("D.fig2", "A gradient flow whose direction circles for ever", &["D.hat"]));
    all.sort_by_key(|exhibit| order(exhibit.id));
    all
}

/// By paper, figures before tables, then by number.
fn order(id: &str) -> (String, u32) {
    let digits = id.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    (id[..id.len() - digits.len()].to_owned(), digits.parse().unwrap_or(0))
}

/// The exhibits that an id names: one, all of a paper (`C`), all without an id.
///
/// ```
/// use limitpoint_claims::find_exhibits;
/// assert_eq!(find_exhibits("D").unwrap().len(), 9);
/// assert!(find_exhibits("D.thm4.1").is_none()); // a claim, no figure
/// ```
pub fn find_exhibits(id: &str) -> Option<Vec<Exhibit>> {
    let known = if id == "D.tabl1" { "D.tab1" } else { id };
    let named = |exhibit: &Exhibit| exhibit.id == known || (known.len() == 1 && exhibit.id.starts_with(known));
    let found: Vec<Exhibit> = exhibits().into_iter().filter(named).collect();
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests;
