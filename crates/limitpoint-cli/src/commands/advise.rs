//! `limitpoint advise`: settings before a run.

use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use limitpoint::advice::{
    LayerAdvice, LimitMargin, MirrorAdvice, MirrorFamily, Purpose, RecipeAdvice, TrainedLayers, advise_mirror,
    margin_bound,
};
use limitpoint::data::Inputs;
use limitpoint::experiments::{Recipe, RecipeSource, plan};
use limitpoint::models::Initialiser;
use serde_json::json;

use super::print;
use crate::args::Format;
use crate::values;

/// Arguments of `advise`.
#[derive(Debug, Args)]
pub struct Advise {
    /// About what.
    #[command(subcommand)]
    pub topic: Topic,
}

/// What there is advice about.
#[derive(Debug, Subcommand)]
pub enum Topic {
    /// Step size and λ of mirror descent, per layer, and the time until its margin is reached.
    Mirror(Mirror),
}

/// Arguments of `advise mirror`.
#[derive(Debug, Args)]
pub struct Mirror {
    /// A built-in experiment or a .toml file whose network, data and start are meant; else --inputs says.
    #[arg(value_name = "EXPERIMENT")]
    pub experiment: Option<String>,
    /// Settings of the experiment to change, such as model.widths=[64].
    #[arg(value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// The potentials: hyperbolic, smoothed:P with P > 2, or euclidean.
    #[arg(long, value_name = "FAMILY", default_value = "hyperbolic")]
    pub potential: String,
    /// Number of inputs, without an experiment.
    #[arg(long, value_name = "COUNT", conflicts_with = "experiment", value_parser = values::at_least_one)]
    pub inputs: Option<usize>,
    /// Widths of the hidden ReLU layers, from the input on.
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', conflicts_with = "experiment")]
    pub widths: Vec<usize>,
    /// Number of outputs.
    #[arg(long, value_name = "COUNT", default_value_t = 1, conflicts_with = "experiment", value_parser = values::at_least_one)]
    pub outputs: usize,
    /// Deviation of the weights at the start, one for each layer or one for all; He's, √(2/fan-in), otherwise.
    #[arg(long, value_name = "SIGMAS", value_delimiter = ',')]
    pub deviation: Vec<f64>,
    /// The relative gap between gauge and horizon that counts as reached.
    #[arg(long, default_value_t = 0.1)]
    pub gap: f64,
    /// The margin min qᵢ/φ(θ)^L of the limit; an upper bound otherwise.
    #[arg(long, allow_hyphen_values = true)]
    pub margin: Option<f64>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Runs the verb.
pub fn run(arguments: &Advise) -> anyhow::Result<ExitCode> {
    let Topic::Mirror(mirror) = &arguments.topic;
    advise(mirror)
}

/// A network, the largest dual norm of its inputs by family, and its outputs.
struct Subject {
    network: TrainedLayers,
    words: String,
    input_norm: Box<dyn Fn(MirrorFamily) -> f64>,
    outputs: usize,
    /// In front of the output.
    factor: f64,
}

fn advise(arguments: &Mirror) -> anyhow::Result<ExitCode> {
    let family: MirrorFamily = arguments.potential.parse()?;
    let mut subject = match (&arguments.experiment, arguments.inputs) {
        (Some(name), _) => of_experiment(name, &arguments.overrides)?,
        (None, Some(inputs)) => of_shape(inputs, &arguments.widths, arguments.outputs)?,
        (None, None) => bail!(
            "no network is given; name an experiment such as digits or my.toml, or say --inputs 784 --widths 100 --outputs 10"
        ),
    };
    if !arguments.deviation.is_empty() {
        subject.network = subject.network.with_deviations(&arguments.deviation)?;
    }
    let bound = margin_bound(family, &subject.network, (subject.input_norm)(family), subject.outputs);
    let margin = match (arguments.margin, bound) {
        (Some(margin), _) => LimitMargin::Known(margin),
        (None, Some(bound)) => LimitMargin::AtMost(subject.factor * bound),
        (None, None) => LimitMargin::Unknown,
    };
    let advice = advise_mirror(family, &subject.network, arguments.gap, margin)?;
    match arguments.format {
        Format::Json => {
            let text = json!({ "network": subject.network, "advice": advice });
            print(&(serde_json::to_string_pretty(&text)? + "\n"))?;
        }
        Format::Text => print(&describe(&subject, &advice))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn of_shape(inputs: usize, widths: &[usize], outputs: usize) -> anyhow::Result<Subject> {
    let network = TrainedLayers::relu(inputs, widths, outputs, &Initialiser::HeNormal { scale: 1.0 })?;
    let shape: Vec<String> = [&[inputs], widths, &[outputs]].concat().iter().map(usize::to_string).collect();
    // entries between −1 and 1
    let input_norm = move |family| dual_norms(family, [vec![1.0; inputs].as_slice()].into_iter());
    let words = format!("{} ReLU network, inputs between −1 and 1", shape.join("-"));
    Ok(Subject { network, words, input_norm: Box::new(input_norm), outputs, factor: 1.0 })
}

fn of_experiment(name: &str, overrides: &[String]) -> anyhow::Result<Subject> {
    let plan = plan(&RecipeSource::find(name)?, overrides)?;
    let recipe: &Recipe = match plan.points.as_slice() {
        [point] => &point.recipe,
        points => bail!("the overrides make {} networks; give one value for each setting", points.len()),
    };
    // the network is the same for all optimisers and starts
    let task = plan.tasks().into_iter().next().with_context(|| format!("'{name}' has no runs"))?;
    let data = task.data().with_context(|| format!("the data of '{name}'"))?.train;
    let objective = task.setup()?.objective(&data)?;
    let network = TrainedLayers::of_layout(objective.layout(), objective.homogeneity(), &recipe.initialiser)
        .with_context(|| format!("no advice for '{name}'"))?;
    let outputs = if objective.per_example() > 1 { 2 } else { 1 };
    let norm = move |family| match &data.inputs {
        Inputs::Dense(inputs) => dual_norms(family, (0..data.len()).map(|n| inputs.row(n))),
        Inputs::Sparse(_) => f64::NAN,
    };
    let words = format!("the network of '{name}'");
    Ok(Subject { network, words, input_norm: Box::new(norm), outputs, factor: recipe.model.output_factor() })
}

/// The largest dual norm of some inputs; not a number where the family has no norm.
fn dual_norms<'a>(family: MirrorFamily, mut inputs: impl Iterator<Item = &'a [f64]>) -> f64 {
    let Some(first) = inputs.next() else { return f64::NAN };
    match family.norm().build_vector(first.len()) {
        Ok(mut norm) => inputs.fold(norm.dual(first), |most, x| most.max(norm.dual(x))),
        Err(_) => f64::NAN,
    }
}

/// The table and what it means.
fn describe(subject: &Subject, advice: &MirrorAdvice) -> String {
    let mut text = format!(
        "{}: {} weights, degree {}, potential {}\n\n",
        subject.words, advice.parameters, advice.degree, advice.family
    );
    let heading = ["recipe", "layer", "fan-in", "σ", "λ", "η", "η of table 10", "its first update"];
    let mut rows: Vec<[String; 8]> = vec![heading.map(str::to_owned)];
    for recipe in &advice.recipes {
        for (place, layer) in recipe.layers.iter().enumerate() {
            let name = if place == 0 { title(recipe) } else { String::new() };
            rows.push(row(name, layer));
        }
    }
    text += &aligned(&rows);
    text += "\nη makes the first update as long as gradient descent's with step size 1: η E[1/R″(θ₀)] = 1; multiply it by a \
             step size\nthat suits gradient descent.\n\n";
    let margin = match advice.margin {
        LimitMargin::Known(margin) => format!("ln t at γ = {margin:.3e}"),
        LimitMargin::AtMost(margin) => format!("ln t at most, γ ≤ {margin:.3e}"),
        LimitMargin::Unknown => "ln t".to_owned(),
    };
    let heading = ["recipe", "offset a", "ln t by Lemma 4.10", "gauge needed", margin.as_str(), ""];
    let mut rows: Vec<[String; 6]> = vec![heading.map(str::to_owned)];
    for recipe in &advice.recipes {
        let reach = &recipe.reach;
        rows.push([
            title(recipe),
            number(reach.offset),
            number(reach.lemma_log_time),
            number(reach.gauge),
            reach.log_time.map_or_else(|| "unknown".to_owned(), number),
            match recipe.reachable {
                Some(true) => String::new(),
                Some(false) => "OUT OF REACH".to_owned(),
                None => "perhaps out of reach".to_owned(),
            },
        ]);
    }
    text += &aligned(&rows);
    text += &format!(
        "\nThe gauge is within {} % of the horizon once it exceeds the gauge needed; a^L of Lemma 4.10 only says when it \
         outgrows\nthe offset.{}\n",
        100.0 * advice.gap,
        if matches!(advice.margin, LimitMargin::Known(_)) { "" } else { " --margin settles the time until then." }
    );
    text += "\nWith the potential and the step factor of every layer, to be given to `limitpoint run` with a schedule that suits \
             gradient\ndescent:\n";
    for recipe in &advice.recipes {
        text += &format!("\n{}\n  'optimiser={}'\n", title(recipe), recipe.optimiser);
    }
    for recipe in &advice.recipes {
        if let Some(warning) = &recipe.warning {
            text += &format!("\nwarning: with {}, {warning}.", title(recipe));
        }
    }
    text.trim_end().to_owned() + "\n"
}

fn title(recipe: &RecipeAdvice) -> String {
    let purpose = match recipe.purpose {
        Purpose::MirrorMuP => "mirror-μP",
        Purpose::MarginReachable => "margin-reachable",
    };
    match &recipe.eta_formula {
        Some(eta) => format!("{purpose} ({eta}, {})", recipe.lambda_formula),
        None => format!("{purpose} λ = {}", recipe.lambda_formula),
    }
}

fn row(name: String, layer: &LayerAdvice) -> [String; 8] {
    let maybe = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
    [
        name,
        layer.layer.clone(),
        layer.fan_in.to_string(),
        number(layer.deviation),
        maybe(layer.lambda),
        number(layer.eta),
        maybe(layer.table_eta),
        maybe(layer.table_update),
    ]
}

fn number(value: f64) -> String {
    if value == 0.0 {
        "0".to_owned()
    } else if (1e-3..1e5).contains(&value.abs()) {
        format!("{value:.4}")
    } else {
        format!("{value:.3e}")
    }
}

/// Columns under their headings: words to the left, numbers to the right.
fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |c: usize| rows.iter().map(|row| row[c].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = format!("{:<1$}", row[0], widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            line += &format!("  {cell:>width$}");
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}
