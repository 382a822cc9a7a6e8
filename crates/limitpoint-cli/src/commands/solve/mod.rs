//! `limitpoint solve`: exact optima, from data alone.

mod interpolate;
mod margin;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use limitpoint::data::{Dataset, File, FileFormat, Task, data_folder};
use limitpoint::experiments::{RecipeSource, plan};
use limitpoint::norms::NormSpec;
use limitpoint::numeric::Streams;

use super::say;

use self::interpolate::Interpolate;
use self::margin::Margin;

/// Arguments of `solve`.
#[derive(Debug, Args)]
pub struct Solve {
    /// The problem.
    #[command(subcommand)]
    pub problem: Problem,
}

/// What can be solved.
#[derive(Debug, Subcommand)]
pub enum Problem {
    /// The largest margin of a linear model in a norm, its direction, the dual weights that prove it, and whether the
    /// direction is the only one.
    #[command(
        after_help = "The status is `optimal` (bounds proven to 1e-9 of the margin or better), `not-separable` (the dual weights combine all examples to 0) or `inaccurate` (the bounds hold, but are wider). A direction or weights that doubles cannot hold exactly enough come with a second vector, `direction_low` or `dual_low`, to be added.\n\nExits with 0 if the answer is optimal, with 1 if it is not, with 2 if nothing could be solved.\n\nExamples:\n  limitpoint solve margin data.npz --norm linf\n  limitpoint solve margin data.npz --norm lp --p 3 --format json\n  limitpoint solve margin 'digits(classes=[3,6])' --norm spectral"
    )]
    Margin(Margin),
    /// The weights with Xw = y that a norm or a potential prefers: the limit of mirror descent on regression.
    #[command(
        after_help = "Exits with 0 if there is a solution, with 1 if the equations contradict each other or no solution lies in the domain of the potential, with 2 if nothing could be solved.\n\nExamples:\n  limitpoint solve interpolate data.npz --norm l1\n  limitpoint solve interpolate data.npz --potential hyperbolic:0.1 --start w0.npy\n  limitpoint solve interpolate data.npz --potential entropy --sum 1 --format json"
    )]
    Interpolate(Interpolate),
}

/// Where the examples are.
#[derive(Debug, Args)]
pub struct Source {
    /// A file (npz with X and y, npy, csv, svmlight, …; see `limitpoint list data`), or data as recipes name them, such
    /// as 'gaussians(count=12, margin=1.5)'.
    #[arg(value_name = "DATA")]
    pub data: String,
    /// The seed of generated data.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Whether the first line of a csv file holds titles; by default it does if none of its fields is a number.
    #[arg(long, value_name = "true|false")]
    pub header: Option<bool>,
}

impl Source {
    /// The examples; the targets of a file are read as `task` says.
    pub fn load(&self, task: Task) -> anyhow::Result<Dataset> {
        let path = Path::new(&self.data);
        let streams = Streams::new(self.seed);
        if path.exists() || FileFormat::of(path).is_ok() {
            let file = File { task, header: self.header, ..File::at(PathBuf::from(path)) };
            let data = file.load(&streams)?.train;
            data.notes.iter().for_each(|note| say(note));
            return Ok(data);
        }
        let named = plan(&RecipeSource::find("linear")?, &[format!("data={}", self.data)]).with_context(|| {
            format!("'{}' is neither a file nor data that recipes know; see `limitpoint list data`", self.data)
        })?;
        let [point] = named.points.as_slice() else {
            bail!("'{}' names {} data sets, but one is solved at a time", self.data, named.points.len());
        };
        Ok(point.recipe.data.placed(data_folder().as_deref())?.load(&streams)?.train)
    }
}

/// The norm of `--norm` and `--p`.
fn norm(name: &str, p: Option<&str>) -> anyhow::Result<NormSpec> {
    match (name, p) {
        ("lp", None) => bail!("--norm lp needs its exponent: add --p 3, or write --norm lp:3"),
        ("lp", Some(p)) => Ok(format!("lp:{p}").parse()?),
        (_, Some(p)) => bail!("--p {p} belongs to --norm lp, but the norm is '{name}'"),
        (name, None) => Ok(name.parse()?),
    }
}

/// Lines of a key and a value, the values below each other.
fn lines(pairs: &[(&str, String)]) -> String {
    let width = pairs.iter().map(|(key, _)| key.chars().count()).max().unwrap_or(0);
    pairs.iter().map(|(key, value)| format!("{key:width$}  {value}\n")).collect()
}

/// The first numbers of a list, and how many more there are.
fn shown(values: &[f64]) -> String {
    const MOST: usize = 8;
    let mut text: Vec<String> = values.iter().take(MOST).map(|x| format!("{x:.9}")).collect();
    if values.len() > MOST {
        text.push(format!("… and {} more (--format json prints all)", values.len() - MOST));
    }
    text.join(" ")
}

/// Runs the verb.
pub fn run(solve: &Solve) -> anyhow::Result<ExitCode> {
    match &solve.problem {
        Problem::Margin(arguments) => margin::run(arguments),
        Problem::Interpolate(arguments) => interpolate::run(arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponent_belongs_to_lp() {
        assert_eq!(norm("lp", Some("4/3")).unwrap(), NormSpec::Lp { p: 4.0 / 3.0 });
        assert_eq!(norm("lp:3", None).unwrap(), NormSpec::Lp { p: 3.0 });
        assert_eq!(norm("l1", None).unwrap(), NormSpec::L1);
        assert!(norm("lp", None).unwrap_err().to_string().contains("--p 3"));
        assert!(norm("l1", Some("3")).unwrap_err().to_string().contains("--norm lp"));
        assert!(norm("lp", Some("x")).is_err() && norm("l", None).is_err());
    }

    #[test]
    fn lines_are_aligned_and_long_lists_cut() {
        assert_eq!(lines(&[("a", "1".into()), ("long", "2".into())]), "a     1\nlong  2\n");
        assert_eq!(shown(&[0.5, -1.0]), "0.500000000 -1.000000000");
        assert!(shown(&[0.0; 20]).ends_with("… and 12 more (--format json prints all)"));
    }
}
