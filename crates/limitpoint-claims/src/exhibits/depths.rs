//! Students of three layers on the circle (C section J.2).

use limitpoint::report::Sketch;

use super::circle::{CUBES, HYPERBOLIC, NORMS, features, margins, orders, winners};
use super::material::Material;
use super::reading::{Reading, shares};
use super::{Exhibit, MadeOf};
use crate::ClaimError;

const OPEN: &str = "As for the two-layer students; the layer in between starts with the variance 1/100, a reading under which the printed \
                    rates train.";
const RATE: &str = "Print has the rate 0.01 for hyperbolic entropy and none for cubes: 0.1.";
const PRINTED: &[&str] = &["c-deep-printed"];
const LAMBDA: &[&str] = &["c-deep-lambda"];

pub(super) const EXHIBITS: [Exhibit; 8] = [
    Exhibit {
        id: "C.tab6",
        shows: "Margins of three-layer students by mirror map, with time rescaling",
        made_of: MadeOf::Runs { sets: PRINTED, read: table_6 },
        departures: &[OPEN],
    },
    Exhibit {
        id: "C.fig8",
        shows: "Weights of the first layer of three-layer students",
        made_of: MadeOf::Runs { sets: PRINTED, read: |m| layer(m, 1) },
        departures: &[OPEN],
    },
    Exhibit {
        id: "C.fig9",
        shows: "Weights of the second layer of three-layer students",
        made_of: MadeOf::Runs { sets: PRINTED, read: |m| layer(m, 2) },
        departures: &[OPEN],
    },
    Exhibit {
        id: "C.fig10",
        shows: "Weights of the third layer of three-layer students",
        made_of: MadeOf::Runs { sets: PRINTED, read: |m| layer(m, 3) },
        departures: &[OPEN],
    },
    Exhibit {
        id: "C.tab7",
        shows: "Hyperbolic entropy in three layers at three λ after 10,000 steps",
        made_of: MadeOf::Runs { sets: LAMBDA, read: table_7 },
        departures: &[OPEN],
    },
    Exhibit {
        id: "C.fig12",
        shows: "The input layer of three-layer students, hyperbolic entropy at three λ",
        made_of: MadeOf::Runs { sets: LAMBDA, read: |m| features(m, LAMBDA[0], &HYPERBOLIC) },
        departures: &[OPEN],
    },
    Exhibit {
        id: "C.tab8",
        shows: "Cubes in three layers at three λ after 10,000 steps",
        made_of: MadeOf::Runs { sets: LAMBDA, read: table_8 },
        departures: &[OPEN, RATE],
    },
    Exhibit {
        id: "C.fig13",
        shows: "The input layer of three-layer students, cubes at three λ",
        made_of: MadeOf::Runs { sets: LAMBDA, read: |m| features(m, LAMBDA[0], &CUBES) },
        departures: &[OPEN, RATE],
    },
];

const MAPS: [&str; 3] = ["hyp", "gradient", "cube"];

fn table_6(material: &Material) -> Result<Reading, ClaimError> {
    let mut reading = Reading::default();
    let printed = [
        ("hyp", "hyperbolic entropy", [[4.01e-8, 0.34e-8], [6.21e-5, 0.72e-5], [1.03e-4, 0.26e-4]]),
        ("gradient", "gradient descent", [[1.13e-9, 0.07e-9], [1.10e-4, 0.0], [1.73e-3, 0.07e-3]]),
        ("cube", "cubes", [[2.39e-10, 0.08e-10], [9.36e-5, 0.04e-5], [3.42e-3, 0.06e-3]]),
    ];
    margins(&mut reading, material, PRINTED[0], &NORMS, &printed);
    winners(&mut reading, material, PRINTED[0], &printed);
    Ok(reading)
}

fn table_7(material: &Material) -> Result<Reading, ClaimError> {
    let mut reading = Reading::default();
    let printed = [
        ("hyp-1", "λ = 1", [[1.67e-9, 0.24e-9], [6.43e-5, 0.51e-5]]),
        ("hyp-0_1", "λ = 0.1", [[3.62e-9, 0.30e-9], [4.76e-5, 0.60e-5]]),
        ("hyp-0_01", "λ = 0.01", [[4.87e-9, 0.23e-9], [4.44e-5, 0.76e-5]]),
    ];
    margins(&mut reading, material, LAMBDA[0], &NORMS[..2], &printed);
    orders(&mut reading, material, LAMBDA[0], &NORMS[..2], &printed);
    Ok(reading)
}

fn table_8(material: &Material) -> Result<Reading, ClaimError> {
    let mut reading = Reading::default();
    let printed = [
        ("cube-10", "λ = 10", [[8.76e-5, 0.09e-5], [1.75e-3, 0.04e-3]]),
        ("cube-1", "λ = 1", [[8.69e-5, 0.06e-5], [2.62e-3, 0.03e-3]]),
        ("cube-0_1", "λ = 0.1", [[7.47e-5, 0.04e-5], [3.44e-3, 0.03e-3]]),
    ];
    margins(&mut reading, material, LAMBDA[0], &NORMS[1..], &printed);
    orders(&mut reading, material, LAMBDA[0], &NORMS[1..], &printed);
    Ok(reading)
}

/// The histogram of |w|/max|w| in a layer of the three-layer students with seed 42, one curve for each map.
pub(super) fn histogram(material: &Material, number: usize, title: &str) -> Option<Sketch> {
    let name = format!("histogram-{number}");
    let mut sketch = Sketch::new(&name, title, "|w| over the largest", "share of weights").logarithmic(false, true);
    for map in MAPS {
        let run = material.finished(PRINTED[0], map).find(|run| run.seed == 42)?;
        let (_, counts) = run.histograms.last()?.blocks.get(number - 1)?;
        sketch = sketch.curve(map, shares(counts));
    }
    Some(sketch)
}

fn layer(material: &Material, number: usize) -> Result<Reading, ClaimError> {
    let mut reading = Reading::default();
    reading.figures.extend(histogram(material, number, &format!("Layer {number}, seed 42")));
    let named = MAPS.map(|map| (map, material.last(PRINTED[0], map, &format!("small_fraction.layer{number}.weight"))));
    for (map, values) in &named {
        reading.row(format!("{map}: share of weights below 1 % of the largest"), None, values);
    }
    reading.say_largest("The share of small weights", &named, "hyp");
    Ok(reading)
}
