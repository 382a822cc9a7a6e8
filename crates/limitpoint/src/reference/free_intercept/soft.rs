//! Soft margins with squared slacks, by Newton's method: they tell which examples carry the hard margin.
//!
//! ```text
//! min_{w, b}  ½λ‖w‖² + ½ Σ max(0, 1 − y(⟨x, w⟩ + b))²
//! ```
//!
//! is piecewise quadratic. On the examples that fall short of 1 its minimiser is that of a ridge regression, and the step
//! towards it, with an exact line search, ends after finitely many (Mangasarian 2002; Keerthi and DeCoste 2005). The
//! regression is solved among examples or among inputs, whichever are fewer. As λ falls, the examples that fall short
//! become the support of the hard margin.

use super::{Examples, combine};
use crate::linalg::{Cholesky, add_scaled, dot, matmul_nt, matmul_tn};

/// Most Newton steps for one λ.
const STEPS: usize = 60;
/// Rows whose products are taken at a time.
const BLOCK: usize = 48;
/// Sizes of examples between which products neither overflow nor vanish.
const SIZES: std::ops::Range<f64> = 1e-100..1e100;

/// The present point, and products of examples that were needed before.
pub(super) struct Soft<'a> {
    pub examples: Examples<'a>,
    /// The mean of all examples, which products are taken from.
    pub centre: Vec<f64>,
    /// Newton steps and solutions on supports so far.
    pub steps: usize,
    /// The mean of ‖x − centre‖².
    size: f64,
    w: Vec<f64>,
    b: f64,
    /// Margins of all examples; empty before the first step.
    margins: Vec<f64>,
    active: Vec<usize>,
    known: Known,
}

/// Examples whose products are known: signed, centred, in the order of `order`.
#[derive(Default)]
struct Known {
    /// The place of each example in `order`.
    place: Vec<Option<usize>>,
    order: Vec<usize>,
    rows: Vec<f64>,
    products: Vec<f64>,
    room: usize,
}

impl<'a> Soft<'a> {
    /// Begins with the examples nearest to each other in the direction from one mean to the other; nothing where a class
    /// is empty or numbers are too large or too small.
    pub(super) fn new(examples: Examples<'a>) -> Option<Self> {
        let mean = |sign: f64| {
            let mut mean = vec![0.0; examples.columns];
            let members: Vec<usize> = (0..examples.len()).filter(|&i| examples.signs[i] == sign).collect();
            members.iter().for_each(|&i| add_scaled(&mut mean, 1.0 / members.len() as f64, examples.row(i)));
            (mean, members)
        };
        let ((above, mut up), (below, mut down)) = (mean(1.0), mean(-1.0));
        let (n, count) = (examples.len() as f64, (up.len(), down.len()));
        if count.0 == 0 || count.1 == 0 {
            return None;
        }
        let centre: Vec<f64> =
            above.iter().zip(&below).map(|(a, b)| count.0 as f64 / n * a + count.1 as f64 / n * b).collect();
        let squares: f64 = (0..examples.len()).map(|i| dot(examples.row(i), examples.row(i))).sum();
        let size = squares / n - dot(&centre, &centre);
        if !SIZES.contains(&(squares / n).sqrt()) || size < 1e-10 * squares / n {
            return None;
        }
        let towards: Vec<f64> = above.iter().zip(&below).map(|(a, b)| a - b).collect();
        let scores: Vec<f64> = (0..examples.len()).map(|i| dot(examples.row(i), &towards)).collect();
        // with more inputs than examples nearly all of them carry the answer
        let half = if examples.len() <= examples.columns { examples.len() } else { examples.columns.div_ceil(2) };
        up.sort_by(|i, j| scores[*i].total_cmp(&scores[*j]));
        down.sort_by(|i, j| scores[*j].total_cmp(&scores[*i]));
        let mut active: Vec<usize> = up.into_iter().take(half).chain(down.into_iter().take(half)).collect();
        active.sort_unstable();
        let known = Known { place: vec![None; examples.len()], ..Known::default() };
        let w = vec![0.0; examples.columns];
        Some(Self { examples, centre, steps: 0, size, w, b: 0.0, margins: Vec::new(), active, known })
    }

    /// The examples that fall short at the minimiser for λ = slack · mean ‖x − centre‖².
    pub(super) fn solve(&mut self, slack: f64) -> Option<Vec<usize>> {
        let lambda = slack * self.size;
        for _ in 0..STEPS {
            self.steps += 1;
            let (w, b) = match self.active.len() <= self.examples.columns {
                true => self.among_examples(lambda)?,
                false => self.among_inputs(lambda)?,
            };
            let margins = self.examples.margins(&w, b);
            if !margins.iter().all(|m| m.is_finite()) {
                return None;
            }
            let share = if self.margins.is_empty() { 1.0 } else { self.line_search(&w, &margins, lambda) };
            if (share - 1.0).abs() < 1e-9 || self.margins.is_empty() {
                (self.w, self.b, self.margins) = (w, b, margins);
            } else {
                let mix = |x: &mut f64, to: f64| *x += share * (to - *x);
                self.w.iter_mut().zip(w).for_each(|(x, to)| mix(x, to));
                self.margins.iter_mut().zip(margins).for_each(|(x, to)| mix(x, to));
                mix(&mut self.b, b);
            }
            let short: Vec<usize> = (0..self.margins.len()).filter(|&i| self.margins[i] < 1.0).collect();
            if short == self.active {
                return Some(short);
            }
            self.active = short;
        }
        None
    }

    /// The minimiser where the active examples are all short: (K + λ)α + y b = 1, yᵀα = 0, w = Σ α y x.
    fn among_examples(&mut self, lambda: f64) -> Option<(Vec<f64>, f64)> {
        let active = std::mem::take(&mut self.active);
        let mut matrix = self.products(&active);
        (0..active.len()).for_each(|i| matrix[i * (active.len() + 1)] += lambda);
        let mut factor = Cholesky::new(active.len());
        factor.factor(&matrix, 0.0).ok()?;
        let signs: Vec<f64> = active.iter().map(|&i| self.examples.signs[i]).collect();
        let (mut alpha, mut across) = (vec![1.0; active.len()], signs.clone());
        factor.solve(&mut alpha);
        factor.solve(&mut across);
        let level = dot(&signs, &alpha) / dot(&signs, &across);
        add_scaled(&mut alpha, -level, &across);
        let w = combine(self.examples, &active, &alpha);
        self.active = active;
        Some((w.clone(), level - dot(&self.centre, &w)))
    }

    /// The same by the ridge regression of y on x: (λ + Σ(x − x̄)(x − x̄)ᵀ) w = Σ(x − x̄)(y − ȳ), b = ȳ − ⟨x̄, w⟩.
    fn among_inputs(&mut self, lambda: f64) -> Option<(Vec<f64>, f64)> {
        let (examples, count) = (self.examples, self.active.len() as f64);
        let (d, mut mean) = (examples.columns, vec![0.0; examples.columns]);
        self.active.iter().for_each(|&i| add_scaled(&mut mean, count.recip(), examples.row(i)));
        let level = self.active.iter().map(|&i| examples.signs[i]).sum::<f64>() / count;
        let (mut rows, mut w) = (Vec::with_capacity(self.active.len() * d), vec![0.0; d]);
        for &i in &self.active {
            rows.extend(examples.row(i).iter().zip(&mean).map(|(x, mean)| x - mean));
            add_scaled(&mut w, examples.signs[i] - level, &rows[rows.len() - d..]);
        }
        let mut matrix = vec![0.0; d * d];
        matmul_tn(&mut matrix, &rows, &rows, d, self.active.len(), d);
        (0..d).for_each(|j| matrix[j * (d + 1)] += lambda);
        let mut factor = Cholesky::new(d);
        factor.factor(&matrix, 0.0).ok()?;
        factor.solve(&mut w);
        let b = level - dot(&mean, &w);
        Some((w, b))
    }

    /// Where the objective is least on the way from the present point to (w, b), as a share of it.
    fn line_search(&self, w: &[f64], margins: &[f64], lambda: f64) -> f64 {
        let (from, towards) = (dot(&self.w, &self.w), dot(&self.w, w));
        // the derivative at t is lin + quad·t between two places where an example begins or ends to be short
        let mut lin = lambda * (towards - from);
        let mut quad = lambda * (from - 2.0 * towards + dot(w, w));
        let mut changes: Vec<(f64, f64, f64)> = Vec::new();
        for (m, to) in self.margins.iter().zip(margins) {
            let (short, rise) = (1.0 - m, to - m);
            let (a, b) = (rise * short, rise * rise);
            if short > 0.0 {
                (lin, quad) = (lin - a, quad + b);
                if rise > short {
                    changes.push((short / rise, a, -b));
                }
            } else if rise < short {
                changes.push((short / rise, -a, b));
            }
        }
        // beyond the end of the way only rarely: a share above 1 gains little
        changes.sort_by(|x, y| x.0.total_cmp(&y.0));
        for (at, a, b) in changes {
            if lin + quad * at >= 0.0 {
                break;
            }
            (lin, quad) = (lin + a, quad + b);
        }
        let share = -lin / quad;
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 1.0 }
    }

    /// y_i y_j ⟨x_i − centre, x_j − centre⟩ over some examples, row by row.
    pub(super) fn products(&mut self, set: &[usize]) -> Vec<f64> {
        self.known.learn(self.examples, &self.centre, set);
        let places: Vec<usize> = set.iter().filter_map(|&i| self.known.place[i]).collect();
        let mut out = Vec::with_capacity(places.len() * places.len());
        for &row in &places {
            let row = &self.known.products[row * self.known.room..][..self.known.room];
            out.extend(places.iter().map(|&column| row[column]));
        }
        out
    }
}

impl Known {
    /// Makes sure that all products among the examples of a set are known.
    fn learn(&mut self, examples: Examples, centre: &[f64], set: &[usize]) {
        let d = examples.columns;
        let mut fresh: Vec<usize> = set.iter().copied().filter(|&i| self.place[i].is_none()).collect();
        if self.order.len() + fresh.len() > self.room {
            // begin again with this set, and room for as many again
            self.place.iter_mut().for_each(|place| *place = None);
            self.order.clear();
            self.rows.clear();
            fresh = set.to_vec();
            self.room = (2 * set.len()).min(examples.len());
            self.products.clear();
            self.products.resize(self.room * self.room, 0.0);
        }
        let before = self.order.len();
        self.rows.reserve(fresh.len() * d);
        for &i in &fresh {
            self.place[i] = Some(self.order.len());
            self.order.push(i);
            let y = examples.signs[i];
            self.rows.extend(examples.row(i).iter().zip(centre).map(|(x, c)| y * (x - c)));
        }
        // a few rows at a time, each with those before it: half of all products
        let mut block = vec![0.0; BLOCK * self.order.len()];
        for first in (before..self.order.len()).step_by(BLOCK) {
            let end = (first + BLOCK).min(self.order.len());
            let fresh = &self.rows[first * d..end * d];
            matmul_nt(&mut block, fresh, &self.rows, end - first, d, end);
            for (i, row) in (first..end).zip(block.chunks_exact(end)) {
                for (j, product) in row.iter().enumerate() {
                    self.products[i * self.room + j] = *product;
                    self.products[j * self.room + i] = *product;
                }
            }
        }
    }
}
