//! What can be typed.

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::commands::advise::Advise;
use crate::commands::audit::AuditArguments;
use crate::commands::bench::Bench;
use crate::commands::certify::Certify;
use crate::commands::check::Check;
use crate::commands::compare::Compare;
use crate::commands::completions::Completions;
use crate::commands::data::Data;
use crate::commands::doctor::Doctor;
use crate::commands::export::Export;
use crate::commands::fingerprint::FingerprintArguments;
use crate::commands::horizon::HorizonArguments;
use crate::commands::merge::Merge;
use crate::commands::polish::Polish;
use crate::commands::prove::Prove;
use crate::commands::rates::Rates;
use crate::commands::report::Report;
use crate::commands::reproduce::Reproduce;
use crate::commands::robustness::RobustnessArguments;
use crate::commands::run::{Resume, Run};
use crate::commands::schema::Schema;
use crate::commands::solve::Solve;
use crate::commands::status::StatusArguments;
use crate::commands::sweep::Sweep;
use crate::commands::verify::Verify;
use crate::commands::watch::Watch;
use crate::commands::worker::WorkerArguments;
use crate::outcome;

/// Where does an optimiser go?
///
/// limitpoint trains linear models and homogeneous networks in any geometry, down to losses far below what a float can
/// hold, and measures in which norm the margin grew.
#[derive(Debug, Parser)]
#[command(name = "limitpoint", version, arg_required_else_help = true, after_help = outcome::CODES)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run an experiment and write its report; without arguments, eight optimisers on embedded handwritten digits.
    #[command(
        after_help = "Examples:\n  limitpoint run\n  limitpoint run digits optimiser.norm=spectral seed=1,2,3 model.width=64..512*2\n  limitpoint run my.toml --out runs/mine --svg\n  limitpoint run digits loss=logistic --print-config\n\nExits with 0 if every run ended by a rule of its recipe, with 1 if one ended in trouble, with 2 if nothing could be run, with 130 if it was interrupted."
    )]
    Run(Run),
    /// Go on with an experiment that was interrupted or killed, or with a finished one to a later stop.
    #[command(
        after_help = "Examples:\n  limitpoint resume runs/showcase\n  limitpoint resume runs/showcase stop.log10_loss=-250\n\nExits as `limitpoint run` does, and with 3 if files of the folder or the data were changed or lost."
    )]
    Resume(Resume),
    /// Lay out the runs of a sweep for any number of workers, and start nothing; or submit workers to Slurm.
    #[command(
        after_help = "Examples:\n  limitpoint sweep digits seed=1..100 model.width=64..512*2 --out runs/widths\n  limitpoint sweep digits seed=1..100 --out runs/widths --slurm workers=10,time=2:00:00,partition=short\n  limitpoint sweep digits seed=1..100 --out runs/widths --slurm workers=10 --print\n\nThe same command again adds what is missing and runs nothing twice; with --slurm it submits workers again, which resumes.\nElsewhere, one line starts ten workers:\n  hq submit --array=1-10 -- limitpoint worker runs/widths        (HyperQueue)\n  seq 10 | parallel -n0 limitpoint worker runs/widths            (GNU parallel)\n  for host in node1 node2; do ssh $host limitpoint worker $PWD/runs/widths & done; wait"
    )]
    Sweep(Sweep),
    /// Claim the runs of a sweep one after the other and run them; any number of workers share a folder.
    #[command(
        after_help = "Examples:\n  limitpoint worker runs/widths\n  limitpoint worker runs/widths --for 30m\n  limitpoint worker runs/widths --jobs 2\n\nTERM, INT and USR1 make it checkpoint, give its run back and leave. Killed, its run is taken over by others.\n\nExits with 0 when it leaves, with 1 if the sweep is complete and runs of it failed, with 2 if it could not work."
    )]
    Worker(WorkerArguments),
    /// Say how a sweep gets on: done, running and where, waiting, failed and why, time left.
    #[command(
        after_help = "Examples:\n  limitpoint status runs/widths\n  limitpoint status runs/widths --retry-failed\n\nExits with 0, or with 1 if runs failed."
    )]
    Status(StatusArguments),
    /// Show a page that follows an experiment, a sweep or a run while it is made, here or elsewhere.
    #[command(
        after_help = "Examples:\n  limitpoint watch runs/widths\n  limitpoint watch runs/widths --address 127.0.0.1:0\n  limitpoint watch runs/widths --address 0.0.0.0:8765\n\nThe page is read off the files: whoever runs is not asked, and may be another machine. Nothing can be written, and no\nfile outside the folder be read. It listens to this machine alone unless told otherwise, and then asks for a token."
    )]
    Watch(Watch),
    /// Put sweeps made in several places together in a new folder.
    #[command(
        after_help = "Examples:\n  limitpoint merge runs/here runs/there --out runs/both\n\nRuns that several of them finished must agree in every bit; what none of them finished waits for a worker."
    )]
    Merge(Merge),
    /// Write the report of an experiment anew from its records.
    #[command(
        after_help = "Examples:\n  limitpoint report runs/showcase\n  limitpoint report runs/showcase --figures svg,pdf,pgf\n  limitpoint report runs/showcase --figures pdf --column margin.l2 --axis loss --size 240x170\n  limitpoint report runs/widths --figures pdf --axis model.width --column margin.linf\n  limitpoint report runs/widths --tables csv,latex,markdown"
    )]
    Report(Report),
    /// Write measurements for other people's viewers: event files for TensorBoard.
    #[command(
        after_help = "Examples:\n  limitpoint export runs/widths --tensorboard board\n  limitpoint export runs/showcase/sign-seed0 --tensorboard board\n\nTensorBoard keeps 32-bit floats, about seven digits. Losses are exported as their logarithms only, so that 10^-1000 is -1000\nand never 0; a number that such a float cannot hold is left out, and counted.\nFrom Python, lp.export(run, to=\"trackio\") and to=\"wandb\"."
    )]
    Export(Export),
    /// Put experiments or sweeps side by side: which runs they share, whether these agree in every bit, and their margins.
    #[command(
        after_help = "Examples:\n  limitpoint compare runs/showcase\n  limitpoint compare runs/digits runs/digits-2 --only seed0\n  limitpoint compare runs/here runs/there\n\nRuns are the same where they have the same optimiser, the same settings and the same seed. Margins are means over the seeds\nthat both have."
    )]
    Compare(Compare),
    /// Check that every file of an experiment is as it was written, and name what is damaged, changed or missing.
    #[command(
        after_help = "Examples:\n  limitpoint verify runs/showcase\n  limitpoint verify runs/showcase/sign-seed0 runs/linear --format json\n\nExits with 0 if all is as it was written, with 3 if not, with 2 if there is nothing to check."
    )]
    Verify(Verify),
    /// Solve the limit's problem exactly: the largest margin in a norm, or the nearest solution of Xw = y.
    #[command(
        after_help = "Examples:\n  limitpoint solve margin data.npz --norm l1\n  limitpoint solve margin matrices.npz --norm spectral --format json\n  limitpoint solve interpolate data.npz --potential entropy\n\nExits with 0 if there is a solution, with 1 if the data cannot be separated (a proof is printed), with 2 if nothing could be solved."
    )]
    Solve(Solve),
    /// Judge the limit of a finished run and write certificate.json.
    #[command(
        after_help = "Examples:\n  limitpoint certify runs/linear\n  limitpoint certify runs/linear/sign-seed0 --norm linf --tolerance 1e-2\n\nExits with 0 if every claim is certified, with 1 if one is not, with 2 if nothing could be judged."
    )]
    Certify(Certify),
    /// Judge weights that somebody else trained, of a network that can be built here: margins and τ in every norm.
    #[command(
        after_help = "Examples:\n  limitpoint audit weights.safetensors data.npz --model 'relu 50'\n  limitpoint audit weights.safetensors data.npz --model 'relu 50 50' --norm l2 --out tangent.safetensors\n  limitpoint check tangent.safetensors\n\nExits with 0 if the weights could be judged, whatever they are, with 2 if not."
    )]
    Audit(AuditArguments),
    /// Check a certificate again, from data and weights alone.
    #[command(
        after_help = "Examples:\n  limitpoint check runs/linear/sign-seed0/certificate.json\n  limitpoint check tangent.safetensors\n\nExits with 0 if every certificate holds and certifies, with 1 if one holds but refutes or leaves it open, with 3 if one does not hold or is damaged, with 2 if one could not be checked."
    )]
    Check(Check),
    /// Jump to the limit: from the weights a run ended with to a certified KKT point nearby.
    #[command(
        after_help = "Examples:\n  limitpoint polish runs/plane/gradient-seed0\n  limitpoint polish runs/plane --norm l2 --format json\n  limitpoint polish runs/plane --prove\n  limitpoint certify runs/plane/gradient-seed0 --weights runs/plane/gradient-seed0/polished-l2.safetensors --tolerance 1e-9\n\nExits with 0 if every run reached its target, with 1 if one stalled, with 2 if nothing could be polished."
    )]
    Polish(Polish),
    /// Prove that an exact KKT point lies next to the polished weights of a network, and of which kind it is.
    #[command(
        after_help = "Examples:\n  limitpoint prove runs/plane/gradient-seed0\n  limitpoint prove runs/plane --norm l2 --format json\n  limitpoint prove runs/plane/gradient-seed0 --improve\n  limitpoint check runs/plane/gradient-seed0/proof-l2.json\n\nA run without polished weights is polished first. The proof is written as proof-NORM.json.\n\nExits with 0 if every run is proven, with 1 if one is refused, with 2 if nothing could be asked."
    )]
    Prove(Prove),
    /// Fit the rates of loss, norm and margin over time, against the theorems.
    #[command(
        after_help = "Examples:\n  limitpoint rates runs/linear\n  limitpoint rates runs/linear --confidence 0.99 --format json"
    )]
    Rates(Rates),
    /// Bracket how far inputs must move before a trained model changes its answer: attacks above, proven bounds below.
    #[command(
        after_help = "Examples:\n  limitpoint robustness runs/digits --out runs/digits/robustness\n  limitpoint robustness runs/digits/gradient-seed0 --attack deep-fool --count 1000 --split test\n  limitpoint robustness runs/digits/gradient-seed0/checkpoints/*.safetensors --format json"
    )]
    Robustness(RobustnessArguments),
    /// Find out which geometry an optimiser maximises the margin in, early and late, from a battery of probe problems.
    #[command(
        after_help = "Examples:\n  limitpoint fingerprint gradient\n  limitpoint fingerprint adam 'adam(epsilon=0)' --out runs/fingerprint\n  limitpoint fingerprint 'mirror(potential=smoothed(p=3, lambda=0))' --format json\n  limitpoint fingerprint 'steepest(norm=lp:4)' --norm lp:4\n\nExits with 0 if there is a fingerprint, whatever it says, with 2 if there is none."
    )]
    Fingerprint(FingerprintArguments),
    /// Say what mirror flow with a potential tends to: its degree, its horizon, and whether the theory covers it.
    #[command(
        after_help = "Examples:\n  limitpoint horizon hyperbolic:0.1\n  limitpoint horizon 't*asinh(t/0.3) - sqrt(t^2 + 0.09)' --out runs/horizon\n  limitpoint horizon '|t|^3/3 + t^2/2' --format json\n\nA formula has one variable t, numbers, pi, e, + - * / ^, |t|, and the functions exp, ln, log, log10, sqrt, cbrt, abs,\nsign, sinh, cosh, tanh, asinh, atan, sin, cos.\n\nExits with 0 if the potential is convex and has a homogeneous limit, with 1 if not, with 2 if it could not be read."
    )]
    Horizon(HorizonArguments),
    /// Give advice before a run: step size and smoothing of mirror descent for a network.
    #[command(
        after_help = "Examples:\n  limitpoint advise mirror --inputs 784 --widths 100,100 --outputs 10\n  limitpoint advise mirror --inputs 2 --widths 100 --deviation 1 --potential smoothed:3\n  limitpoint advise mirror plane --potential hyperbolic --format json"
    )]
    Advise(Advise),
    /// Try out the claims of the papers: run their experiments, ask the judge, and compare.
    #[command(
        after_help = "Examples:\n  limitpoint reproduce --list\n  limitpoint reproduce B\n  limitpoint reproduce B.thm5 B.ex4 --checks\n  limitpoint reproduce B --scale full --format json\n\nClaims that are done are kept in the folder; the same command goes on with the others.\nExits with 0 if every claim has the status that is on record for it, with 1 if one has not, with 2 if nothing could be run."
    )]
    Reproduce(Reproduce),
    /// Print every instance of a concept with its formula and reference, or all that can be set about one thing.
    #[command(
        after_help = "Examples:\n  limitpoint list norms\n  limitpoint list adam\n  limitpoint list stop.log10_loss\n  limitpoint list optimisers --format json"
    )]
    List(List),
    /// Measure training steps per second, against PyTorch and JAX where a Python has them, or the judge's solvers.
    #[command(
        after_help = "Examples:\n  limitpoint bench\n  limitpoint bench --python .venv/bin/python --seconds 2\n  limitpoint bench --scaling --format json\n  limitpoint bench solve --python .venv/bin/python\n  limitpoint bench attack --python .venv/bin/python\n  limitpoint bench --shapes 20 --seed 1 --python .venv/bin/python\n  limitpoint bench --shape 20000x30:300-300:1:f64 --python .venv/bin/python"
    )]
    Bench(Bench),
    /// List and fetch data sets; write out the data of an experiment.
    #[command(
        after_help = "Examples:\n  limitpoint data list\n  limitpoint data fetch mnist\n  limitpoint data export linear --out linear.npz"
    )]
    Data(Data),
    /// Print the JSON schema of experiment files, for editors, or all keys and columns as a page for people.
    #[command(
        after_help = "Examples:\n  limitpoint schema > experiment.schema.json\n  limitpoint schema --markdown > reference.md\n\nIn an editor with Taplo, put at the top of a file:\n  #:schema ./experiment.schema.json"
    )]
    Schema(Schema),
    /// Say what this machine offers and whether something would keep a run from working.
    #[command(
        after_help = "Exits with 0 if all is well, with 1 if not.\n\nExamples:\n  limitpoint doctor\n  limitpoint doctor --format json"
    )]
    Doctor(Doctor),
    /// Print what a shell needs to complete the command line.
    #[command(
        after_help = "Examples:\n  limitpoint completions bash > ~/.local/share/bash-completion/completions/limitpoint\n  limitpoint completions fish > ~/.config/fish/completions/limitpoint.fish"
    )]
    Completions(Completions),
}

/// Arguments of `list`.
#[derive(Debug, Args)]
pub struct List {
    /// A concept, or the name of anything in a recipe, such as adam, lp:3 or stop.log10_loss.
    #[arg(value_name = "CONCEPT", value_parser = Listed::parser())]
    pub what: Listed,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// What `list` is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed {
    /// All instances of a concept.
    Concept(Concept),
    /// One thing by its name.
    Name(String),
}

/// Any word is taken; the help names the concepts.
#[derive(Clone)]
struct ListedParser;

impl Listed {
    fn parser() -> impl TypedValueParser<Value = Self> {
        ListedParser
    }
}

impl TypedValueParser for ListedParser {
    type Value = Listed;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Listed, clap::Error> {
        let word = StringValueParser::new().parse_ref(command, argument, value)?;
        Ok(Concept::from_str(&word, false).map_or(Listed::Name(word), Listed::Concept))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Concept::value_variants().iter().filter_map(ValueEnum::to_possible_value)))
    }
}

/// Concepts whose instances can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Concept {
    /// Geometries of steepest descent and margins.
    Norms,
    /// Mirror potentials.
    Potentials,
    /// Losses.
    Losses,
    /// Models.
    Models,
    /// Functions between layers.
    Activations,
    /// Starting points.
    Initialisers,
    /// Optimisers.
    Optimisers,
    /// Step-size rules.
    Schedules,
    /// Searches for the nearest input with another answer.
    Attacks,
    /// Data sets and loaders.
    Data,
    /// Built-in experiments.
    Experiments,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// Aligned text for people.
    #[default]
    Text,
    /// JSON for programs.
    Json,
}
