//! Register-tile products of small matrices with room for fused work.
//!
//! Two products carry a training step, both built on one tile: R rows × up to four vector registers of columns stay in
//! registers while the depth runs by, the row operand is broadcast from wherever it lies, the column operand comes from
//! [`Panels`]: one panel of up to three registers, or the last two where the last is a lonely register, which alone
//! would wait for its row operand.
//!
//! ```text
//! into_panels     C = A · B        forward pass (A = weights) and back-signals (A = weightsᵀ); C and B are panels
//! weight_rows     G = D · B        weight gradient: depth runs over the examples, D and B are panels, G is row-major
//! ```
//!
//! What happens to a finished tile (store, activation, next layer's partial sum) is the caller's [`Finish`], so an
//! activation costs no second pass. Each row of a result is computed in one fixed order whoever computes it: splitting
//! rows over threads cannot change a bit.

use std::ops::Range;

use pulp::Simd;

use super::fetch::fetch;
use super::panels::{PANEL_VECTORS, Panels};
use super::real::{Real, Registers};

mod waiting;

pub use waiting::Waiting;

/// Depth of one pass over a panel: 128 steps of three registers fit the first-level cache, those of four just so.
pub const DEPTH: usize = 128;

/// A tile of R rows by NV registers.
pub type Tile<T, S, const R: usize, const NV: usize> = [[<T as Registers>::Vector<S>; NV]; R];

/// Where a tile begins: its first row, its panel and its first column.
#[derive(Clone, Copy)]
pub struct Corner {
    /// Row of the result.
    pub row: usize,
    /// Panel of the column operand.
    pub panel: usize,
    /// Column of the result, the first of the panel.
    pub column: usize,
}

/// What becomes of a finished tile.
pub trait Finish<T: Real> {
    /// Takes the R rows and NV registers that begin there.
    fn finish<S: Simd, const R: usize, const NV: usize>(&mut self, simd: S, at: Corner, tile: Tile<T, S, R, NV>);

    /// Is told which rows of a panel come next: time to ask for what they will meet.
    #[inline(always)]
    fn expect(&self, _rows: Range<usize>, _panel: usize) {}
}

/// The row operand of a product: entry (r, k) lies at `start + r · row + k · step`.
#[derive(Clone, Copy)]
pub struct Rows<T> {
    /// Address of entry (0, 0).
    pub start: *const T,
    /// Distance between rows.
    pub row: usize,
    /// Distance between steps in depth.
    pub step: usize,
}

/// Registers of a panel and of a lonely register in the panel after it.
const PAIR: usize = PANEL_VECTORS + 1;

/// Where the columns of a product lie: `step` numbers from one row to the next, and `far` from a panel to the next.
#[derive(Clone, Copy)]
struct Columns<T> {
    start: *const T,
    step: usize,
    far: usize,
}

impl<T: Real> Columns<T> {
    /// Panel `panel` from row `row` on.
    #[inline(always)]
    fn of(b: &Panels<T>, panel: usize, row: usize) -> Self {
        let start = b.data()[b.offset(panel, row)..].as_ptr();
        Self { start, step: b.width(), far: b.rows() * b.width() }
    }
}

/// Distance of register `v` from the first one: the fourth is the first of the next panel, which is `far`.
#[inline(always)]
fn register<T: Real, S: Simd>(v: usize, far: usize) -> usize {
    if v < PANEL_VECTORS { v * T::lanes::<S>() } else { far }
}

/// tile += A(R × depth) · B(depth × NV registers).
///
/// # Safety
/// All entries must be readable: `a` for R rows and `depth` steps, `b` for `depth` steps of NV registers.
#[inline(always)]
unsafe fn accumulate<T: Real, S: Simd, const R: usize, const NV: usize>(
    simd: S,
    depth: usize,
    a: Rows<T>,
    b: Columns<T>,
    tile: &mut Tile<T, S, R, NV>,
) {
    let mut local = *tile;
    let (mut pa, mut pb) = (a.start, b.start);
    for _ in 0..depth {
        // SAFETY: the caller vouches for `depth` steps of both operands.
        unsafe {
            let columns: [T::Vector<S>; NV] = std::array::from_fn(|v| T::load::<S>(pb.add(register::<T, S>(v, b.far))));
            for (r, row) in local.iter_mut().enumerate() {
                let entry = T::splat(simd, *pa.add(r * a.row));
                for v in 0..NV {
                    row[v] = T::mul_add(simd, entry, columns[v], row[v]);
                }
            }
        }
        pa = pa.wrapping_add(a.step);
        pb = pb.wrapping_add(b.step);
    }
    *tile = local;
}

/// Hands a tile over, panel by panel, after the last pass; lets its sums wait after any other.
///
/// # Safety
/// `waiting` must be valid there unless the pass is the last.
#[inline(always)]
unsafe fn end_pass<T: Real, S: Simd, F: Finish<T>, const R: usize, const NV: usize>(
    simd: S,
    last: bool,
    at: Corner,
    tile: Tile<T, S, R, NV>,
    waiting: Waiting<T>,
    finish: &mut F,
) {
    if !last {
        // SAFETY: passed on from the caller.
        unsafe { waiting.keep::<S, R, NV>(at, tile) };
    } else if NV == PAIR {
        let next = Corner { panel: at.panel + 1, column: at.column + PANEL_VECTORS * T::lanes::<S>(), ..at };
        finish.finish::<S, R, PANEL_VECTORS>(simd, at, tile.map(|row| std::array::from_fn(|v| row[v])));
        finish.finish::<S, R, 1>(simd, next, tile.map(|row| [row[NV - 1]]));
    } else {
        finish.finish(simd, at, tile);
    }
}

/// Whether a tile, one row of its columns and one entry fit into the registers.
const fn fits(rows: usize, vectors: usize, registers: usize) -> bool {
    (rows + 1) * vectors < registers
}

/// Runs `body::<R>` over `rows` in groups of 8, 4, 2 and 1: of 8 and 4 where there are registers for it, of 2 where
/// there are none for 4.
macro_rules! row_groups {
    ($rows: expr, $vectors: expr, $registers: expr, |$row: ident, $size: ident| $body: expr) => {{
        let mut $row = $rows.start;
        let end = $rows.end;
        macro_rules! while_fits {
            ($n: literal) => {
                while end - $row >= $n {
                    const $size: usize = $n;
                    $body;
                    $row += $n;
                }
            };
        }
        if const { fits(8, $vectors, $registers) } {
            while_fits!(8);
        }
        if const { fits(4, $vectors, $registers) } {
            while_fits!(4);
        } else {
            while_fits!(2);
        }
        while_fits!(1);
    }};
}

/// Runs `body::<NV>` for the NV in the list that `$count` is, or else for the last.
macro_rules! with_vectors {
    ($count: expr, [$($few: tt),*] else $most: expr, |$vectors: ident| $body: expr) => {
        match $count {
            $($few => {
                const $vectors: usize = $few;
                $body
            })*
            _ => {
                const $vectors: usize = $most;
                $body
            }
        }
    };
}

mod gathered;
mod narrow;

pub use gathered::{Begin, Columns as GatheredColumns, Gather, Lines, gathered};
pub use narrow::{NARROW, narrow_rows};

/// These panels one by one, but the last two together where the last is a lonely register.
pub fn in_passes<T: Real>(b: &Panels<T>, panels: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let lonely = panels.len() > 1 && b.vectors(panels.end - 2) == PANEL_VECTORS && b.vectors(panels.end - 1) == 1;
    let passes = panels.len() - usize::from(lonely);
    (0..passes)
        .map(move |pass| panels.start + pass..if pass + 1 == passes { panels.end } else { panels.start + pass + 1 })
}

/// Runs `body::<NV>` over these panels of `$b`, pass by pass, with the first panel of each.
macro_rules! each_pass {
    ($b: expr, $panels: expr, |$index: ident, $vectors: ident| $body: expr) => {
        for pass in in_passes($b, $panels) {
            let $index = pass.start;
            let count = if pass.len() == 2 { PAIR } else { $b.vectors($index) };
            with_vectors!(count, [1, 2, PAIR] else PANEL_VECTORS, |$vectors| $body);
        }
    };
}

/// Bytes of one operand that stay in the second-level cache while the other passes by.
const STAYS: usize = 512 << 10;

/// These rows in blocks whose entries, `depth` to a row, stay in the second-level cache while all columns pass by.
pub fn row_blocks<T>(rows: Range<usize>, depth: usize) -> impl Iterator<Item = Range<usize>> {
    let most = (STAYS / (depth * size_of::<T>()).max(1)).max(32) & !7;
    let count = rows.len().div_ceil(most).max(1);
    let size = rows.len().div_ceil(count).next_multiple_of(8).max(8);
    rows.clone().step_by(size).map(move |first| first..(first + size).min(rows.end))
}

/// Examples of one pass of [`weight_rows`] over `rows` rows: so many that both their signals and one panel of inputs
/// stay in the cache, and all where they are few.
fn examples_a_pass<T>(rows: usize, examples: usize, width: usize) -> usize {
    if examples <= FEW {
        return examples;
    }
    (2 * STAYS / (rows * size_of::<T>()).max(1)).clamp(DEPTH, 3 * DEPTH) / width * width
}

/// Examples that take one pass of [`weight_rows`], however many rows there are.
pub const FEW: usize = 512;

/// C[rows, :] = bias + A[rows, 0..depth] · B for the given panels of B, handing each finished tile to `finish`. Row r
/// of the result uses row r of `a`, counted from `a.start`.
///
/// # Safety
/// `a` must be readable for every row in `rows` and `depth` steps; `waiting` must be valid at these rows, and at these
/// panels where it is in panels, and no other thread may touch them; `bias`, when given, must be readable at every row.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "the arguments of a matrix product")]
pub unsafe fn into_panels<T: Real, S: Simd, F: Finish<T>>(
    simd: S,
    rows: Range<usize>,
    depth: usize,
    a: Rows<T>,
    bias: Option<*const T>,
    b: &Panels<T>,
    panels: Range<usize>,
    waiting: Waiting<T>,
    finish: &mut F,
) {
    each_pass!(b, panels, |panel, NV| {
        let mut from = 0;
        loop {
            let steps = (depth - from).min(DEPTH);
            let columns = Columns::of(b, panel, from);
            row_groups!(rows, NV, S::REGISTER_COUNT, |row, R| {
                // SAFETY: rows and steps are within what the caller vouches for.
                unsafe {
                    let at = Corner { row, panel, column: panel * b.width() };
                    let mut tile: Tile<T, S, R, NV> = if from > 0 {
                        waiting.sums::<S, R, NV>(at)
                    } else {
                        std::array::from_fn(|r| {
                            [T::splat(simd, bias.map_or(T::default(), |bias| *bias.add(row + r))); NV]
                        })
                    };
                    let own = Rows { start: a.start.add(row * a.row + from * a.step), ..a };
                    if panel == 0 && a.step == 1 {
                        // rows that nobody on this core may have seen yet
                        let next = row + R..(row + 2 * R).min(rows.end);
                        next.for_each(|row| fetch(a.start.wrapping_add(row * a.row + from), steps));
                    }
                    accumulate::<T, S, R, NV>(simd, steps, own, columns, &mut tile);
                    end_pass(simd, from + steps == depth, at, tile, waiting, finish);
                }
            });
            from += steps;
            if from == depth {
                break;
            }
        }
    });
}

/// G[rows, columns of `panels`] = D · B where D (rows × examples) and B (examples × columns) are panels and the depth
/// runs over the examples; hands each finished tile to `finish`.
///
/// # Safety
/// No thread may write the rows `rows` of `d`, or `b`, meanwhile. The padding columns of `d` must be finite. `waiting`
/// must be valid at these rows and panels where the examples take more than one pass.
#[inline(always)]
pub unsafe fn weight_rows<T: Real, S: Simd, F: Finish<T>>(
    simd: S,
    rows: Range<usize>,
    d: (*const T, &Panels<T>),
    b: &Panels<T>,
    panels: Range<usize>,
    waiting: Waiting<T>,
    finish: &mut F,
) {
    let (start, d) = d;
    let step = examples_a_pass::<T>(rows.len(), d.cols(), d.width()).div_ceil(d.width()).max(1);
    // of no examples the sum is zero, and handed over too
    for first in (0..d.count().max(1)).step_by(step) {
        let pass = first..(first + step).min(d.count());
        let last = pass.end == d.count();
        each_pass!(b, panels.clone(), |panel, NV| {
            row_groups!(rows, NV, S::REGISTER_COUNT, |row, R| {
                // SAFETY: row and panel indices come from the shapes of `d` and `b`.
                unsafe {
                    let at = Corner { row, panel, column: panel * b.width() };
                    let mut tile: Tile<T, S, R, NV> =
                        if first > 0 { waiting.sums::<S, R, NV>(at) } else { [[T::splat(simd, T::default()); NV]; R] };
                    if last {
                        finish.expect(row + R..(row + 2 * R).min(rows.end), panel);
                    }
                    for examples in pass.clone() {
                        let own = Rows { start: start.add(d.offset(examples, row)), row: d.width(), step: 1 };
                        let columns = Columns::of(b, panel, examples * d.width());
                        accumulate::<T, S, R, NV>(simd, d.filled(examples), own, columns, &mut tile);
                    }
                    end_pass(simd, last, at, tile, waiting, finish);
                }
            });
        });
    }
}

#[cfg(test)]
mod tests;
