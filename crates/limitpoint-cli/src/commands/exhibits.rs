//! `limitpoint reproduce --scale paper`: figures and tables of the papers, from runs in folders that any number of workers share.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::Context;
use limitpoint::engine::{Device, Precision};
use limitpoint::experiments::{Departure, Plan, ProductRate, TaskLabel, WorkOptions, lay_out, write_atomically};
use limitpoint::report::sketch_figure;
use limitpoint_claims::{
    Estimate, Exhibit, ExhibitRecord, Material, RunSet, check_exhibit, exhibits, find_exhibits, finished_elsewhere,
    index, is_exhibit, keep_runs, keep_weights,
};
use serde_json::json;

use super::reproduce::{Reproduce, laboratory};
use super::worker::{Ends, leave_after, leave_on_signals, side_by_side};
use super::{data::data_folder, print, say};
use crate::args::Format;
use crate::{outcome, values};

/// The exhibits that ids name; nothing if one of them is no exhibit.
pub fn named(ids: &[String]) -> Option<Vec<Exhibit>> {
    let found: Option<Vec<Vec<Exhibit>>> = ids.iter().map(|id| find_exhibits(id)).collect();
    if ids.is_empty() { Some(exhibits()) } else { found.map(|found| found.concat()) }
}

/// The sets of runs of some exhibits, each once.
fn sets_of(chosen: &[Exhibit]) -> Vec<&'static RunSet> {
    let mut sets: Vec<&RunSet> = Vec::new();
    for set in chosen.iter().flat_map(|exhibit| exhibit.sets()).filter_map(|name| RunSet::find(name)) {
        if !sets.iter().any(|known| known.name == set.name) {
            sets.push(set);
        }
    }
    sets
}

/// The runs of some exhibits that are to be made: all, or those that were named; not those that records say are finished. Sets without
/// any are left out.
fn plans_of(arguments: &Reproduce, chosen: &[Exhibit]) -> anyhow::Result<Vec<(&'static RunSet, Plan)>> {
    let (mut plans, mut names) = (Vec::new(), BTreeSet::new());
    for set in sets_of(chosen) {
        let plan = set.plan()?;
        let done = finished_elsewhere(&arguments.out.join("records"), set, &plan)?;
        let own = |name: &str| format!("{}/{name}", set.name);
        for TaskLabel { name, .. } in plan.tasks().into_iter().map(|task| task.label) {
            names.extend([own(&name), name]);
        }
        let named = |name: &str| arguments.only.iter().any(|only| *only == name || *only == own(name));
        let wanted = |label: &TaskLabel| arguments.only.is_empty() || named(&label.name);
        let plan = plan.only(|label| wanted(label) && !done(label));
        if !plan.points.is_empty() {
            plans.push((set, plan));
        }
    }
    if let Some(unknown) = arguments.only.iter().find(|name| !names.contains(*name)) {
        let some: Vec<&str> = names.iter().take(4).map(String::as_str).collect();
        anyhow::bail!("--only: no run is called '{unknown}'; there are {}, …", some.join(", "));
    }
    Ok(plans)
}

/// Runs the verb for exhibits: makes their runs, as far as time allows, and reads them.
pub fn run(arguments: &Reproduce, chosen: &[Exhibit]) -> anyhow::Result<ExitCode> {
    if arguments.plan {
        return plan(arguments, chosen);
    }
    let data_folder = data_folder(arguments.data_dir.as_deref());
    if !arguments.read {
        make(arguments, chosen, data_folder.as_deref())?;
    }
    let records = arguments.out.join("records");
    std::fs::create_dir_all(&records)
        .with_context(|| format!("cannot write to {}; choose --out", records.display()))?;
    let lab = laboratory(arguments);
    let mut made = Vec::new();
    for exhibit in chosen {
        let material = Material::gather(exhibit.sets(), &arguments.out, data_folder.as_deref(), arguments.device)?;
        let Some(read) = ExhibitRecord::of(exhibit, &material, &lab)? else { continue };
        let record = match known_record(&records, exhibit.id).filter(|_| !arguments.fresh) {
            Some(known) if known.content().iter().zip(read.content()).any(|(known, read)| *known > read) => {
                let ([runs, numbers], [runs_here, numbers_here]) = (known.content(), read.content());
                say(&format!(
                    "{}: the record here is of {runs} runs with {numbers} numbers and curves, the runs here are {runs_here} and give \
                     {numbers_here}; it is left as it is, --fresh writes it anew",
                    known.id
                ));
                // but for what is said of any record of this exhibit
                ExhibitRecord { shows: read.shows, departures: read.departures, ..known }
            }
            _ => read,
        };
        write(&records, &record, &material)?;
        keep_runs(&material)?;
        let [planned, finished] = [false, true].map(|finished| {
            record.sets.iter().map(|set| if finished { set.finished } else { set.planned }).sum::<usize>()
        });
        if arguments.format == Format::Text {
            print(&format!(
                "{:<8} {:<9} {finished:>4} of {planned:>4} runs  {}\n",
                record.id,
                record.extent.words(),
                record.shows
            ))?;
        }
        made.push(record);
    }
    let known = known_records(&records, &made);
    write_atomically(&records.join("README.md"), index(&known).as_bytes())?;
    match arguments.format {
        Format::Json => print(&(serde_json::to_string_pretty(&json!({ "exhibits": made }))? + "\n"))?,
        Format::Text => print(&format!("{}\n", records.join("README.md").display()))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Lays out what is missing and works until it is done, time is up or somebody interrupts.
fn make(arguments: &Reproduce, chosen: &[Exhibit], data_folder: Option<&Path>) -> anyhow::Result<()> {
    let interrupt = leave_on_signals()?;
    leave_after(arguments.time, &interrupt);
    let threads = values::threads(None, false);
    // all of them first, so that others may help with any
    let lay = |(set, plan): (&'static RunSet, Plan)| -> anyhow::Result<_> {
        let folder = set.folder(&arguments.out);
        let laid_out = lay_out(&plan, &folder, data_folder).with_context(|| format!("cannot lay out {}", set.name))?;
        say(&format!("{}: {} runs; others may help: limitpoint worker {}", set.name, laid_out.runs, folder.display()));
        Ok((folder, laid_out))
    };
    let sets = plans_of(arguments, chosen)?.into_iter().map(lay).collect::<anyhow::Result<Vec<_>>>()?;
    for (folder, laid_out) in sets {
        if interrupt.load(Ordering::Relaxed) {
            break;
        }
        // small runs side by side, a single large one on all threads; a card has room for one of any size
        let jobs = if arguments.device == Device::Cpu { threads.min(laid_out.runs) } else { 1 };
        let options = WorkOptions {
            threads: (threads / jobs).max(1),
            device: arguments.device,
            data_folder: data_folder.map(Path::to_path_buf),
            ..WorkOptions::new(&Ends, &interrupt)
        };
        let done = side_by_side(&folder, &options, jobs)?;
        if done.departure == Departure::Interrupted {
            say("interrupted; the same command goes on from here");
        }
    }
    Ok(())
}

/// What the runs would take, before anything starts.
fn plan(arguments: &Reproduce, chosen: &[Exhibit]) -> anyhow::Result<ExitCode> {
    let threads = values::threads(None, true);
    // two operations a multiply-add
    let rate = |precision| 0.5e9 * ProductRate::new(threads, precision).gigaflops();
    let rates = [Precision::F64, Precision::F32].map(rate);
    let (mut text, mut output, mut sum) = (String::new(), Vec::new(), 0.0);
    for (set, runs) in plans_of(arguments, chosen)? {
        let estimate = Estimate::of(&runs);
        let hours = estimate.hours(rates[usize::from(estimate.precision == Precision::F32)]);
        sum += hours;
        let used: Vec<&str> = chosen.iter().filter(|e| e.sets().contains(&set.name)).map(|e| e.id).collect();
        text += &format!(
            "{:<19} {:>4} runs  {:>9}  {:>8} a run  for {}\n",
            set.name,
            estimate.runs,
            duration(hours),
            size(estimate.bytes),
            used.join(", ")
        );
        output.push(json!({ "set": set.name, "runs": estimate.runs, "hours": hours, "bytes_a_run": estimate.bytes, "exhibits": used }));
    }
    let claims: Vec<&str> =
        chosen.iter().filter(|exhibit| exhibit.sets().is_empty()).map(|exhibit| exhibit.id).collect();
    text += &format!(
        "all of it           about {} on {threads} threads, guessed from multiply-adds and the measured rate of products\n",
        duration(sum)
    );
    if !claims.is_empty() {
        text += &format!("without runs of their own, seconds: {}\n", claims.join(", "));
    }
    match arguments.format {
        Format::Json => print(&(serde_json::to_string_pretty(&json!({ "sets": output, "hours": sum }))? + "\n"))?,
        Format::Text => print(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn duration(hours: f64) -> String {
    match hours {
        h if h < 1.0 / 60.0 => format!("{:.0} s", (3600.0 * h).max(1.0)),
        h if h < 1.0 => format!("{:.0} min", 60.0 * h),
        h if h < 48.0 => format!("{h:.1} h"),
        h => format!("{:.0} days", h / 24.0),
    }
}

fn size(bytes: f64) -> String {
    if bytes < 1e9 { format!("{:.0} MB", (bytes / 1e6).max(1.0)) } else { format!("{:.1} GB", bytes / 1e9) }
}

/// Writes the record, its page, its figures and as many final weights as are small.
fn write(folder: &Path, record: &ExhibitRecord, material: &Material) -> anyhow::Result<()> {
    let path = folder.join(format!("{}.json", record.id));
    write_atomically(&path, (serde_json::to_string_pretty(record)? + "\n").as_bytes())?;
    write_atomically(&folder.join(format!("{}.md", record.id)), record.page().as_bytes())?;
    for (sketch, name) in record.reading.figures.iter().zip(record.figure_names()) {
        if let Some(figure) = sketch_figure(sketch) {
            write_atomically(&folder.join(format!("{name}.svg")), figure.svg.as_bytes())?;
        }
    }
    Ok(keep_weights(folder, record, material)?)
}

/// The record of an exhibit that a folder has from earlier times.
fn known_record(folder: &Path, id: &str) -> Option<ExhibitRecord> {
    let text = std::fs::read_to_string(folder.join(format!("{id}.json"))).ok()?;
    serde_json::from_str(&text).ok()
}

/// All records of a folder: those just made, and those of earlier times.
fn known_records(folder: &Path, made: &[ExhibitRecord]) -> Vec<ExhibitRecord> {
    let others = exhibits().into_iter().filter(|exhibit| !made.iter().any(|record| record.id == exhibit.id));
    made.iter().cloned().chain(others.filter_map(|exhibit| known_record(folder, exhibit.id))).collect()
}

/// `limitpoint check` of a record; nothing if the file is none.
pub fn check(
    path: &Path,
    home: Option<&PathBuf>,
    data_folder: Option<&Path>,
) -> anyhow::Result<Option<(String, serde_json::Value, u8)>> {
    if !is_exhibit(path) {
        return Ok(None);
    }
    let checked = check_exhibit(path, home.map(PathBuf::as_path), data_folder)?;
    let mut text =
        format!("{}: loss and margins of {} runs recomputed from their weights\n", checked.record.id, checked.checked);
    if checked.absent > 0 {
        text +=
            &format!("  the weights of {} runs are not here; name the folder of runs with --runs\n", checked.absent);
    }
    text.extend(checked.disagreements.iter().map(|words| format!("  {words}\n")));
    if checked.disagreements.is_empty() && checked.checked > 0 {
        text += "  every number agrees\n";
    }
    let output = json!({
        "certificate": path, "exhibit": checked.record.id, "checked": checked.checked, "absent": checked.absent,
        "holds": checked.disagreements.is_empty(), "disagreements": checked.disagreements,
    });
    let code = if !checked.disagreements.is_empty() {
        outcome::INVALID
    } else if checked.checked == 0 {
        outcome::NO
    } else {
        0
    };
    Ok(Some((text, output, code)))
}
