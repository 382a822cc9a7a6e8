//! `limitpoint data`: which data sets are there, fetching those that are not, and writing out those of experiments.

mod export;
mod fetch;
#[cfg(test)]
mod fetch_tests;
mod sets;
mod unpack;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use self::fetch::Outcome;
pub use self::sets::{KNOWN, KnownSet};
use crate::args::Format;

/// Arguments of `data`.
#[derive(Debug, Args)]
pub struct Data {
    /// What to do.
    #[command(subcommand)]
    pub action: Action,
}

/// What can be done with data sets.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Print the data sets that can be fetched, where they are looked for, and whether they are there.
    #[command(after_help = "Examples:\n  limitpoint data list\n  limitpoint data list --format json")]
    List(ListSets),
    /// Download a data set, check it, and put it where recipes find it.
    #[command(
        after_help = "An interrupted download goes on where it stopped. Every file is checked by its SHA-256.\n\nExamples:\n  limitpoint data fetch mnist\n  limitpoint data fetch cifar10 --data-dir /big/disk\n  limitpoint data fetch mnist --from https://mirror.example/mnist/"
    )]
    Fetch(Fetch),
    /// Write exactly the training and test data of an experiment, generated ones too, as a NumPy archive.
    #[command(
        after_help = "The archive holds X (examples x shape of one) and y, and X_test and y_test where there are test examples:\ndoubles, classes as integers from 0. Sparse inputs are X_data, X_indices, X_indptr and X_shape, as SciPy's csr_matrix\ntakes them. The SHA-256 printed is that of manifests and certificates.\n\nExamples:\n  limitpoint data export digits --out digits.npz\n  limitpoint data export mine.toml data.count=40 --seed 3 --out mine.npz\n  limitpoint data export runs/mine/gradient-seed1 --out mine.npz\n  python3 -c \"import numpy; data = numpy.load('mine.npz'); print(data['X'].shape, data['y'][:5])\""
    )]
    Export(export::Export),
}

/// Arguments of `data list`.
#[derive(Debug, Args)]
pub struct ListSets {
    /// The folder with a subfolder per data set; by default $LIMITPOINT_DATA, else limitpoint in the cache folder.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Arguments of `data fetch`.
#[derive(Debug, Args)]
pub struct Fetch {
    /// The data set.
    pub set: SetName,
    /// The folder with a subfolder per data set; by default $LIMITPOINT_DATA, else limitpoint in the cache folder.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// A web folder with the same files, instead of the usual ones.
    #[arg(long, value_name = "URL")]
    pub from: Option<String>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Data sets that can be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SetName {
    /// Handwritten digits, 28×28, 60,000 and 10,000.
    Mnist,
    /// Clothes in the format of MNIST.
    FashionMnist,
    /// Small colour photographs, 3×32×32, 50,000 and 10,000.
    Cifar10,
}

impl SetName {
    fn set(self) -> &'static KnownSet {
        match self {
            Self::Mnist => &KNOWN[0],
            Self::FashionMnist => &KNOWN[1],
            Self::Cifar10 => &KNOWN[2],
        }
    }
}

/// Runs the verb.
pub fn run(data: &Data) -> anyhow::Result<ExitCode> {
    match &data.action {
        Action::List(list) => print_list(list)?,
        Action::Fetch(wanted) => print_fetch(wanted)?,
        Action::Export(export) => export::run(export)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a data set is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Presence {
    /// Its name.
    pub key: &'static str,
    /// Where it is looked for.
    pub folder: PathBuf,
    /// Whether every file the loader opens is there.
    pub present: bool,
    /// Files that are not there.
    pub missing: Vec<&'static str>,
    /// Bytes of the files that are there.
    pub bytes: u64,
    /// Bytes of a download.
    pub download_bytes: u64,
}

/// Looks for every known data set below `root`.
pub fn presence(root: &Path) -> Vec<Presence> {
    let look = |set: &KnownSet| {
        let folder = root.join(set.key);
        let found = set.find(&folder);
        let missing: Vec<&'static str> =
            found.iter().filter(|(_, path)| path.is_none()).map(|(name, _)| *name).collect();
        let sizes = found.iter().filter_map(|(_, path)| path.as_ref()?.metadata().ok()).map(|data| data.len());
        Presence {
            key: set.key,
            folder,
            present: missing.is_empty(),
            missing,
            bytes: sizes.sum(),
            download_bytes: set.download_bytes(),
        }
    };
    KNOWN.iter().map(look).collect()
}

/// The folder of all data sets: the one that was chosen with `--data-dir`, else that of the environment.
pub fn data_folder(chosen: Option<&Path>) -> Option<PathBuf> {
    chosen.map(Path::to_owned).or_else(limitpoint::data::data_folder)
}

fn root(chosen: Option<&Path>) -> anyhow::Result<PathBuf> {
    data_folder(chosen).context("no folder for data: neither LIMITPOINT_DATA nor HOME is set; name one with --data-dir")
}

fn print_list(list: &ListSets) -> anyhow::Result<()> {
    let sets = presence(&root(list.data_dir.as_deref())?);
    if list.format == Format::Json {
        return super::print(&(serde_json::to_string_pretty(&sets)? + "\n"));
    }
    let state = |set: &Presence| match (set.present, set.bytes) {
        (true, bytes) => format!("present, {}", size(bytes)),
        (false, 0) => format!("absent, download of {}", size(set.download_bytes)),
        (false, _) => format!("incomplete, lacks {}", set.missing.join(" ")),
    };
    let (keys, states) = (
        sets.iter().map(|set| set.key.len()).max().unwrap_or(0),
        sets.iter().map(|set| state(set).chars().count()).max().unwrap_or(0),
    );
    let line = |set: &Presence| format!("{:keys$}  {:states$}  {}\n", set.key, state(set), set.folder.display());
    super::print(&sets.iter().map(line).collect::<String>())
}

/// What `data fetch` did.
#[derive(Debug, Serialize)]
struct Fetched {
    key: &'static str,
    folder: PathBuf,
    files: Vec<FetchedFile>,
}

/// One file of it.
#[derive(Debug, Serialize)]
struct FetchedFile {
    name: &'static str,
    bytes: u64,
    sha256: &'static str,
    outcome: Outcome,
}

fn print_fetch(wanted: &Fetch) -> anyhow::Result<()> {
    let set = wanted.set.set();
    let folder = root(wanted.data_dir.as_deref())?.join(set.key);
    let fetched = bring(set, wanted.from.as_deref(), &folder).with_context(|| {
        format!(
            "{} was not fetched into {}; with a copy of its files elsewhere, name the folder that contains {}/ with \
             --data-dir or LIMITPOINT_DATA",
            set.key,
            folder.display(),
            set.key
        )
    })?;
    if wanted.format == Format::Json {
        return super::print(&(serde_json::to_string_pretty(&fetched)? + "\n"));
    }
    let mut text = String::new();
    for file in &fetched.files {
        let outcome = match file.outcome {
            Outcome::Present => "present",
            Outcome::Fetched => "fetched",
            Outcome::Resumed => "resumed",
        };
        text.push_str(&format!("{outcome}  {:>9}  {}\n", size(file.bytes), file.name));
    }
    text.push_str(&format!("{} is complete in {}\n", set.key, folder.display()));
    super::print(&text)?;
    if wanted.data_dir.is_some() {
        super::say(&format!(
            "to use it, set LIMITPOINT_DATA={} or dir in the recipe",
            folder.parent().unwrap_or(&folder).display()
        ));
    }
    Ok(())
}

/// Downloads what is missing and unpacks what must be.
fn bring(set: &'static KnownSet, from: Option<&str>, folder: &Path) -> anyhow::Result<Fetched> {
    std::fs::create_dir_all(folder).with_context(|| format!("could not make the folder {}", folder.display()))?;
    let sources: Vec<&str> = from.map_or_else(|| set.sources.to_vec(), |source| vec![source]);
    let mut files = Vec::new();
    for file in set.files {
        let bar = ProgressBar::new(file.bytes).with_message(file.name);
        if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {bytes}/{total_bytes} {eta}") {
            bar.set_style(style);
        }
        let outcome = fetch::fetch(file, &sources, folder, &mut |bytes| bar.set_position(bytes));
        bar.finish_and_clear();
        files.push(FetchedFile { name: file.name, bytes: file.bytes, sha256: file.sha256, outcome: outcome? });
    }
    if let (Some(bytes), Some(archive)) = (set.member_bytes, set.files.first()) {
        let whole = |name: &&str| folder.join(name).metadata().is_ok_and(|data| data.len() == bytes);
        let missing: Vec<&str> = set.opened.iter().copied().filter(|name| !whole(name)).collect();
        unpack::unpack(&folder.join(archive.name), folder, &missing, bytes)?;
    }
    Ok(Fetched { key: set.key, folder: folder.to_owned(), files })
}

/// `9.9 MB`.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
