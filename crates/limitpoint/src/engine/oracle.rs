//! Any model, by two functions that somebody else wrote.
//!
//! The library needs two things of a model to train it in any geometry, watch it and ask the judge about it: the scores
//! at some parameters, and cotangents of the scores pulled back to the parameters. Whoever can differentiate a model
//! can give these, in whatever language or on whatever machine; all updates are made on the host.

use super::{Bound, Evaluator, Forward, Tangents};
use crate::linalg::Matrix;
use crate::models::Homogeneity;
use crate::params::{At, ParamLayout};

/// A parametrised function of some examples, as its author differentiates it.
///
/// `rows` are the examples to look at, in order. `scores` has `rows.len() · outputs` places, example by example.
pub trait Model: Send {
    /// Φ_c(xₙ; θ) for the examples `rows`.
    fn scores(&mut self, params: &[f64], rows: &[usize], scores: &mut [f64]);

    /// Σₙ꜀ cotangent[n, c] ∇_θ Φ_c(xₙ; θ) over the examples `rows`; all of `gradient` is to be written.
    fn pull_back(&mut self, params: &[f64], rows: &[usize], cotangent: &[f64], gradient: &mut [f64]);
}

/// What cannot be told from the functions themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// Names, roles and shapes of the parameters.
    pub layout: ParamLayout,
    /// Scores of an example.
    pub outputs: usize,
    /// Examples there are.
    pub examples: usize,
    /// How scores grow with the trained parameters, where the author knows it. A wrong claim makes margins and
    /// certificates meaningless: [`Oracle::homogeneity_error`] measures it.
    pub homogeneity: Option<Homogeneity>,
}

/// The evaluator around somebody's [`Model`].
///
/// Gradients of frozen blocks are set to zero. Per-example gradients are pull-backs of one cotangent each.
///
/// ```
/// use limitpoint::engine::{Forward, oracle::{Description, Model, Oracle}};
/// use limitpoint::models::{DegreeGroup, Homogeneity};
/// use limitpoint::params::ParamLayout;
///
/// /// Φ(x) = (θx)³.
/// struct Cube(Vec<f64>);
/// impl Model for Cube {
///     fn scores(&mut self, params: &[f64], rows: &[usize], scores: &mut [f64]) {
///         rows.iter().zip(scores).for_each(|(n, score)| *score = (params[0] * self.0[*n]).powi(3));
///     }
///     fn pull_back(&mut self, params: &[f64], rows: &[usize], cotangent: &[f64], gradient: &mut [f64]) {
///         let slope = |n: usize| 3.0 * params[0] * params[0] * self.0[n].powi(3);
///         gradient[0] = rows.iter().zip(cotangent).map(|(n, c)| c * slope(*n)).sum();
///     }
/// }
///
/// let cubic = Homogeneity::of_groups(vec![DegreeGroup { blocks: vec![0], degree: 3.0 }]);
/// let layout = ParamLayout::new([("w", 1, 1)])?;
/// let description = Description { layout, outputs: 1, examples: 2, homogeneity: Some(cubic) };
/// let mut oracle = Oracle::new(description, Box::new(Cube(vec![1.0, 2.0])));
/// assert_eq!(oracle.scores(&[2.0]), [8.0, 64.0]);
/// assert!(oracle.homogeneity_error(&[0.7]) < 1e-14);
/// # Ok::<(), limitpoint::params::ParamsError>(())
/// ```
pub struct Oracle {
    bound: Bound,
    model: Box<dyn Model>,
    rows: Vec<usize>,
    all: usize,
}

impl Oracle {
    /// Takes a model over.
    pub fn new(description: Description, model: Box<dyn Model>) -> Self {
        let Description { layout, outputs, examples: all, homogeneity } = description;
        let scores = vec![0.0; all * outputs];
        let layers = homogeneity.as_ref().map_or(Vec::new(), |known| known.groups.clone());
        let bound =
            Bound { layout, homogeneity, layers, outputs, examples: all, scores, failure: None, knows_metrics: false };
        Self { bound, model, rows: (0..all).collect(), all }
    }

    /// The largest |Φ(cθ) − c^L Φ(θ)| over the examples for c = 1.5, relative to the largest score, in total and for
    /// every group that the author declares; 0 if he declares nothing.
    pub fn homogeneity_error(&mut self, params: &[f64]) -> f64 {
        let Some(homogeneity) = self.bound.homogeneity.clone() else { return 0.0 };
        let base = self.scores(params).to_vec();
        let all = homogeneity.groups.iter().flat_map(|group| group.blocks.clone()).collect();
        let groups = homogeneity.groups.into_iter().map(|group| (group.blocks, group.degree));
        let mut worst = 0.0f64;
        for (blocks, degree) in std::iter::once((all, homogeneity.degree)).chain(groups) {
            let (mut scaled, factor) = (params.to_vec(), 1.5f64.powf(degree));
            for block in blocks {
                scaled[self.bound.layout.blocks()[block].range()].iter_mut().for_each(|w| *w *= 1.5);
            }
            let found = self.scores(&scaled);
            let largest = base.iter().fold(0.0f64, |most, score| most.max((factor * score).abs()));
            let error = found.iter().zip(&base).fold(0.0f64, |most, (a, b)| most.max((a - factor * b).abs()));
            worst = worst.max(if largest > 0.0 { error / largest } else { error });
        }
        worst
    }
}

impl Evaluator for Oracle {
    fn bound(&self) -> &Bound {
        &self.bound
    }

    fn select(&mut self, rows: Option<&[usize]>) {
        self.rows.clear();
        match rows {
            Some(rows) => self.rows.extend_from_slice(rows),
            None => self.rows.extend(0..self.all),
        }
        self.bound.resize(self.rows.len());
    }

    fn score(&mut self, at: At<'_>) {
        self.model.scores(at.entries(), &self.rows, &mut self.bound.scores);
    }

    fn pull_back(&mut self, at: At<'_>, cotangent: &[f64], gradient: &mut [f64]) {
        self.model.pull_back(at.entries(), &self.rows, cotangent, gradient);
        for block in self.bound.layout.blocks().iter().filter(|block| block.frozen) {
            gradient[block.range()].fill(0.0);
        }
    }

    fn tangents(&mut self) -> Option<&mut dyn Tangents> {
        Some(self)
    }
}

impl Tangents for Oracle {
    fn knows_kinks(&self) -> bool {
        false
    }

    fn per_example_gradients(&mut self, params: &[f64], output: usize) -> Matrix {
        let (count, outputs) = (self.rows.len(), self.bound.outputs);
        let mut out = Matrix::zeros(count, params.len());
        let mut cotangent = vec![0.0; count * outputs];
        for n in 0..count {
            cotangent[n * outputs + output] = 1.0;
            self.score(params.into());
            self.pull_back(params.into(), &cotangent, out.row_mut(n));
            cotangent[n * outputs + output] = 0.0;
        }
        out
    }
}
