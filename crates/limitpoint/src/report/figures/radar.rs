//! Fingerprints of optimisers as a radar: one axis per geometry, the share of the largest margin along it.

use std::f64::consts::TAU;

use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::Figure;
use super::canvas::{Area, Failure, GREY, LEGEND_LINE, PALE, Pen, WIDTH, document, points, text, width};
use super::drawing::Drawing;
use crate::fingerprint::Fingerprint;

/// Radius of the circle of the largest margins, in points.
const RADIUS: f64 = 105.0;
/// Height of the part with the axes, in points.
const HEIGHT: u32 = 262;
/// Shares with a ring of their own.
const RINGS: [f64; 4] = [0.25, 0.5, 0.75, 1.0];
/// Dash and gap of the late polygon, in tenths of a point.
const LATE: (u32, u32) = (40, 24);

/// One polygon: its name in the legend, the colour's place, whether it is dashed, shares by axis.
struct Outline {
    label: String,
    colour: usize,
    late: bool,
    shares: Vec<f64>,
}

/// Draws fingerprints with the same candidates into one radar: the shares of the first phase with an answer solid,
/// those of the end dashed, a single outline where both phases are the same. Nothing without fingerprints or with less
/// than three candidates.
pub fn radar_figure(fingerprints: &[Fingerprint]) -> Option<Figure> {
    let geometries = &fingerprints.first()?.geometries;
    if geometries.len() < 3 || fingerprints.iter().any(|other| other.geometries != *geometries) {
        return None;
    }
    let labels: Vec<&str> = geometries.iter().map(|geometry| geometry.label.as_str()).collect();
    // drawing into a string cannot fail; were it to, no figure is better than half of one
    Some(Figure::new("radar".to_owned(), draw(&labels, &outlines(fingerprints)).ok()?))
}

fn outlines(fingerprints: &[Fingerprint]) -> Vec<Outline> {
    let mut outlines = Vec::new();
    for (colour, found) in fingerprints.iter().enumerate() {
        let Some(late) = found.late() else { continue };
        let mut add = |words: &str, late: bool, shares: &[f64]| {
            // a margin that is negative in a norm has nothing to show
            let shares = shares.iter().map(|share| if *share > 0.0 { share.min(1.0) } else { 0.0 }).collect();
            outlines.push(Outline { label: format!("{}{words}", found.optimiser), colour, late, shares });
        };
        match found.spoken().as_slice() {
            [early, late] => {
                add(", early", false, &early.shares);
                add(", late", true, &late.shares);
            }
            _ => add("", false, &late.shares),
        }
    }
    outlines
}

/// The legend in lines that fit the width: left end in points and outline.
fn legend(outlines: &[Outline]) -> Vec<Vec<(f64, &Outline)>> {
    let mut lines: Vec<Vec<(f64, &Outline)>> = Vec::new();
    let mut at = f64::INFINITY;
    for outline in outlines {
        let advance = 26.0 + width(&outline.label) + 12.0;
        if at + advance > f64::from(WIDTH) {
            lines.push(Vec::new());
            at = 10.0;
        }
        if let Some(line) = lines.last_mut() {
            line.push((at, outline));
        }
        at += advance;
    }
    lines
}

fn draw(labels: &[&str], outlines: &[Outline]) -> Result<Drawing, Failure> {
    let legend = legend(outlines);
    let head = LEGEND_LINE * legend.len() as u32 + 6;
    document((WIDTH, HEIGHT + head), |root| {
        for (number, line) in legend.iter().enumerate() {
            let y = points(f64::from(LEGEND_LINE) * (number as f64 + 0.5) + 2.0);
            for (at, outline) in line {
                stroke(root, vec![(points(*at), y), (points(at + 21.0), y)], outline)?;
                let anchor = text(Pos::new(HPos::Left, VPos::Center));
                root.draw(&Text::new(outline.label.clone(), (points(at + 26.0), y), anchor))?;
            }
        }
        let centre = (f64::from(WIDTH) / 2.0, f64::from(head) + f64::from(HEIGHT) / 2.0);
        let place = |axis: usize, share: f64| {
            let angle = TAU * axis as f64 / labels.len() as f64;
            (points(centre.0 + RADIUS * share * angle.sin()), points(centre.1 - RADIUS * share * angle.cos()))
        };
        web(root, labels, &place)?;
        for outline in outlines {
            let mut corners: Vec<(i32, i32)> =
                outline.shares.iter().enumerate().map(|(axis, share)| place(axis, *share)).collect();
            root.draw(&Polygon::new(corners.clone(), Pen::of_group(outline.colour).colour.mix(0.07)))?;
            corners.extend(corners.first().copied());
            stroke(root, corners, outline)?;
        }
        Ok(())
    })
}

/// Axes, rings and what stands at them.
fn web(root: &Area, labels: &[&str], place: &dyn Fn(usize, f64) -> (i32, i32)) -> Result<(), Failure> {
    let pale = PALE.stroke_width(points(0.5).unsigned_abs());
    let firm = GREY.stroke_width(points(0.7).unsigned_abs());
    for ring in RINGS {
        let corners: Vec<(i32, i32)> = (0..=labels.len()).map(|axis| place(axis % labels.len(), ring)).collect();
        root.draw(&PathElement::new(corners, if ring < 1.0 { pale } else { firm }))?;
    }
    for (axis, label) in labels.iter().enumerate() {
        root.draw(&PathElement::new([place(axis, 0.0), place(axis, 1.0)], pale))?;
        let turn = (TAU * axis as f64 / labels.len() as f64).sin();
        let side = match turn {
            turn if turn > 0.1 => HPos::Left,
            turn if turn < -0.1 => HPos::Right,
            _ => HPos::Center,
        };
        let words = text(Pos::new(side, VPos::Center));
        root.draw(&Text::new((*label).to_owned(), place(axis, 1.08), words))?;
    }
    for ring in RINGS {
        // beside the first axis, where the ring meets it
        let (x, y) = place(0, ring);
        let words = text(Pos::new(HPos::Left, VPos::Top)).color(&GREY);
        let small = TextStyle { font: words.font.resize(words.font.get_size() * 0.75), ..words };
        root.draw(&Text::new(format!("{ring}"), (x + points(2.0), y + points(1.0)), small))?;
    }
    Ok(())
}

fn stroke(root: &Area, corners: Vec<(i32, i32)>, outline: &Outline) -> Result<(), Failure> {
    let style = Pen::of_group(outline.colour).style();
    if outline.late {
        root.draw(&DashedPathElement::new(corners, LATE.0, LATE.1, style))?;
    } else {
        root.draw(&PathElement::new(corners, style))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::{Candidate, NetworkEvidence, Pace, Phase};

    fn phase(geometry: Option<&str>, shares: &[f64]) -> Phase {
        Phase {
            geometry: geometry.map(str::to_owned),
            nearest: "l2".to_owned(),
            log10_loss: [-1.0, -5.0],
            clearest: -5.0,
            confidence: 1.0,
            shares: shares.to_vec(),
        }
    }

    fn found(phases: Vec<Phase>) -> Fingerprint {
        Fingerprint {
            optimiser: "adam".to_owned(),
            geometries: Candidate::usual(),
            pace: Pace { stages: Vec::new() },
            runs: Vec::new(),
            phases,
            course: Vec::new(),
            network: NetworkEvidence::default(),
            convolution: NetworkEvidence::default(),
            answer: String::new(),
        }
    }

    #[test]
    fn phases_have_outlines_of_their_own_and_every_axis_its_name() {
        let (early, late) = ([0.2, 0.4, 0.6, 0.8, 1.0, 0.6, 0.4], [0.6, 0.9, 1.0, 0.9, 0.5, 0.8, f64::NAN]);
        let two = found(vec![phase(Some("linf"), &early), phase(None, &early), phase(Some("l2"), &late)]);
        let drawn: Vec<(String, bool)> =
            outlines(std::slice::from_ref(&two)).into_iter().map(|outline| (outline.label, outline.late)).collect();
        assert_eq!(drawn, [("adam, early".to_owned(), false), ("adam, late".to_owned(), true)]);
        let svg = radar_figure(&[two]).unwrap().svg;
        for label in ["ℓ1", "ℓ4/3", "ℓ∞", "spectral", "adam, early", "adam, late"] {
            assert!(svg.contains(label), "{label}");
        }
        assert!(svg.contains("340pt") && !svg.contains("NaN"));
        let one = found(vec![phase(None, &early), phase(Some("linf"), &early)]);
        assert_eq!(outlines(&[one]).iter().map(|outline| outline.label.as_str()).collect::<Vec<_>>(), ["adam"]);
    }

    #[test]
    fn an_axis_ends_at_the_largest_margin_and_nothing_lies_beyond() {
        let outline = &outlines(&[found(vec![phase(None, &[1.2, -0.3, 0.5, 0.0, 1.0, 1.0, 1.0])])])[0];
        assert_eq!(outline.shares, [1.0, 0.0, 0.5, 0.0, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn what_cannot_share_a_radar_is_not_drawn() {
        assert_eq!(radar_figure(&[]), None);
        let (one, mut other) = (found(vec![phase(None, &[1.0; 7])]), found(vec![phase(None, &[1.0; 7])]));
        assert!(radar_figure(&[one.clone(), other.clone()]).is_some());
        other.geometries.truncate(4);
        assert_eq!(radar_figure(&[one, other]), None);
    }
}
