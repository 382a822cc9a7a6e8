//! Another engine in a Python process, asked for one measurement at a time.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, bail};
use limitpoint::experiments::Workload;
use limitpoint::losses::LossSpec;
use serde::Deserialize;

/// The engines a Python may offer.
pub const ENGINES: [&str; 3] = ["torch-eager", "torch-compile", "jax"];

/// A running engine.
pub struct Peer {
    pub engine: &'static str,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// One measurement of a peer.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    pub steps_per_second: f64,
    pub log_loss: f64,
}

#[derive(Deserialize)]
struct RawAnswer {
    steps_per_second: Option<f64>,
    log_loss: Option<f64>,
    error: Option<String>,
}

impl Peer {
    /// Starts an engine on the workloads, if that Python has the library for it.
    pub fn start(python: &Path, engine: &'static str, threads: usize, folder: &Path) -> anyhow::Result<Option<Self>> {
        Self::start_script(python, engine, include_str!("peer.py"), threads, folder)
    }

    /// Starts a script with an engine, if that Python has the library for it.
    pub fn start_script(
        python: &Path,
        engine: &'static str,
        text: &str,
        threads: usize,
        folder: &Path,
    ) -> anyhow::Result<Option<Self>> {
        let module = engine.split('-').next().unwrap_or(engine);
        let probe = Command::new(python)
            .args(["-c", &format!("import numpy, {module}")])
            .stderr(Stdio::null())
            .status()
            .with_context(|| format!("cannot start '{}'; give --python a Python interpreter", python.display()))?;
        if !probe.success() {
            return Ok(None);
        }
        let script = folder.join("peer.py");
        std::fs::write(&script, text)?;
        let mut child = Command::new(python)
            .arg(&script)
            .args([engine, &threads.to_string()])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("the pipes to '{}' did not open", python.display());
        };
        Ok(Some(Self { engine, child, input, output: BufReader::new(output) }))
    }

    /// Measures one workload for `seconds`.
    pub fn measure(&mut self, name: &str, seconds: f64) -> anyhow::Result<Answer> {
        self.ask(name, seconds)?;
        self.answer()
    }

    /// Sends a request, so that several peers can work at the same time.
    pub fn ask(&mut self, name: &str, seconds: f64) -> anyhow::Result<()> {
        writeln!(self.input, "{name} {seconds}")?;
        Ok(self.input.flush()?)
    }

    /// Waits for the answer to a request.
    pub fn answer(&mut self) -> anyhow::Result<Answer> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let raw: RawAnswer =
            serde_json::from_str(&line).with_context(|| format!("{} answered '{}'", self.engine, line.trim()))?;
        match (raw.steps_per_second, raw.log_loss, raw.error) {
            (Some(steps_per_second), Some(log_loss), None) => Ok(Answer { steps_per_second, log_loss }),
            (_, _, error) => bail!("{} failed: {}", self.engine, error.unwrap_or_default()),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes a workload where peers read it.
pub fn write(workload: &Workload, rate: f64, folder: &Path) -> anyhow::Result<()> {
    let spec = &workload.spec;
    let loss = if spec.loss == LossSpec::Exponential { "exponential" } else { "logistic" };
    let optimiser = if loss == "exponential" { "gradient" } else { "sign" };
    let description = serde_json::json!({
        "examples": spec.examples, "features": spec.features, "widths": spec.widths,
        "loss": loss, "optimiser": optimiser, "rate": rate,
    });
    std::fs::write(folder.join(format!("{}.json", spec.name)), description.to_string())?;
    for (part, values) in
        [("inputs", &workload.inputs.data), ("labels", &workload.labels), ("params", &workload.params)]
    {
        write_numbers(folder, &format!("{}.{part}", spec.name), values)?;
    }
    Ok(())
}

/// Writes numbers as the scripts read them.
pub fn write_numbers(folder: &Path, name: &str, values: &[f64]) -> anyhow::Result<()> {
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    Ok(std::fs::write(folder.join(format!("{name}.f64")), bytes)?)
}
