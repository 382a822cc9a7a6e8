//! The claims of all papers, and which can be run.

use std::time::Instant;

use limitpoint::report::Sketch;

use crate::{ClaimError, ClaimRecord, Kind, Lab, Outcome, Setting, Status, paper_a, paper_b, paper_c, paper_d};

/// A statement that can be tried.
///
/// Written down with one of four bases, which say its kind and the status that is on record:
///
/// ```text
/// Claim { id: "A.thm3.1", statement: "…", experiments: &["a-flows"], try_out: monotony, ..Claim::FORMULA }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    /// Id in the catalogue of claims.
    pub id: &'static str,
    /// Other ids of the catalogue that it covers.
    pub covers: &'static [&'static str],
    /// What is claimed.
    pub statement: &'static str,
    /// A formula, or a finding of experiments.
    pub kind: Kind,
    /// The status it has at quick scale; another one is a regression, or news.
    pub on_record: Status,
    /// The status where the embedded digits stand in for MNIST, if it is another.
    pub on_digits: Option<Status>,
    /// Whether it needs CIFAR-10, without which it decides nothing.
    pub needs_cifar: bool,
    /// The built-in experiments it runs.
    pub experiments: &'static [&'static str],
    /// Runs the experiments and compares.
    pub(crate) try_out: fn(&Lab) -> Result<Outcome, ClaimError>,
}

impl Claim {
    /// A theorem, lemma or formula that is reproduced.
    pub(crate) const FORMULA: Self = Self {
        id: "",
        covers: &[],
        statement: "",
        kind: Kind::Formula,
        on_record: Status::Reproduced,
        on_digits: None,
        needs_cifar: false,
        experiments: &[],
        try_out: |_| Ok(Outcome::default()),
    };
    /// What was seen in experiments, and is seen here too.
    pub(crate) const FINDING: Self = Self { kind: Kind::Finding, ..Self::FORMULA };
    /// A formula as printed, which a derivation or an exact example contradicts.
    pub(crate) const MISPRINT: Self = Self { on_record: Status::Contradicted, ..Self::FORMULA };
    /// What was seen in experiments, and is not seen here.
    pub(crate) const NOT_SEEN: Self = Self { on_record: Status::NotReproduced, ..Self::FINDING };

    /// Whether it is the printed form of a statement that differs from what was derived or seen.
    pub fn printed(&self) -> bool {
        self.id.ends_with(".printed")
    }

    /// Tries the claim. An experiment that cannot be run decides nothing: the reason is a check that fails.
    pub fn run(&self, lab: &Lab) -> ClaimRecord {
        let (begin, lab) = (Instant::now(), lab.for_one_claim());
        let tried = (self.try_out)(&lab);
        let decided = tried.is_ok();
        let outcome = tried.unwrap_or_else(|error| {
            let mut outcome = Outcome::default();
            outcome.push("the experiment", "runs", format!("failed: {error}"), false).finite = false;
            outcome
        });
        let status = if decided { outcome.status(self.kind, self.printed()) } else { Status::Undecided };
        let holding = outcome.checks.iter().filter(|check| check.holds).count();
        let shown = outcome.checks.iter().find(|check| !check.holds).or(outcome.checks.first());
        let measured = shown.map_or("", |check| check.measured.as_str());
        ClaimRecord {
            id: self.id.to_owned(),
            statement: self.statement.to_owned(),
            kind: self.kind,
            status,
            on_record: self.expected_of(&lab),
            expected: shown.map_or_else(String::new, |check| format!("{}: {}", check.what, check.expected)),
            measured: format!("{measured} ({holding} of {} checks hold)", outcome.checks.len()),
            scale: lab.scale(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            seconds: begin.elapsed().as_secs_f64(),
            printed: self.printed(),
            experiments: self.experiments.iter().map(|name| (*name).to_owned()).collect(),
            setting: Setting::of(&lab.entries(), outcome.dropped),
            checks: outcome.checks,
            notes: outcome.notes,
            figures: outcome.sketches.into_iter().map(finite).collect(),
        }
    }
}

impl Claim {
    /// The status on record for the data that are here.
    fn expected_of(&self, lab: &Lab) -> Status {
        if self.needs_cifar && lab.cifar().is_err() {
            return Status::Undecided;
        }
        self.on_digits.filter(|_| lab.mnist().is_none()).unwrap_or(self.on_record)
    }
}

/// A figure without the points that cannot be drawn, which files could not hold either.
fn finite(mut sketch: Sketch) -> Sketch {
    fn retain<const N: usize>(points: &mut Vec<[f64; N]>) {
        points.retain(|point| point.iter().all(|x| x.is_finite()));
    }
    sketch.curves.iter_mut().for_each(|curve| retain(&mut curve.points));
    sketch.bands.iter_mut().for_each(|band| retain(&mut band.points));
    sketch.clouds.iter_mut().for_each(|cloud| retain(&mut cloud.points));
    sketch.dots.retain(|dot| dot.at.iter().all(|x| x.is_finite()));
    sketch
}

/// One line of the list of all claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimEntry {
    /// All ids that are covered together.
    pub ids: Vec<&'static str>,
    /// What is claimed.
    pub statement: &'static str,
    /// Whether it can be run.
    pub ready: bool,
}

/// Every claim that can be run, in the order of the papers.
///
/// ```
/// assert!(limitpoint_claims::claims().iter().any(|claim| claim.id == "B.thm5"));
/// ```
pub fn claims() -> Vec<Claim> {
    [paper_a::claims(), paper_b::claims(), paper_c::claims(), paper_d::claims()].concat()
}

/// The claims an id names: itself and its printed form, a whole paper (`B`), or an id that a claim covers.
///
/// ```
/// use limitpoint_claims::find_claims;
/// assert_eq!(find_claims("B.eq8")?.len(), find_claims("B.ex2")?.len());
/// assert!(find_claims("B.thm99").unwrap_err().to_string().contains("B.thm99"));
/// # Ok::<(), limitpoint_claims::ClaimError>(())
/// ```
pub fn find_claims(id: &str) -> Result<Vec<Claim>, ClaimError> {
    let all = claims();
    let base = id.trim_end_matches(".printed");
    let matches = |claim: &Claim| {
        claim.id == id
            || (id == base && claim.id.strip_suffix(".printed") == Some(base))
            || claim.covers.contains(&id)
            || (id.len() == 1 && claim.id.starts_with(&format!("{id}.")))
    };
    let found: Vec<Claim> = all.iter().filter(|claim| matches(claim)).copied().collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let open = open_claims().into_iter().find(|entry| entry.ids.contains(&id));
    let hint = match open {
        Some(entry) => format!(
            "'{}' is in the catalogue, but nothing compares it yet; its runs are those of `--scale paper`",
            entry.statement
        ),
        None => {
            let near = all.iter().map(|claim| claim.id).max_by(|a, b| {
                let score = |known: &str| shared_start(known, id);
                score(a).cmp(&score(b))
            });
            format!("did you mean '{}'? `limitpoint reproduce --list` shows them all", near.unwrap_or("B"))
        }
    };
    Err(ClaimError::Unknown { id: id.to_owned(), hint })
}

/// How many leading characters two ids share, without regard to case.
fn shared_start(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count()
}

/// Claims of the catalogue that nothing compares yet.
pub fn open_claims() -> Vec<ClaimEntry> {
    OPEN.iter().map(|(ids, statement)| ClaimEntry { ids: ids.split(", ").collect(), statement, ready: false }).collect()
}

/// Their ids and statements.
const OPEN: &[(&str, &str)] = &[("D.fig5, D.fig6", "CIFAR-10 VGG, lr 0.1 and loss-based")];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_unique_and_experiments_exist() {
        let mut seen = BTreeSet::new();
        for claim in claims() {
            assert!(seen.insert(claim.id.to_owned()), "{} is listed twice", claim.id);
            assert!(!claim.statement.is_empty(), "{} says nothing", claim.id);
            // only a formula in print can be contradicted, and a printed form that holds needs no claim of its own
            let contradicted = claim.on_record == Status::Contradicted;
            assert!(!contradicted || (claim.printed() && claim.kind == Kind::Formula), "{}", claim.id);
            assert!(!claim.printed() || claim.on_record != Status::Reproduced, "{}", claim.id);
            assert!(claim.covers.iter().all(|id| seen.insert((*id).to_owned())), "{} covers an id again", claim.id);
            for name in claim.experiments {
                assert!(limitpoint::experiments::RecipeSource::find(name).is_ok(), "{} runs {name}", claim.id);
            }
        }
        for entry in open_claims() {
            assert!(entry.ids.iter().all(|id| seen.insert((*id).to_owned())), "{entry:?}");
        }
    }

    #[test]
    fn ids_name_claims_papers_and_what_is_covered() {
        assert_eq!(find_claims("B").unwrap().len(), claims().iter().filter(|claim| claim.id.starts_with("B.")).count());
        let names = |id: &str| find_claims(id).unwrap().iter().map(|claim| claim.id).collect::<Vec<_>>();
        assert_eq!(names("B.prop2a"), ["B.prop2a", "B.prop2a.printed"]);
        assert_eq!(names("B.prop2a.printed"), ["B.prop2a.printed"]);
        assert!(find_claims("D.fig5").err().unwrap().to_string().contains("--scale paper"));
        assert!(find_claims("b.thm").err().unwrap().to_string().contains("did you mean 'B.thm"));
    }
}
