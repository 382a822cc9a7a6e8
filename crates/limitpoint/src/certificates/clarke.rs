//! The rows of a tangent problem: gradients of the margins, and how they move with the slopes at kinks.
//!
//! **One hidden layer.** A unit enters q_k through its own weights only, so Clarke's subdifferential is a product over
//! the units on a kink, and one slope e ∈ [0, 1] a unit describes it:
//!
//! ```text
//! ∂q_k(θ) = { h_k + Σ_j e_j c_kj : 0 ≤ e_j ≤ 1 },   h_k at the left slopes,  c_kj the change from left to right
//! ```
//!
//! Weighted by p_k, with e_kj ≤ p_k, this is convex in (p, e) and exact. Each margin has slopes of its own, as the
//! KKT conditions of D Appendix F ask, also where the margins of several classes share a unit.
//!
//! **More hidden layers.** Values do not depend on slopes at kinks (σ(0) = 0 on both sides), back-signals do: h_k(s) is
//! affine in the slopes of any one layer and multi-affine in all of them. Hence, with q_k > 0 (so that no layer's input
//! vanishes) and the layers on kinks trained,
//!
//! ```text
//! ∂q_k(θ) = conv { h_k(s) : s ∈ {left, right}^{kinks of the example} }
//! ```
//!
//! "⊇": move the weights of every unit on a kink by ±ε_l along the layer's input, with ε growing fast enough from layer
//! to layer that each sign is decided by its own layer; the gradients there tend to h_k(s). "⊆": gradients at nearby
//! points of differentiability are such h_k(s). By multi-affinity every h_k(s) with s inside the cube lies in the hull.
//! So the tangent problem stays convex, with one row for every vertex of the cube; only their number grows. Here:
//!
//! - the layer with most kinks is *free*: its slopes are kink columns of every row, exact for that layer;
//! - the other layers start from their own slopes, and rows for other vertices are added while the solution v violates
//!   them (⟨h_k(s), v⟩ plus the free layer's minimum is below the value of the problem);
//! - every stage proves an upper bound of γ_tan, so of Clarke's τ ("layer l's kinks free" at the first one); if all
//!   vertices of all examples were tried, v proves the lower bound too and the value is exact ([`Coverage::Clarke`]).
//!   An example with more than [`ENUMERATED`] kinks outside the free layer is searched by single flips only
//!   ([`Coverage::Partial`]).
//!
//! **Images.** A max-pool that several pixels of a window tie may pass its signal to any convex combination of them,
//! which is multi-affine in one slope a pixel (see the engine), so that a tie counts as kinks of as many layers. Pixels of
//! an image share their kernel: where patches on kinks of one channel are linearly dependent, not every choice of sides
//! is that of a gradient nearby, and the set above is larger than ∂q_k.
//!
//! A frozen layer on a kink can make it larger too: τ is then that of the larger set, which holds all of ∂q_k.

use super::CertificateError;
use super::tangent::{Coverage, Slopes, TangentCertificate, TangentProblem, checked_margins};
use crate::data::Targets;
use crate::engine::{Forward, Kink, Tangents};
use crate::linalg::{Matrix, add_scaled, dot, norm2};
use crate::memory::{bytes, require};
use crate::models::MarginMap;
use crate::params::ParamLayout;
use crate::reference::{KinkRow, SparseRow, solve_margin};

/// Kinks outside the free layer of which all slopes are tried, 2 to this power.
const ENUMERATED: usize = 6;
/// Rounds of row generation.
const ROUNDS: usize = 40;

/// The rows of a tangent problem.
pub(super) struct Rows {
    pub rows: Matrix,
    pub kinks: Vec<KinkRow>,
    pub margin_of_row: Vec<usize>,
    pub coverage: Coverage,
    pub count: usize,
}

impl Rows {
    /// Rows at the model's own slopes, or at the left slopes of the kinks within the tolerance with their columns.
    pub fn new(
        model: &mut dyn Tangents,
        targets: &Targets,
        params: &[f64],
        slopes: Slopes,
    ) -> Result<Self, CertificateError> {
        checked_margins(model, targets, params)?;
        Self::of_selection(model, &MarginMap::new(targets), params, slopes)
    }

    /// The rows of the examples that the model is set to, whose margins `map` knows.
    pub fn of_selection(
        model: &mut dyn Tangents,
        map: &MarginMap,
        params: &[f64],
        slopes: Slopes,
    ) -> Result<Self, CertificateError> {
        require_rows(model, map, params)?;
        let found = find_kinks(model, params, slopes)?;
        let margin_of_row = (0..model.examples() * map.per_example()).collect();
        if found.is_empty() {
            model.weigh_kinks(&[]);
            let coverage = if slopes == Slopes::Fixed { Coverage::Fixed } else { Coverage::Clarke };
            let rows = margin_gradients(model, map, params);
            return Ok(Self { rows, kinks: Vec::new(), margin_of_row, coverage, count: 0 });
        }
        if is_deep(model.layout()) || found.iter().any(|kink| kink.layer != found[0].layer) {
            let table = KinkTable::new(&found, model.examples());
            let coverage = if table.other.iter().all(Vec::is_empty) { Coverage::Clarke } else { Coverage::Partial };
            let (rows, kinks) = table.rows(model, map, params, &|_| None);
            model.weigh_kinks(&[]);
            return Ok(Self { rows, kinks, margin_of_row, coverage, count: found.len() });
        }
        let left: Vec<(Kink, f64)> = found.iter().map(|kink| (*kink, 0.0)).collect();
        model.weigh_kinks(&left);
        let rows = margin_gradients(model, map, params);
        model.weigh_kinks(&[]);
        let (mut kinks, per) = (Vec::new(), map.per_example());
        for j in 0..per {
            let columns = model.kink_columns(params, &unit_cotangent(map, model.examples(), j), &found);
            let moving = found.iter().zip(columns).filter(|(_, column)| moves(column));
            kinks.extend(moving.map(|(kink, change)| KinkRow { row: kink.example * per + j, change }));
        }
        Ok(Self { rows, kinks, margin_of_row, coverage: Coverage::Clarke, count: found.len() })
    }
}

/// Refuses rows that do not fit into memory: those of all margins, and those of one output.
fn require_rows(model: &dyn Tangents, map: &MarginMap, params: &[f64]) -> Result<(), CertificateError> {
    let rows = model.examples().saturating_mul(map.per_example() + 1);
    let what = format!("a tangent problem of {} examples and {} parameters", model.examples(), params.len());
    Ok(require(what, bytes(&[rows, params.len()], 8), "judge fewer examples, or in l2 with fixed slopes")?)
}

/// The kinks that slopes may differ at.
pub(super) fn find_kinks(
    model: &mut dyn Tangents,
    params: &[f64],
    slopes: Slopes,
) -> Result<Vec<Kink>, CertificateError> {
    let Slopes::Clarke { tolerance } = slopes else { return Ok(Vec::new()) };
    if !(0.0..1.0).contains(&tolerance) {
        let (what, range) = ("the kink tolerance", "in [0, 1)");
        return Err(CertificateError::OutOfRange { what, value: tolerance, range });
    }
    let units = weights(model.layout());
    let row_sizes = units[..units.len().saturating_sub(1)]
        .iter()
        .flat_map(|block| params[block.range()].chunks_exact(block.cols).map(norm2));
    let largest = row_sizes.fold(0.0, f64::max);
    Ok(model.kinks_near(params, tolerance * largest))
}

fn weights(layout: &ParamLayout) -> Vec<&crate::params::Block> {
    layout.weights().collect()
}

/// Whether a network has more than one hidden layer.
fn is_deep(layout: &ParamLayout) -> bool {
    weights(layout).len() > 2
}

fn moves(column: &SparseRow) -> bool {
    column.iter().any(|(_, run)| run.iter().any(|x| *x != 0.0))
}

/// ∂(margin j of every example)/∂scores.
fn unit_cotangent(map: &MarginMap, examples: usize, j: usize) -> Vec<f64> {
    let mut weights = vec![0.0; examples * map.per_example()];
    weights.iter_mut().skip(j).step_by(map.per_example()).for_each(|w| *w = -1.0); // pull_back brings a minus
    let mut cotangent = vec![0.0; examples * map.outputs()];
    map.pull_back(&weights, None, &mut cotangent);
    cotangent
}

/// ∇q_k for every margin, with the slopes that the model is set to.
pub(super) fn margin_gradients(model: &mut dyn Tangents, map: &MarginMap, params: &[f64]) -> Matrix {
    let (examples, outputs, per) = (model.examples(), model.outputs(), map.per_example());
    let cotangents: Vec<Vec<f64>> = (0..per).map(|j| unit_cotangent(map, examples, j)).collect();
    let mut rows = Matrix::zeros(examples * per, params.len());
    for output in 0..outputs {
        let gradients = model.per_example_gradients(params, output);
        for (j, cotangent) in cotangents.iter().enumerate() {
            for n in 0..examples {
                let weight = cotangent[n * outputs + output];
                if weight != 0.0 {
                    add_scaled(rows.row_mut(n * per + j), weight, gradients.row(n));
                }
            }
        }
    }
    rows
}

/// The kinks of a deep network by example, the free layer apart.
struct KinkTable {
    free: Vec<Vec<Kink>>,
    other: Vec<Vec<Kink>>,
}

/// Slopes of an example's other kinks, true for right; nothing leaves the model's own.
type Pattern = Option<Vec<bool>>;

impl KinkTable {
    fn new(kinks: &[Kink], examples: usize) -> Self {
        let layers = kinks.iter().map(|kink| kink.layer).max().map_or(0, |layer| layer + 1);
        let count = |layer: usize| kinks.iter().filter(|kink| kink.layer == layer).count();
        // the highest of the layers with most kinks
        let chosen = (0..layers).max_by_key(|&layer| count(layer)).unwrap_or(0);
        let mut table = Self { free: vec![Vec::new(); examples], other: vec![Vec::new(); examples] };
        for kink in kinks {
            let side = if kink.layer == chosen { &mut table.free } else { &mut table.other };
            side[kink.example].push(*kink);
        }
        table
    }

    /// Slopes with the given patterns and the free kinks left, but the `flipped`-th of every example right.
    fn weigh(&self, pattern: &dyn Fn(usize) -> Pattern, flipped: Option<usize>) -> Vec<(Kink, f64)> {
        let mut weighed = Vec::new();
        for (n, (free, other)) in self.free.iter().zip(&self.other).enumerate() {
            let slope = |right: bool| f64::from(u8::from(right));
            weighed.extend(free.iter().enumerate().map(|(f, kink)| (*kink, slope(flipped == Some(f)))));
            if let Some(pattern) = pattern(n) {
                weighed.extend(other.iter().zip(pattern).map(|(kink, right)| (*kink, slope(right))));
            }
        }
        weighed
    }

    fn most_free(&self) -> usize {
        self.free.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// All rows for one choice of patterns, and the columns of the free layer.
    fn rows(
        &self,
        model: &mut dyn Tangents,
        map: &MarginMap,
        params: &[f64],
        pattern: &dyn Fn(usize) -> Pattern,
    ) -> (Matrix, Vec<KinkRow>) {
        let per = map.per_example();
        model.weigh_kinks(&self.weigh(pattern, None));
        let rows = margin_gradients(model, map, params);
        let mut kinks = Vec::new();
        for flipped in 0..self.most_free() {
            model.weigh_kinks(&self.weigh(pattern, Some(flipped)));
            let mut moved = margin_gradients(model, map, params);
            for row in (0..rows.rows).filter(|row| flipped < self.free[row / per].len()) {
                add_scaled(moved.row_mut(row), -1.0, rows.row(row));
                let change = runs(moved.row(row));
                if !change.is_empty() {
                    kinks.push(KinkRow { row, change });
                }
            }
        }
        (rows, kinks)
    }

    /// For one pattern an example: min over the free slopes of ⟨h(s), v⟩, for every margin.
    fn values(
        &self,
        model: &mut dyn Tangents,
        map: &MarginMap,
        params: &[f64],
        pattern: &dyn Fn(usize) -> Pattern,
        v: &[f64],
    ) -> Vec<f64> {
        let per = map.per_example();
        let mut products = |flipped: Option<usize>| {
            model.weigh_kinks(&self.weigh(pattern, flipped));
            let rows = margin_gradients(model, map, params);
            (0..rows.rows).map(|row| dot(rows.row(row), v)).collect::<Vec<f64>>()
        };
        let base = products(None);
        let mut values = base.clone();
        for flipped in 0..self.most_free() {
            let moved = products(Some(flipped));
            for row in (0..base.len()).filter(|row| flipped < self.free[row / per].len()) {
                values[row] += (moved[row] - base[row]).min(0.0);
            }
        }
        values
    }

    /// The patterns to try for an example: all, or single flips of the one it has.
    fn candidates(&self, example: usize, current: &[bool]) -> Vec<Vec<bool>> {
        let size = self.other[example].len();
        if size <= ENUMERATED {
            return (0..1usize << size).map(|bits| (0..size).map(|k| bits >> k & 1 == 1).collect()).collect();
        }
        let flip = |k: usize| current.iter().enumerate().map(|(i, right)| *right != (i == k)).collect();
        [vec![false; size], vec![true; size]].into_iter().chain((0..size).map(flip)).collect()
    }

    fn is_enumerated(&self) -> bool {
        self.other.iter().all(|kinks| kinks.len() <= ENUMERATED)
    }
}

/// Nonzero runs of a vector.
fn runs(v: &[f64]) -> SparseRow {
    let mut out: SparseRow = Vec::new();
    for (j, &x) in v.iter().enumerate().filter(|(_, x)| **x != 0.0) {
        match out.last_mut() {
            Some((first, run)) if *first + run.len() == j => run.push(x),
            _ => out.push((j, vec![x])),
        }
    }
    out
}

/// Adds rows for violated vertices until there are none; the problem with all of them, and what it proves.
pub(super) fn generate(
    model: &mut dyn Tangents,
    targets: &Targets,
    mut tangent: TangentProblem,
    slopes: Slopes,
) -> Result<(TangentProblem, TangentCertificate), CertificateError> {
    let (map, params) = (MarginMap::new(targets), tangent.params.clone());
    let table = KinkTable::new(&find_kinks(model, &params, slopes)?, model.examples());
    let per = map.per_example();
    let mut current: Vec<Vec<bool>> =
        (0..tangent.margins.len()).map(|k| vec![false; table.other[k / per].len()]).collect();
    let (mut iterations, mut round) = (0, 0);
    loop {
        round += 1;
        let mut solution = solve_margin(&tangent.problem)?;
        iterations += solution.iterations;
        solution.iterations = iterations;
        let v = &solution.direction;
        let mut worst = tangent.problem.margins(v);
        worst.truncate(tangent.margins.len());
        let mut pattern_of: Vec<Pattern> = vec![None; worst.len()];
        let lists: Vec<Vec<Vec<bool>>> = (0..worst.len()).map(|k| table.candidates(k / per, &current[k])).collect();
        for j in 0..per {
            let longest = (j..lists.len()).step_by(per).map(|k| lists[k].len()).max().unwrap_or(0);
            for at in 0..longest {
                let pattern = |n: usize| lists[n * per + j].get(at).cloned();
                let values = table.values(model, &map, &params, &pattern, v);
                for k in (j..worst.len()).step_by(per).filter(|k| at < lists[*k].len()) {
                    if values[k] < worst[k] {
                        (worst[k], pattern_of[k]) = (values[k], Some(lists[k][at].clone()));
                    }
                }
            }
        }
        model.weigh_kinks(&[]);
        let (upper, lowest) = (solution.bracket.upper, worst.iter().copied().fold(f64::INFINITY, f64::min));
        let floor = solution.bracket.lower - 1e-11 * upper.abs();
        let violated: Vec<usize> = (0..worst.len()).filter(|&k| worst[k] < floor && pattern_of[k].is_some()).collect();
        if violated.is_empty() || round == ROUNDS {
            if table.is_enumerated() {
                tangent.coverage = Coverage::Clarke;
                solution.bracket.lower = solution.bracket.lower.min(lowest);
            }
            let certificate = tangent.conclude(solution);
            return Ok((tangent, certificate));
        }
        for j in 0..per {
            let wanted: Vec<usize> = violated.iter().copied().filter(|k| k % per == j).collect();
            if !wanted.is_empty() {
                let (rows, kinks) = table.rows(model, &map, &params, &|n| pattern_of[n * per + j].clone());
                append(&mut tangent, &wanted, &rows, &kinks);
            }
        }
        violated.iter().for_each(|&k| current[k] = pattern_of[k].clone().unwrap_or_default());
        model.weigh_kinks(&[]);
    }
}

/// Appends some of `rows` with their kinks to a problem.
fn append(tangent: &mut TangentProblem, wanted: &[usize], rows: &Matrix, kinks: &[KinkRow]) {
    for &k in wanted {
        let at = tangent.problem.rows.rows;
        tangent.problem.rows.data.extend_from_slice(rows.row(k));
        tangent.problem.rows.rows += 1;
        tangent.margin_of_row.push(k);
        let own = kinks.iter().filter(|kink| kink.row == k);
        tangent.problem.kinks.extend(own.map(|kink| KinkRow { row: at, change: kink.change.clone() }));
    }
}
