//! Pieces of the path: which columns are active, and until when.

use std::collections::BTreeSet;

use super::super::refine::Factors;
use crate::linalg::{dot, norm2, sign};
use crate::numeric::compensated_dot;

/// 1 − s_jβ_j up to which a tied column gains nothing by joining: it depends on the active ones.
const GAIN: f64 = 1e-10;

/// X by columns, y, and what rounding leaves of x_jᵀr.
pub(super) struct Design {
    pub columns: Vec<Vec<f64>>,
    pub y: Vec<f64>,
    pub noise: Vec<f64>,
}

/// A piece of the path.
pub(super) struct Piece {
    pub active: Vec<usize>,
    p: Vec<f64>,
    q: Vec<f64>,
    alpha: Vec<f64>,
    beta: Vec<f64>,
    independent: bool,
}

impl Design {
    pub fn new(columns: Vec<Vec<f64>>, y: Vec<f64>) -> Self {
        let size = 4.0 * y.len() as f64 * f64::EPSILON * norm2(&y);
        let noise = columns.iter().map(|column| size * norm2(column)).collect();
        Self { columns, y, noise }
    }

    /// x_jᵀ(y − Xw).
    pub fn correlations(&self, w: &[f64]) -> Vec<f64> {
        let row = |i: usize| self.columns.iter().map(|column| column[i]).collect::<Vec<f64>>();
        let rest: Vec<f64> = self.y.iter().enumerate().map(|(i, y)| y - compensated_dot(&row(i), w)).collect();
        self.columns.iter().map(|column| compensated_dot(column, &rest)).collect()
    }

    pub fn violation(&self, lambda: f64, w: &[f64]) -> f64 {
        let one = |(c, w): (&f64, &f64)| if *w == 0.0 { c.abs() - lambda } else { (c - lambda * sign(*w)).abs() };
        self.correlations(w).iter().zip(w).map(one).fold(0.0, f64::max)
    }

    /// The piece of a set of active columns.
    fn piece(&self, active: Vec<usize>, signs: &[f64]) -> Piece {
        let rows: Vec<Vec<f64>> = active.iter().map(|&j| self.columns[j].clone()).collect();
        let factors = Factors::new(self.y.len(), &rows);
        let (mut p, mut q) = (vec![0.0; rows.len()], vec![0.0; rows.len()]);
        let rest = |p: &[f64], goal: &[f64]| -> Vec<f64> {
            let row = |i: usize| rows.iter().map(|column| column[i]).collect::<Vec<f64>>();
            goal.iter().enumerate().map(|(i, goal)| goal - compensated_dot(&row(i), p)).collect()
        };
        let along = factors.least_norm(&active.iter().map(|&j| signs[j]).collect::<Vec<f64>>());
        for _ in 0..2 {
            factors.add_least_squares(&rest(&p, &self.y), &mut p);
            factors.add_least_squares(&rest(&q, &along), &mut q);
        }
        let mut across = rest(&p, &self.y);
        factors.reject(&mut across);
        let product = |(column, noise): (&Vec<f64>, &f64)| Some(dot(column, &across)).filter(|x| x.abs() > *noise);
        let alpha = self.columns.iter().zip(&self.noise).map(|both| product(both).unwrap_or(0.0)).collect();
        let beta = self.columns.iter().map(|column| dot(column, &along)).collect();
        Piece { independent: factors.kept.len() == active.len(), active, p, q, alpha, beta }
    }

    /// The piece after a bend: columns of the support are free, tied columns may join with their own sign.
    pub fn turn(&self, support: &[usize], tied: &[usize], signs: &[f64]) -> Piece {
        let mut piece = self.piece(support.to_vec(), signs);
        let mut refused = BTreeSet::new();
        for _ in 0..10 * tied.len() {
            let gain = |j: usize| 1.0 - signs[j] * piece.beta[j];
            let open = tied.iter().filter(|j| !piece.active.contains(j) && !refused.contains(*j));
            let Some(&joins) = open.max_by(|a, b| gain(**a).total_cmp(&gain(**b)).then(b.cmp(a))) else { break };
            if gain(joins) <= GAIN {
                break;
            }
            // s_j q_j of the tied columns on the way from the old solution to the new
            let mut at: Vec<(usize, f64)> =
                piece.active.iter().zip(&piece.q).map(|(j, q)| (*j, signs[*j] * q)).collect();
            at.push((joins, 0.0));
            // every round but the last takes a column out
            for round in 0.. {
                let next = self.piece(at.iter().map(|(j, _)| *j).collect(), signs);
                let goal: Vec<f64> = next.active.iter().zip(&next.q).map(|(j, q)| signs[*j] * q).collect();
                // in exact arithmetic a column with a gain is independent and joins with its sign
                if !next.independent || (round == 0 && goal[goal.len() - 1] <= 0.0) {
                    refused.insert(joins);
                    break;
                }
                let blocked = |k: &usize| tied.contains(&at[*k].0) && goal[*k] <= 0.0;
                let ratio = |k: usize| at[k].1 / (at[k].1 - goal[k]);
                let Some(first) = (0..at.len()).filter(blocked).min_by(|a, b| ratio(*a).total_cmp(&ratio(*b))) else {
                    piece = next;
                    refused.clear();
                    break;
                };
                let step = ratio(first);
                at.iter_mut().zip(&goal).for_each(|((_, from), to)| *from += step * (to - *from));
                at.remove(first);
            }
        }
        piece
    }
}

impl Piece {
    /// Where active column number k reaches 0, if it shrinks as λ falls.
    pub fn leaving(&self, k: usize, signs: &[f64]) -> Option<f64> {
        let s = signs[self.active[k]];
        (s * self.q[k] < 0.0).then(|| self.p[k] / self.q[k]).filter(|at| *at > 0.0)
    }

    /// The weight of active column number k at λ; 0 where only rounding is left or the sign is not its own.
    pub fn weight(&self, k: usize, lambda: f64, signs: &[f64]) -> f64 {
        let w = self.p[k] - lambda * self.q[k];
        let rounding = 1e-14 * (self.p[k].abs() + lambda * self.q[k].abs());
        if signs[self.active[k]] * w > rounding { w } else { 0.0 }
    }

    /// The next bend at or below λ: where a column leaves or joins.
    pub fn end(&self, lambda: f64, signs: &[f64], tied: &[usize]) -> f64 {
        let leaving = (0..self.active.len()).filter_map(|k| self.leaving(k, signs));
        let resting = (0..self.alpha.len()).filter(|j| !self.active.contains(j));
        let joining = resting.flat_map(|j| [-1.0, 1.0].map(|s| (j, s))).filter_map(|(j, s)| {
            let gain = 1.0 - s * self.beta[j];
            let waits = s == signs[j] && tied.contains(&j);
            (!waits && gain > 0.0).then(|| s * self.alpha[j] / gain)
        });
        leaving.chain(joining).fold(0.0, f64::max).min(lambda)
    }
}
