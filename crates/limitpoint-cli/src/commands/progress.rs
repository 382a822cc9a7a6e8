//! How runs get on: one bar per run on a terminal, plain lines otherwise.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use limitpoint::experiments::{Progress, RunManifest, Status, Watcher};

use super::{harmless, say};

/// Says nothing.
pub struct Silence;
impl Watcher for Silence {}

/// Distance between plain lines of one run.
const PLAIN: Duration = Duration::from_secs(10);

/// One line per run.
pub struct Lines {
    labels: Vec<String>,
    width: usize,
    /// Drawn on a terminal.
    bars: Option<(MultiProgress, Vec<Mutex<Option<ProgressBar>>>)>,
    /// When a plain line was last written for each run.
    written: Vec<Mutex<Instant>>,
}

impl Lines {
    /// Lines for these runs.
    pub fn new(labels: &[String]) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bars = terminal.then(|| {
            let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10));
            (all, labels.iter().map(|_| Mutex::new(None)).collect())
        });
        Self {
            width: labels.iter().map(|label| label.chars().count()).max().unwrap_or(0),
            labels: labels.to_vec(),
            bars,
            written: labels.iter().map(|_| Mutex::new(Instant::now())).collect(),
        }
    }

    fn text(progress: &Progress) -> String {
        let margin = progress.margin.as_ref().map_or_else(String::new, |(name, value)| format!("  {name} {value:.3e}"));
        format!("step {:>9}  log10 L {:>10.2}{margin}", progress.step, progress.log10_loss)
    }

    fn with_bar(&self, run: usize, act: impl FnOnce(&ProgressBar)) -> bool {
        let Some((_, bars)) = &self.bars else { return false };
        if let Ok(bar) = bars[run].lock()
            && let Some(bar) = bar.as_ref()
        {
            act(bar);
        }
        true
    }
}

/// What a bar looks like; a template that cannot be read would only cost its looks.
fn style() -> ProgressStyle {
    ProgressStyle::with_template("{prefix} {bar:24} {msg}  {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("━╸ ")
}

impl Watcher for Lines {
    fn started(&self, run: usize) {
        let label = format!("{:width$}", self.labels[run], width = self.width);
        match &self.bars {
            Some((all, bars)) => {
                let bar = all.add(ProgressBar::new(1000).with_style(style()).with_prefix(label));
                if let Ok(mut place) = bars[run].lock() {
                    *place = Some(bar);
                }
            }
            None => say(&format!("{label}  started")),
        }
    }

    fn progress(&self, run: usize, progress: &Progress) {
        let text = Self::text(progress);
        let drawn = self.with_bar(run, |bar| {
            bar.set_message(text.clone());
            bar.set_position((1000.0 * progress.fraction.unwrap_or(0.0)) as u64);
        });
        if !drawn
            && let Ok(mut last) = self.written[run].lock()
            && last.elapsed() >= PLAIN
        {
            *last = Instant::now();
            say(&format!("{:width$}  {text}", self.labels[run], width = self.width));
        }
    }

    fn note(&self, run: usize, text: &str) {
        let line = harmless(&format!("{}: {text}", self.labels[run]));
        match &self.bars {
            Some((all, _)) => {
                let _ = all.println(line);
            }
            None => say(&line),
        }
    }

    fn ended(&self, run: usize, manifest: &RunManifest) {
        let mark = match (manifest.status, manifest.healthy) {
            (Status::Finished, true) => "done",
            (Status::Interrupted, _) => "paused",
            _ => "TROUBLE",
        };
        let label = format!("{:width$}", self.labels[run], width = self.width);
        let line = format!(
            "{label}  {mark}  {} steps, log10 L {:.2}, {:.1} s: {}",
            manifest.steps,
            manifest.log10_loss,
            manifest.timings.seconds,
            harmless(&manifest.stop)
        );
        match &self.bars {
            Some((all, bars)) => {
                if let Ok(mut place) = bars[run].lock()
                    && let Some(bar) = place.take()
                {
                    bar.finish_and_clear();
                }
                let _ = all.println(line);
            }
            None => say(&line),
        }
    }
}
