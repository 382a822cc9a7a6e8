//! Pairs of digits: Adam between sign and gradient descent, Shampoo and the spectral margin (A sections 4.2 and 4.3).

use limitpoint::report::Sketch;

use super::material::Material;
use super::reading::{Reading, curves};
use super::{Exhibit, MadeOf};
use crate::ClaimError;

const OPEN: &str = "Print has neither the scale of the start, nor the values of ε beside 10^-8, nor the number of epochs. Taken: 0.03 times \
                    He's scale, 10^-6 and 10^-4, 10,000 epochs. Sign descent goes on below a loss of 10^-7, where the paper stops it, to 10^-300.";
const SUMMED: &str =
    "adam-plain has no memory (both decays 0, ε = 10^-8). Losses here are summed over the hundred images.";

pub(super) const EXHIBITS: [Exhibit; 3] = [
    Exhibit {
        id: "A.fig2",
        shows: "Accuracy, γ1 and γ2 of gradient descent, sign descent and Adam on digits 3 and 6",
        made_of: MadeOf::Runs { sets: &["a-adam-36"], read: |m| adam(m, "a-adam-36") },
        departures: &[OPEN, SUMMED],
    },
    Exhibit {
        id: "A.fig3",
        shows: "Loss, spectral margin and γ1 of gradient descent, Adam and Shampoo with a frozen second layer",
        made_of: MadeOf::Runs { sets: &["a-shampoo"], read: shampoo },
        departures: &[
            "Print does not say which digits, how many images and how many epochs. Taken: 3 and 6, 100, 1000.",
            "Print writes powers of −1/4 and cites an implementation with powers of −1/2: both were run.",
            "Spectral descent and Muon are ours, with steps that are resolved. All stop after 1000 steps or at a summed loss of 10^-10 and end at \
             very different losses: margins are those of the ends, not at one loss.",
        ],
    },
    Exhibit {
        id: "A.fig6",
        shows: "Accuracy, γ1 and γ2 of gradient descent, sign descent and Adam on digits 2 and 7",
        made_of: MadeOf::Runs { sets: &["a-adam-27"], read: |m| adam(m, "a-adam-27") },
        departures: &[OPEN, SUMMED],
    },
];

const METHODS: [&str; 6] = ["gradient", "sign", "adam-1e-8", "adam-1e-6", "adam-1e-4", "adam-plain"];

fn adam(material: &Material, set: &str) -> Result<Reading, ClaimError> {
    let mut reading = Reading::default();
    let panels = [("accuracy", "accuracy", "accuracy"), ("gamma1", "γ1", "margin.linf"), ("gamma2", "γ2", "margin.l2")];
    for (name, words, column) in panels {
        let sketch =
            Sketch::new(name, &format!("{words}, mean of seeds"), "epoch", words).logarithmic(true, name != "accuracy");
        reading.figure(curves(sketch, material, set, &METHODS, ["step", column], |_| true));
    }
    for (words, column, best) in [("γ1", "margin.linf", "sign"), ("γ2", "margin.l2", "gradient")] {
        let last = |name| material.last(set, name, column);
        for name in METHODS {
            reading.row(format!("{name}: final {words}"), None, &last(name));
        }
        let three = ["gradient", "sign", "adam-1e-8"].map(|name| (name, last(name)));
        reading.say_largest(&format!("Of gradient descent, sign descent and Adam the final {words}"), &three, best);
    }
    for name in &METHODS[1..] {
        let mut peaks = Vec::new();
        for run in material.finished(set, name) {
            let (gamma, loss) = (run.metrics.column("margin.linf"), run.metrics.column("log10_loss"));
            let peak = (0..gamma.len()).filter(|k| gamma[*k] > 0.0).max_by(|a, b| gamma[*a].total_cmp(&gamma[*b]));
            if let Some(peak) = peak.filter(|peak| peak + 1 < gamma.len()) {
                peaks.push(loss[peak]);
            }
        }
        let runs = material.finished(set, name).count();
        let shown: Vec<String> = peaks.iter().map(|loss| format!("10^{loss:.1}")).collect();
        let at = if shown.is_empty() { String::new() } else { format!(", at summed losses of {}", shown.join(", ")) };
        reading
            .say(format!("γ1 of {name} has its largest value before the end in {} of {runs} runs{at}.", peaks.len()));
    }
    Ok(reading)
}

fn shampoo(material: &Material) -> Result<Reading, ClaimError> {
    let mut reading = Reading::default();
    let methods = ["gradient", "adam", "shampoo", "shampoo-half"];
    let others = ["spectral", "muon"];
    let panels =
        [("loss", "log₁₀ L", "log10_loss"), ("spectral", "γσ", "margin.spectral"), ("gamma1", "γ1", "margin.linf")];
    for (name, words, column) in panels {
        let sketch =
            Sketch::new(name, &format!("{words}, mean of seeds"), "epoch", words).logarithmic(true, name != "loss");
        reading.figure(curves(sketch, material, "a-shampoo", &methods, ["step", column], |_| true));
    }
    for name in methods.iter().chain(&others) {
        reading.row(
            format!("{name}: log₁₀ of the summed loss at the end"),
            None,
            &material.last("a-shampoo", name, "log10_loss"),
        );
        reading.row(format!("{name}: final γσ"), None, &material.last("a-shampoo", name, "margin.spectral"));
    }
    for shampoo in ["shampoo", "shampoo-half"] {
        let three =
            ["gradient", "adam", shampoo].map(|name| (name, material.last("a-shampoo", name, "margin.spectral")));
        reading.say_largest(
            &format!("Of gradient descent, Adam and {shampoo} the final spectral margin"),
            &three,
            shampoo,
        );
    }
    Ok(reading)
}
