//! Both products against the definition, at every number of registers, with leftover rows and depths of several passes.

use pulp::{Arch, WithSimd};

use super::*;
use crate::linalg::lanes;

/// Puts finished tiles where they belong in a row-major matrix.
struct Collect<'a, T> {
    out: &'a mut Vec<T>,
    cols: usize,
    tiles: usize,
}

impl<T: Real> Finish<T> for Collect<'_, T> {
    fn finish<S: Simd, const R: usize, const NV: usize>(&mut self, _: S, at: Corner, tile: Tile<T, S, R, NV>) {
        let lanes = T::lanes::<S>();
        for (r, registers) in tile.iter().enumerate() {
            for (v, register) in registers.iter().enumerate() {
                let mut values = vec![T::default(); lanes];
                // SAFETY: as many numbers as a register has.
                unsafe { T::store::<S>(values.as_mut_ptr(), *register) };
                for (l, value) in values.into_iter().enumerate() {
                    let col = at.column + v * lanes + l;
                    if col < self.cols {
                        self.out[(at.row + r) * self.cols + col] = value;
                    }
                }
            }
        }
        self.tiles += 1;
    }
}

struct Products<'a, T: Real> {
    a: &'a [T],
    rows: usize,
    depth: usize,
    b: &'a Panels<T>,
    d: &'a Panels<T>,
    /// Whether unfinished sums wait in panels.
    in_panels: bool,
}

impl<T: Real> WithSimd for Products<'_, T> {
    type Output = [Vec<T>; 2];

    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        let Self { a, rows, depth, b, d, in_panels } = self;
        let cols = b.cols();
        let mut outs = [vec![T::default(); rows * cols], vec![T::default(); rows * cols]];
        let [forward, gradient] = &mut outs;
        let mut room = vec![T::default(); rows * (b.count() + 1) * Waiting::<T>::row_length(T::lanes::<S>())];
        let waiting = if in_panels {
            Waiting::in_panels(room.as_mut_ptr(), rows, b.width())
        } else {
            Waiting::in_rows::<S>(room.as_mut_ptr())
        };
        let bias: Vec<T> = (0..rows).map(|r| T::from_f64(r as f64)).collect();
        let operand = Rows { start: a.as_ptr(), row: depth, step: 1 };
        // SAFETY: everything is sized above and by the caller.
        unsafe {
            let mut collect = Collect { out: forward, cols, tiles: 0 };
            let bias = Some(bias.as_ptr());
            into_panels(simd, 0..rows, depth, operand, bias, b, 0..b.count(), waiting, &mut collect);
            assert!(collect.tiles > 0);
            let mut collect = Collect { out: gradient, cols, tiles: 0 };
            let waiting = Waiting::in_panels(room.as_mut_ptr(), rows, b.width());
            weight_rows(simd, 0..rows, (d.data().as_ptr(), d), b, 0..b.count(), waiting, &mut collect);
        }
        outs
    }
}

fn check<T: Real>() {
    // small whole numbers, so that every order of sums gives the same
    let number = |i: usize| ((i * 7 + i / 11) % 9) as f64 - 4.0;
    for registers in 1..=8 {
        for short in [0, 1] {
            for (rows, depth) in [(1, 3), (8, 1), (19, 40), (7, DEPTH + 5), (12, 3 * DEPTH), (9, FEW + 70)] {
                let cols = registers * lanes::<T>() - short;
                if cols == 0 {
                    continue;
                }
                let a: Vec<f64> = (0..rows * depth).map(number).collect();
                let right: Vec<f64> = (0..depth * cols).map(|i| number(i + 5)).collect();
                let (mut b, mut d) = (Panels::<T>::zeros(depth, cols), Panels::<T>::zeros(rows, depth));
                b.pack(&right);
                d.pack(&a);
                let entries: Vec<T> = a.iter().map(|x| T::from_f64(*x)).collect();
                for in_panels in [false, true] {
                    let products = Products { a: &entries, rows, depth, b: &b, d: &d, in_panels };
                    let [forward, gradient] = Arch::new().dispatch(products);
                    for (i, (z, g)) in forward.iter().zip(&gradient).enumerate() {
                        let (r, c) = (i / cols, i % cols);
                        let sum: f64 = (0..depth).map(|k| a[r * depth + k] * right[k * cols + c]).sum();
                        let place = format!("{rows}x{depth}x{cols} at ({r}, {c})");
                        assert_eq!(z.to_f64(), sum + r as f64, "{place}");
                        assert_eq!(g.to_f64(), sum, "{place}");
                    }
                }
            }
        }
    }
}

#[test]
fn products_follow_the_definition_at_every_number_of_registers() {
    check::<f64>();
    check::<f32>();
}

#[test]
fn passes_cover_all_panels_and_leave_no_register_alone_beside_a_panel() {
    for registers in 1..=13 {
        let b = Panels::<f64>::zeros(1, registers * lanes::<f64>());
        let passes: Vec<Range<usize>> = in_passes(&b, 0..b.count()).collect();
        assert_eq!(passes.iter().cloned().flatten().collect::<Vec<_>>(), (0..b.count()).collect::<Vec<_>>());
        let lonely = passes.iter().any(|pass| pass.len() == 1 && b.vectors(pass.start) == 1);
        assert_eq!(lonely, registers == 1, "{registers} registers");
        assert_eq!(in_passes(&b, 1..1).count(), 0);
        // a thread's part that ends before the lonely register
        let part: Vec<usize> = in_passes(&b, 0..b.count() - 1).flatten().collect();
        assert_eq!(part, (0..b.count() - 1).collect::<Vec<_>>());
    }
}

#[test]
fn blocks_cover_all_rows_and_begin_at_whole_tiles() {
    for (rows, depth) in [(0..0, 5), (3..70, 1), (0..1500, 2000), (16..1037, 100_000), (0..7, 1 << 20)] {
        let blocks: Vec<Range<usize>> = row_blocks::<f64>(rows.clone(), depth).collect();
        assert_eq!(blocks.iter().cloned().flatten().collect::<Vec<_>>(), rows.clone().collect::<Vec<_>>());
        assert!(blocks.iter().all(|block| (block.start - rows.start).is_multiple_of(8) && !block.is_empty()));
        assert_eq!(blocks.len() > 1, rows.len() * depth * 8 > STAYS && rows.len() > 32, "{rows:?} x {depth}");
    }
}
