//! Matrix products, row by row as the rest of the library writes them; cuBLAS reads column by column.

use std::ffi::c_void;

use cudarc::cublas::{result, sys};

use super::card::{Card, CardError, Number};

/// A matrix on the card: where its first entry is, entries from one row to the next, and whether it is read transposed.
#[derive(Clone, Copy)]
pub(crate) struct Operand {
    pub at: u64,
    pub stride: usize,
    pub transposed: bool,
}

impl Operand {
    /// A matrix as it lies.
    pub fn plain(at: u64, stride: usize) -> Self {
        Self { at, stride, transposed: false }
    }

    /// Its transpose.
    pub fn transposed(at: u64, stride: usize) -> Self {
        Self { at, stride, transposed: true }
    }

    fn operation(self) -> sys::cublasOperation_t {
        if self.transposed { sys::cublasOperation_t::CUBLAS_OP_T } else { sys::cublasOperation_t::CUBLAS_OP_N }
    }
}

/// Sides of a product: `rows` × `inner` times `inner` × `cols`.
#[derive(Clone, Copy)]
pub(crate) struct Sides {
    pub rows: usize,
    pub cols: usize,
    pub inner: usize,
}

/// How a product over many places is summed: in pieces of this many places side by side, because a small result alone leaves most
/// of a card idle. It depends on the sides only, and with it the order of sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pieces {
    /// Places of a piece; the last may have fewer.
    pub length: usize,
    /// Pieces.
    pub number: usize,
}

/// Tiles of a result that keep a card busy, their side, and places that make a piece worth its sum.
const TILES: usize = 264;
const TILE: usize = 64;
const LEAST: usize = 512;

impl Pieces {
    /// Those of a rows × cols result summed over `inner` places.
    ///
    /// At most [`Pieces::most`], however many places there are.
    pub fn of(rows: usize, cols: usize, inner: usize) -> Self {
        let number = (inner / LEAST).clamp(1, Self::wanted(rows, cols));
        // whole groups of 32 numbers, so that every piece begins where numbers can be read together
        let length = inner.div_ceil(number).next_multiple_of(32);
        Self { length, number: inner.div_ceil(length).max(1) }
    }

    fn wanted(rows: usize, cols: usize) -> usize {
        (TILES / (rows.div_ceil(TILE) * cols.div_ceil(TILE)).max(1)).max(1)
    }

    /// The most there are for any number of places.
    pub fn most(rows: usize, cols: usize) -> usize {
        Self::wanted(rows, cols)
    }
}

impl Card {
    /// c = a·b, or c + a·b; c is rows × cols without gaps.
    pub fn product(&self, sides: Sides, a: Operand, b: Operand, c: u64, add: bool) -> Result<(), CardError> {
        self.products(sides, [a, b], [0, 0], c, 1, add)
    }

    /// The pieces of a·bᵀ side by side at `c`, where both lie as they are and `sides.inner` is the length of all pieces.
    pub fn product_in_pieces(
        &self,
        sides: Sides,
        a: Operand,
        b: Operand,
        c: u64,
        pieces: Pieces,
    ) -> Result<(), CardError> {
        let Pieces { length, number } = pieces;
        let whole = sides.inner / length;
        let bytes = self.number.bytes() as u64;
        self.products(Sides { inner: length, ..sides }, [a, b], [length, length], c, whole, false)?;
        if whole == number {
            return Ok(());
        }
        let [a, b] = [a, b].map(|o| Operand { at: o.at + (whole * length) as u64 * bytes, ..o });
        let c = c + (whole * sides.rows * sides.cols) as u64 * bytes;
        self.product(Sides { inner: sides.inner - whole * length, ..sides }, a, b, c, false)
    }

    /// `count` products whose factors begin `steps` numbers after each other, and whose results follow each other.
    fn products(
        &self,
        sides: Sides,
        [a, b]: [Operand; 2],
        steps: [usize; 2],
        c: u64,
        count: usize,
        add: bool,
    ) -> Result<(), CardError> {
        let side = |length: usize| i32::try_from(length).map_err(|_| CardError::TooLong(length));
        let (kind, compute) = match self.number {
            Number::F32 => (sys::cudaDataType_t::CUDA_R_32F, sys::cublasComputeType_t::CUBLAS_COMPUTE_32F),
            Number::F64 => (sys::cudaDataType_t::CUDA_R_64F, sys::cublasComputeType_t::CUBLAS_COMPUTE_64F),
        };
        // 1 and what c is multiplied with, in the numbers of the product
        let (one, keep) = (1.0f64, f64::from(u8::from(add)));
        let (single, keep_single) = (1.0f32, f32::from(u8::from(add)));
        let [alpha, beta]: [*const c_void; 2] = match self.number {
            Number::F32 => [(&raw const single).cast(), (&raw const keep_single).cast()],
            Number::F64 => [(&raw const one).cast(), (&raw const keep).cast()],
        };
        let (rows, cols, inner) = (side(sides.rows)?, side(sides.cols)?, side(sides.inner)?);
        let (first, second) = (side(b.stride)?, side(a.stride)?);
        let (handle, algorithm) = (self.blas(), sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT);
        let (operations, [x, y]) = ([b.operation(), a.operation()], [b.at, a.at].map(|at| at as *const c_void));
        let z = c as *mut c_void;
        if count == 1 {
            // SAFETY: the buffers were made for these sides; read column by column, the product is bᵀaᵀ.
            return unsafe {
                let [p, q] = operations;
                result::gemm_ex(
                    handle, p, q, cols, rows, inner, alpha, x, kind, first, y, kind, second, beta, z, kind, cols,
                    compute, algorithm,
                )
            }
            .map_err(CardError::Product);
        }
        let [of_a, of_b] = steps.map(|step| step as i64);
        let (of_c, count) = (i64::from(rows) * i64::from(cols), side(count)?);
        // SAFETY: likewise, and the pieces of the factors lie within them.
        unsafe {
            let [p, q] = operations;
            result::gemm_strided_batched_ex(
                handle, p, q, cols, rows, inner, alpha, x, kind, first, of_b, y, kind, second, of_a, beta, z, kind,
                cols, of_c, count, compute, algorithm,
            )
        }
        .map_err(CardError::Product)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_all_places_and_are_no_more_than_there_is_room_for() {
        for (rows, cols) in [(32, 25), (64, 288), (512, 4608), (1, 1)] {
            for inner in [1, 31, 511, 512, 1024, 19_600, 78_400, 102_400, 1_000_001] {
                let Pieces { length, number } = Pieces::of(rows, cols, inner);
                assert!(length * (number - 1) < inner && inner <= length * number, "{rows} {cols} {inner}");
                assert!(number <= Pieces::most(rows, cols), "{rows} {cols} {inner}: {number}");
            }
        }
        assert_eq!(Pieces::of(32, 25, 78_400), Pieces { length: 544, number: 145 });
        assert_eq!(Pieces::of(512, 4608, 400).number, 1);
    }
}
