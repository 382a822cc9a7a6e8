//! `limitpoint doctor`: what this machine offers, and whether something would keep a run from working.
//!
//! Exit codes: 0 all is well, 1 something would keep a run from working.

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::data::{Presence, presence};
use crate::args::Format;
use crate::outcome::NO;

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Examination {
    version: &'static str,
    system: String,
    /// Instruction sets of the processor that matter here.
    cpu_features: Vec<&'static str>,
    /// 64-bit numbers per instruction in the kernels.
    simd_lanes: usize,
    cores: Option<usize>,
    memory_bytes: Option<u64>,
    /// The first NVIDIA card, or what keeps it from being used.
    card: Result<String, String>,
    data_folder: Option<std::path::PathBuf>,
    data: Vec<Presence>,
    current_folder: Option<std::path::PathBuf>,
    current_folder_writable: bool,
    terminal: bool,
    colour: bool,
    /// What would keep a run from working, and what to do about it.
    problems: Vec<String>,
}

/// Runs the verb.
pub fn run(doctor: &Doctor) -> anyhow::Result<ExitCode> {
    let found = examine();
    let text = match doctor.format {
        Format::Json => serde_json::to_string_pretty(&found)? + "\n",
        Format::Text => describe(&found),
    };
    super::print(&text)?;
    Ok(if found.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(NO) })
}

fn examine() -> Examination {
    let data_folder = limitpoint::data::data_folder();
    let current_folder = std::env::current_dir();
    let mut problems = Vec::new();
    let writable = match &current_folder {
        Ok(folder) => try_writing(folder).map_err(|error| {
            problems.push(format!(
                "{} cannot be written ({error}), and runs write their results there; change to another folder",
                folder.display()
            ));
        }),
        Err(error) => {
            problems.push(format!("the current folder is unknown ({error}); change to another folder"));
            Err(())
        }
    };
    let cores = std::thread::available_parallelism();
    if let Err(error) = &cores {
        problems.push(format!("the number of cores is unknown ({error}); give --threads where a command takes it"));
    }
    let terminal = std::io::stdout().is_terminal();
    Examination {
        version: env!("CARGO_PKG_VERSION"),
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        cpu_features: cpu_features(),
        simd_lanes: limitpoint::linalg::lanes::<f64>(),
        cores: cores.ok().map(usize::from),
        memory_bytes: memory(),
        card: card(),
        data: data_folder.as_deref().map(presence).unwrap_or_default(),
        data_folder,
        current_folder: current_folder.ok(),
        current_folder_writable: writable.is_ok(),
        terminal,
        colour: terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        problems,
    }
}

/// Instruction sets that the kernels can use and this processor has.
fn cpu_features() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    let features = [
        ("sse4.2", std::is_x86_feature_detected!("sse4.2")),
        ("avx", std::is_x86_feature_detected!("avx")),
        ("avx2", std::is_x86_feature_detected!("avx2")),
        ("fma", std::is_x86_feature_detected!("fma")),
        ("avx512f", std::is_x86_feature_detected!("avx512f")),
    ];
    #[cfg(target_arch = "aarch64")]
    let features = [("neon", std::arch::is_aarch64_feature_detected!("neon"))];
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let features: [(&'static str, bool); 0] = [];
    features.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect()
}

/// The card in words. None is no problem: everything runs without one.
#[cfg(feature = "cuda")]
fn card() -> Result<String, String> {
    let found = limitpoint_cuda::report().map_err(|error| error.to_string())?;
    let (major, minor) = found.capability;
    let [memory, free] = [found.memory, found.free].map(|bytes| bytes as f64 / (1_u64 << 30) as f64);
    Ok(format!("{}, generation {major}.{minor}, {memory:.1} GiB, {free:.1} GiB free", found.name))
}

/// Nothing looks for one.
#[cfg(not(feature = "cuda"))]
fn card() -> Result<String, String> {
    Err("this program was built without the feature cuda".into())
}

/// Bytes of memory, where the system says it in `/proc/meminfo`.
fn memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// Writes a file and removes it.
fn try_writing(folder: &Path) -> std::io::Result<()> {
    let path = folder.join(format!(".limitpoint-doctor-{}", std::process::id()));
    std::fs::OpenOptions::new().write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)
}

fn describe(found: &Examination) -> String {
    let yes = |yes: bool| if yes { "yes" } else { "no" };
    let show =
        |folder: &Option<std::path::PathBuf>| folder.as_ref().map_or("unknown".into(), |f| f.display().to_string());
    let simd = match found.simd_lanes {
        1 => "none".to_owned(),
        lanes => format!("{lanes} numbers of 64 bits per instruction"),
    };
    let memory =
        found.memory_bytes.map_or("unknown".into(), |bytes| format!("{:.1} GiB", bytes as f64 / (1_u64 << 30) as f64));
    let mut lines = vec![
        ("version", found.version.to_owned()),
        ("system", found.system.clone()),
        ("processor", found.cpu_features.join(" ")),
        ("vectors", simd),
        ("cores", found.cores.map_or("unknown".into(), |cores| cores.to_string())),
        ("memory", memory),
        ("card", found.card.clone().unwrap_or_else(|why| format!("none: {why}"))),
        ("data folder", show(&found.data_folder)),
    ];
    for set in &found.data {
        let remedy = format!("absent; `limitpoint data fetch {}` brings it", set.key);
        lines.push(("", format!("{}: {}", set.key, if set.present { "present" } else { &remedy })));
    }
    lines.push(("this folder", show(&found.current_folder)));
    lines.push(("writable", yes(found.current_folder_writable).to_owned()));
    lines.push(("terminal", format!("{}, colour: {}", yes(found.terminal), yes(found.colour))));
    let mut text: String =
        lines.iter().map(|(name, value)| format!("{name:12} {value}").trim_end().to_owned() + "\n").collect();
    match found.problems.is_empty() {
        true => text.push_str("all is well\n"),
        false => found.problems.iter().for_each(|problem| text.push_str(&format!("problem: {problem}\n"))),
    }
    text
}
