//! `limitpoint reproduce`: the claims of the papers, tried out.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use limitpoint::engine::Device;
use limitpoint::experiments::write_atomically;
use limitpoint::report::sketch_figure;
use limitpoint_claims::{
    Claim, ClaimRecord, Kept, Lab, Scale, ScaleRecord, claim_page, claims, comparison_list, find_claims, gallery,
    open_claims, page_name, summary,
};
use serde_json::json;

use super::data::data_folder;
use super::{exhibits, print, say};
use crate::args::Format;
use crate::outcome::NO;

/// Arguments of `reproduce`.
#[derive(Debug, Args)]
pub struct Reproduce {
    /// Papers and claims, such as `B` or `B.thm5`; all that can be run by default.
    #[arg(value_name = "CLAIM")]
    pub ids: Vec<String>,
    /// List the claims of all papers instead, and whether they can be run.
    #[arg(long)]
    pub list: bool,
    /// How much is run.
    #[arg(long, value_enum, default_value_t)]
    pub scale: ScaleWord,
    /// Print every comparison.
    #[arg(long)]
    pub checks: bool,
    /// Try all of them again, also those that are done; at the paper's scale write records anew that have more than the runs here give.
    #[arg(long)]
    pub fresh: bool,
    /// At the paper's scale: print how many runs figures and tables take, how long and how much memory, and start nothing.
    #[arg(long)]
    pub plan: bool,
    /// At the paper's scale: read figures and tables from the runs that are there, and start none.
    #[arg(long, conflicts_with = "plan")]
    pub read: bool,
    /// At the paper's scale: leave after this time, with checkpoints: 90s, 30m, 2h, 1d. The same command goes on.
    #[arg(long = "for", value_name = "TIME", value_parser = super::worker::duration)]
    pub time: Option<std::time::Duration>,
    /// At the paper's scale: make these runs alone, named as their folders without the hash (gradient-seed1, or d-cnn/gradient-seed1);
    /// several with commas.
    #[arg(long, value_name = "RUNS", value_delimiter = ',', conflicts_with = "read")]
    pub only: Vec<String>,
    /// At the paper's scale: where models of its runs are computed: cpu, or cuda for the first NVIDIA card.
    #[arg(long, value_name = "DEVICE", default_value_t)]
    pub device: Device,
    /// Where claims.json, gallery.html, claims/ (a page for each), record.json and record.md (all but the figures, small enough
    /// to keep), comparisons.txt and figures/ are written; at the paper's scale the folders of runs, and records/.
    #[arg(long, value_name = "FOLDER", default_value = "runs/reproduce")]
    pub out: PathBuf,
    /// Folder with data sets, for claims about MNIST; the environment variable LIMITPOINT_DATA otherwise.
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// The scales as words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ScaleWord {
    /// Minutes for a paper.
    #[default]
    Quick,
    /// Hours: more seeds, larger models, deeper runs.
    Full,
    /// The paper's own sizes and protocol, whatever they cost: figures and tables (A.fig1, C.tab2) from runs in folders that
    /// workers share, claims as at the other scales.
    Paper,
}

/// Runs the verb.
pub fn run(arguments: &Reproduce) -> anyhow::Result<ExitCode> {
    let paper = arguments.scale == ScaleWord::Paper;
    let of_exhibits = arguments.plan
        || arguments.read
        || arguments.time.is_some()
        || !arguments.only.is_empty()
        || arguments.device != Device::Cpu;
    if !paper && of_exhibits {
        anyhow::bail!(
            "--plan, --read, --for, --only and --device belong to figures and tables in the papers' own settings: add --scale paper"
        );
    }
    if let Some(chosen) = exhibits::named(&arguments.ids).filter(|_| paper && !arguments.list) {
        return exhibits::run(arguments, &chosen);
    }
    if of_exhibits && !arguments.list {
        let ids = arguments.ids.join(" ");
        anyhow::bail!(
            "--plan, --read, --for, --only and --device belong to figures and tables, and {ids} names claims: leave them out"
        );
    }
    let chosen = choose(&arguments.ids)?;
    if arguments.list {
        list(arguments, &chosen)?;
        return Ok(ExitCode::SUCCESS);
    }
    // before hours of work, not after
    std::fs::create_dir_all(arguments.out.join("figures"))
        .map_err(|error| anyhow::anyhow!("cannot write to {}: {error}; choose --out", arguments.out.display()))?;
    let scale = arguments.scale.scale();
    let inputs: Vec<PathBuf> = pictures(arguments).into_iter().flatten().collect();
    let program = std::env::current_exe().ok();
    let kept = Kept::new(&arguments.out.join("claims"), scale, program.as_deref(), &inputs);
    let lab = laboratory(arguments);
    let (mut records, mut known) = (Vec::new(), 0);
    for claim in &chosen {
        let found = if arguments.fresh { None } else { kept.find(claim.id) };
        known += usize::from(found.is_some());
        let record = match found {
            Some(record) => record,
            None => {
                let record = claim.run(&lab);
                kept.keep(&record)?;
                record
            }
        };
        match arguments.format {
            Format::Json => say(&line(&record)),
            Format::Text => print(&describe(&record, arguments.checks))?,
        }
        records.push(record);
    }
    if known > 0 {
        say(&format!("{known} of {} were done before; --fresh tries them again", records.len()));
    }
    let page = write(arguments, &records)?;
    let surprises: Vec<&ClaimRecord> = records.iter().filter(|record| !record.as_recorded()).collect();
    match arguments.format {
        Format::Json => print(&document(&records)?)?,
        Format::Text => {
            let mut text = format!("\n{}\n", summary(records.iter().map(|record| record.status)));
            for record in &surprises {
                text += &format!("{} is {}, on record: {}\n", record.id, record.status, record.on_record);
            }
            print(&format!("{text}{}\n", page.display()))?;
        }
    }
    Ok(if surprises.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(NO) })
}

impl ScaleWord {
    fn scale(self) -> Scale {
        match self {
            Self::Quick => Scale::Quick,
            Self::Full => Scale::Full,
            Self::Paper => Scale::Paper,
        }
    }
}

/// Where MNIST and CIFAR-10 are.
fn pictures(arguments: &Reproduce) -> [Option<PathBuf>; 2] {
    ["mnist", "cifar10"].map(|name| images(name, arguments.data_dir.as_deref()))
}

/// The laboratory with the data that are here.
pub fn laboratory(arguments: &Reproduce) -> Lab {
    let [mnist, cifar] = pictures(arguments);
    Lab::new(arguments.scale.scale()).with_mnist(mnist).with_cifar(cifar)
}

/// All claims as JSON, with how many came to which status.
fn document(records: &[ClaimRecord]) -> anyhow::Result<String> {
    let summary = summary(records.iter().map(|record| record.status));
    Ok(serde_json::to_string_pretty(&json!({ "summary": summary, "claims": records }))? + "\n")
}

/// Where a set of images is: in the folder of data sets, or in the one that several programs share.
fn images(name: &str, chosen: Option<&Path>) -> Option<PathBuf> {
    let shared = std::env::var_os("LIMITPOINT_SHARED_DATA").map(PathBuf::from);
    data_folder(chosen).into_iter().chain(shared).map(|folder| folder.join(name)).find(|folder| folder.is_dir())
}

/// The claims that ids name, each once, in the order of the papers.
fn choose(ids: &[String]) -> anyhow::Result<Vec<Claim>> {
    if ids.is_empty() {
        return Ok(claims());
    }
    let mut named = Vec::new();
    for id in ids {
        named.extend(find_claims(id)?.into_iter().map(|claim| claim.id));
    }
    Ok(claims().into_iter().filter(|claim| named.contains(&claim.id)).collect())
}

fn list(arguments: &Reproduce, chosen: &[Claim]) -> anyhow::Result<()> {
    let all = arguments.ids.is_empty();
    let open = if all { open_claims() } else { Vec::new() };
    if arguments.format == Format::Json {
        let ready = chosen.iter().map(|claim| {
            let ids: Vec<&str> = std::iter::once(claim.id).chain(claim.covers.iter().copied()).collect();
            json!({ "ids": ids, "statement": claim.statement, "state": "ready", "printed": claim.printed(),
                    "kind": claim.kind, "on_record": claim.on_record, "experiments": claim.experiments })
        });
        let open = open.iter().map(|entry| json!({ "ids": entry.ids, "statement": entry.statement, "state": "open" }));
        let claims: Vec<_> = ready.chain(open).collect();
        return print(&(serde_json::to_string_pretty(&json!({ "claims": claims }))? + "\n"));
    }
    let mut text = String::new();
    for claim in chosen {
        let covers =
            if claim.covers.is_empty() { String::new() } else { format!(" (with {})", claim.covers.join(", ")) };
        text += &format!("ready  {:<19} {:<14} {}{covers}\n", claim.id, claim.on_record, claim.statement);
    }
    for entry in &open {
        text += &format!("open   {:<19} {:<14} {}\n", entry.ids[0], "", entry.statement);
    }
    text += &format!("\n{} can be run, {} of the catalogue are still open\n", chosen.len(), open.len());
    print(&text)
}

/// One claim on one line; `!` in front of a status that is not the one on record.
fn line(record: &ClaimRecord) -> String {
    let mark = if record.as_recorded() { " " } else { "!" };
    format!(
        "{mark} {:<19} {:<14} {:>3} of {:>3} checks  {:>6.1} s",
        record.id,
        record.status,
        record.holding(),
        record.checks.len(),
        record.seconds
    )
}

/// A claim with its statement, its setting, the comparisons that fail, or all of them, and its notes.
fn describe(record: &ClaimRecord, all: bool) -> String {
    let mut text = format!("{}\n    {}\n", line(record), record.statement);
    let settings = if all { usize::MAX } else { 2 };
    for line in record.setting.lines(settings) {
        text += &format!("    {} scale: {line}\n", record.scale.word());
    }
    for check in record.checks.iter().filter(|check| all || !check.holds) {
        let mark = if check.holds { "holds" } else { "fails" };
        let origin = check.origin.words();
        text += &format!("    {mark}  {}: {}, expected {} ({origin}", check.what, check.measured, check.expected);
        if let Some(asked) = &check.catalogue {
            text += &format!("; the catalogue asks for {asked}");
        }
        text += ")\n";
        let print = check.beside_print(record.scale.word());
        if !print.is_empty() {
            text += &format!("           {print}\n");
        }
    }
    for note in &record.notes {
        text += &format!("    note: {note}\n");
    }
    text
}

/// Writes claims.json, the names of all comparisons, the figures, a page for each claim and the one that leads to them, and a
/// record without figures.
fn write(arguments: &Reproduce, records: &[ClaimRecord]) -> anyhow::Result<PathBuf> {
    let (folder, ids) = (&arguments.out, &arguments.ids[..]);
    let text = document(records)?;
    write_atomically(&folder.join("claims.json"), text.as_bytes())?;
    write_atomically(&folder.join("comparisons.txt"), comparison_list(records).as_bytes())?;
    for sketch in records.iter().flat_map(|record| &record.figures) {
        if let Some(figure) = sketch_figure(sketch) {
            write_atomically(&folder.join("figures").join(format!("{}.svg", figure.name)), figure.svg.as_bytes())?;
        }
    }
    let title = match ids {
        [] => "Claims of the papers".to_owned(),
        ids if ids.iter().all(|id| id.len() == 1) => format!("Claims of paper {}", ids.join(", ")),
        ids if ids.len() > 6 => format!("{} claims of the papers", records.len()),
        ids => format!("Claims {}", ids.join(", ")),
    };
    let record = ScaleRecord::new(arguments.scale.scale(), records);
    write_atomically(&folder.join("record.json"), (serde_json::to_string(&record)? + "\n").as_bytes())?;
    write_atomically(&folder.join("record.md"), record.page(&title).as_bytes())?;
    for (place, record) in records.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| &records[before]);
        let page = claim_page(record, before, records.get(place + 1));
        write_atomically(&folder.join("claims").join(page_name(record)), page.as_bytes())?;
    }
    let page = folder.join("gallery.html");
    write_atomically(&page, gallery(&title, records).as_bytes())?;
    Ok(page)
}
