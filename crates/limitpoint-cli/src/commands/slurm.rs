//! An array of workers under Slurm: the script, and its submission.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// What to ask of Slurm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slurm {
    /// Workers, each a task of one array.
    pub workers: usize,
    /// Options of sbatch and their values.
    pub options: Vec<(String, String)>,
}

/// Seconds before the end of a job in which workers write their checkpoints.
const WARNING: u64 = 60;

impl Slurm {
    /// The script of the array.
    ///
    /// `exec` makes the worker the process that Slurm signals; `USR1` comes a minute before the time is up, `TERM` when the
    /// job is cancelled, requeued or preempted. A worker then checkpoints and leaves; submitted again, others go on.
    pub fn script(&self, sweep: &Path, data: Option<&Path>) -> anyhow::Result<String> {
        let program = std::env::current_exe().context("cannot tell where this program is")?;
        let sweep = whole(sweep)?;
        let name = sweep.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let given = |option: &str| self.options.iter().any(|(key, _)| key == option);
        let mut lines = vec!["#!/bin/sh".to_owned()];
        let mut option = |key: &str, value: &str| lines.push(format!("#SBATCH --{key}={value}"));
        let log = format!("{}/slurm/%A_%a.txt", sweep.display());
        let defaults =
            [("job-name", one_word(&name)), ("array", format!("1-{}", self.workers)), ("output", quoted(&log))];
        for (key, value) in defaults.iter().filter(|(key, _)| !given(key)) {
            option(key, value);
        }
        for (key, value) in &self.options {
            option(key, value);
        }
        if !given("signal") {
            option("signal", &format!("B:USR1@{WARNING}"));
        }
        if !given("open-mode") {
            option("open-mode", "append");
        }
        if !given("requeue") && !given("no-requeue") {
            lines.push("#SBATCH --requeue".to_owned());
        }
        let mut words = vec![quoted(&program.to_string_lossy()), "worker".into(), quoted(&sweep.to_string_lossy())];
        if let Some(folder) = data {
            words.extend(["--data-dir".into(), quoted(&whole(folder)?.to_string_lossy())]);
        }
        words.push("--threads \"${SLURM_CPUS_PER_TASK:-1}\"".into());
        lines.push(format!("exec {}", words.join(" ")));
        Ok(lines.join("\n") + "\n")
    }
}

/// Hands a script to sbatch and gives the number of the job.
pub fn submit(script: &str, sweep: &Path) -> anyhow::Result<String> {
    let folder = sweep.join("slurm");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut child = Command::new("sbatch")
        .arg("--parsable")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start sbatch; is this a machine of the cluster? The runs are laid out: `limitpoint worker` runs them anywhere")?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(script.as_bytes()).context("sbatch does not take the script")?;
    }
    let output = child.wait_with_output().context("sbatch does not end")?;
    if !output.status.success() {
        bail!("sbatch refuses the job: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    // JOB or JOB;CLUSTER
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(text.split(';').next().unwrap_or_default().to_owned())
}

/// A path that means the same on every machine.
fn whole(path: &Path) -> anyhow::Result<PathBuf> {
    path.canonicalize()
        .or_else(|_| std::path::absolute(path))
        .with_context(|| format!("cannot find {}", path.display()))
}

/// A word of a shell: in single quotes where it has more than letters.
fn quoted(text: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "/._-+=%:@".contains(letter);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// A name without what sbatch would read as another option.
fn one_word(text: &str) -> String {
    text.chars().map(|letter| if letter.is_alphanumeric() || "._-".contains(letter) { letter } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_has_what_was_asked_for_and_what_a_worker_needs() {
        let slurm: Slurm = "workers=10,time=2:00:00,partition=short,gres=gpu:1,shard:2".parse().unwrap();
        let script = slurm.script(Path::new("/runs/it's mine"), Some(Path::new("/data"))).unwrap();
        for line in [
            "#SBATCH --job-name=it-s-mine",
            "#SBATCH --array=1-10",
            "#SBATCH --time=2:00:00",
            "#SBATCH --partition=short",
            "#SBATCH --gres=gpu:1,shard:2",
            "#SBATCH --signal=B:USR1@60",
            "#SBATCH --requeue",
            "#SBATCH --output='/runs/it'\\''s mine/slurm/%A_%a.txt'",
        ] {
            assert!(script.lines().any(|found| found == line), "{line} in\n{script}");
        }
        let last = script.lines().last().unwrap();
        assert!(last.starts_with("exec ") && last.contains(" worker '/runs/it'\\''s mine' --data-dir /data"), "{last}");
        let own: Slurm = "signal=TERM@300,array=1-4%2".parse().unwrap();
        let script = own.script(Path::new("/runs/x"), None).unwrap();
        assert!(
            script.contains("--signal=TERM@300\n") && script.contains("--array=1-4%2\n") && !script.contains("USR1")
        );
    }

    #[test]
    fn what_is_no_option_is_refused() {
        for text in ["workers=0", "workers=many", "time", "=x", "time=", "a b=1", "time=1\n#SBATCH", "Time=1"] {
            assert!(text.parse::<Slurm>().is_err(), "{text:?}");
        }
        assert_eq!("".parse::<Slurm>().unwrap(), Slurm { workers: 1, options: Vec::new() });
    }
}
