//! Matrix products, row by row as the rest of the library writes them; cuBLAS, which computes those in 64 bits, reads column by column.

use std::ffi::c_void;

use cudarc::cublas::{result, sys};

use super::card::{Card, Number};
use super::error::CardError;

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

impl Card {
    /// c = a·b, or c + a·b; c is rows × cols without gaps.
    pub fn product(&self, sides: Sides, a: Operand, b: Operand, c: u64, add: bool) -> Result<(), CardError> {
        if self.tensor {
            return self.tensor_product(sides, a, b, c, add);
        }
        let side = CardError::length;
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
        // SAFETY: the buffers were made for these sides; read column by column, the product is bᵀaᵀ.
        self.start(|| unsafe {
            result::gemm_ex(
                self.blas(),
                b.operation(),
                a.operation(),
                cols,
                rows,
                inner,
                alpha,
                b.at as *const c_void,
                kind,
                first,
                a.at as *const c_void,
                kind,
                second,
                beta,
                c as *mut c_void,
                kind,
                cols,
                compute,
                sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
            )
        })
        .map_err(CardError::Product)
    }
}
