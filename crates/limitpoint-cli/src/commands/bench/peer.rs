//! Another engine in a Python process, asked for one measurement at a time.

use std::fmt::Display;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, anyhow, bail};
use limitpoint::engine::Precision;
use limitpoint::experiments::Workload;
use limitpoint::losses::LossSpec;
use limitpoint::schedules::ScheduleSpec;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A running Python that answers requests, lines of text, with lines of JSON.
pub struct Peer {
    pub engine: &'static str,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Where its stderr goes.
    complaints: PathBuf,
}

/// One measurement of a peer.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Answer {
    pub steps_per_second: f64,
    pub log_loss: f64,
}

impl Peer {
    /// Starts a script with an engine, if that Python has the library for it.
    pub fn start(
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
            .with_context(|| cannot_start(python))?;
        if !probe.success() {
            return Ok(None);
        }
        Self::launch(python, engine, text, &[engine, &threads.to_string()], folder).map(Some)
    }

    /// Starts a script with these arguments and the folder; messages call it `engine`.
    pub fn launch(
        python: &Path,
        engine: &'static str,
        text: &str,
        arguments: &[&str],
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let script = folder.join("peer.py");
        std::fs::write(&script, text)?;
        let complaints = folder.join(format!("{engine}.txt"));
        let mut child = Command::new(python)
            .arg(&script)
            .args(arguments)
            .arg(folder)
            // where there is an accelerator, JAX would leave the processor that is compared
            .env("JAX_PLATFORMS", "cpu")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::options().create(true).append(true).open(&complaints)?)
            .spawn()
            .with_context(|| cannot_start(python))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("the pipes to '{}' did not open", python.display());
        };
        Ok(Self { engine, child, input, output: BufReader::new(output), complaints })
    }

    /// Sends a line.
    pub fn send(&mut self, request: impl Display) -> anyhow::Result<()> {
        let sent = writeln!(self.input, "{request}").and_then(|()| self.input.flush());
        sent.map_err(|_| self.trouble(""))
    }

    /// Waits for a line.
    pub fn receive(&mut self) -> anyhow::Result<Value> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        serde_json::from_str(&line).map_err(|_| self.trouble(&line))
    }

    /// What came instead of an answer: a line that is no JSON or, if it is empty, the end; and the last complaints.
    fn trouble(&mut self, line: &str) -> anyhow::Error {
        const LINES: usize = 10;
        let what = if line.is_empty() {
            // its pipes are closed: the status is decided, unless it lives on without them
            let _ = self.child.kill();
            self.child.wait().map_or_else(|error| error.to_string(), |status| format!("ended, {status}"))
        } else {
            format!("answered '{}'", line.trim())
        };
        let complaints = std::fs::read(&self.complaints).unwrap_or_default();
        let complaints = String::from_utf8_lossy(&complaints);
        let mut last: Vec<&str> = complaints.lines().rev().take(LINES).collect();
        last.reverse();
        let last = if last.is_empty() { "no complaints".to_owned() } else { last.join("\n") };
        anyhow!("{} {what}: {last}", self.engine)
    }

    /// Measures what is called `name` for `seconds`.
    pub fn measure(&mut self, name: &str, seconds: f64) -> anyhow::Result<Answer> {
        self.ask(name, seconds)?;
        self.answer()
    }

    /// Sends a request, so that several peers can work at the same time.
    pub fn ask(&mut self, name: &str, seconds: f64) -> anyhow::Result<()> {
        self.send(format_args!("{name} {seconds}"))
    }

    /// Waits for the answer to a request; one that reports an error is an error.
    pub fn answer<A: DeserializeOwned>(&mut self) -> anyhow::Result<A> {
        let answer = self.receive()?;
        match answer["error"].as_str() {
            Some(error) => bail!("{} failed: {error}", self.engine),
            None => Ok(serde_json::from_value(answer)?),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn cannot_start(python: &Path) -> String {
    format!("cannot start '{}'; give --python a Python interpreter", python.display())
}

/// Writes a workload where peers read it.
pub fn write(workload: &Workload, precision: Precision, folder: &Path) -> anyhow::Result<()> {
    let spec = &workload.spec;
    // steps of size c/L on L are steps of size c on ln L
    let (on_log_loss, rate) = match spec.schedule {
        ScheduleSpec::LinearBound { c, .. } => (true, c),
        ScheduleSpec::Constant { rate } => (false, rate),
        _ => bail!("peers know no schedule {:?}", spec.schedule),
    };
    let loss = match spec.loss {
        LossSpec::Exponential => "exponential",
        LossSpec::Logistic => "logistic",
        LossSpec::CrossEntropy => "cross-entropy",
        _ => bail!("peers know no loss {:?}", spec.loss),
    };
    if on_log_loss != (loss == "exponential") {
        bail!("peers make steps c/L on the exponential loss and constant ones on the others");
    }
    let description = serde_json::json!({
        "examples": spec.examples, "features": spec.features, "widths": spec.widths, "outputs": spec.outputs,
        "precision": precision, "steps": spec.chunk(), "loss": loss, "sign": loss == "logistic", "rate": rate,
    });
    std::fs::write(folder.join("workload.json"), description.to_string())?;
    for (part, values) in
        [("inputs", &workload.inputs.data), ("labels", &workload.labels), ("params", &workload.params)]
    {
        write_numbers(folder, &format!("workload.{part}"), values)?;
    }
    Ok(())
}

/// Writes numbers as the scripts read them.
pub fn write_numbers(folder: &Path, name: &str, values: &[f64]) -> anyhow::Result<()> {
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    Ok(std::fs::write(folder.join(format!("{name}.f64")), bytes)?)
}
