//! The eleven BLAS and LAPACK routines that the conic solver calls, in plain Rust.
//!
//! Clarabel reaches its dense linear algebra through Fortran symbols and leaves the choice of a library to whoever links
//! it. This file is that library, over the decompositions of this module, so that building needs neither a Fortran
//! compiler nor a system BLAS. Only semidefinite cones (spectral and nuclear norms) call it, on matrices of a few dozen
//! rows; operands are copied in and out, which costs less than the decompositions themselves.
//!
//! Conventions are those of the reference implementation (Anderson et al., LAPACK Users' Guide, 3rd edition, 1999):
//!
//! | argument | meaning |
//! |---|---|
//! | `a`, `lda` | column-major, entry (i, j) at `i + j·lda`, so `lda` ≥ rows |
//! | `trans` | `N` reads the operand as it is, `T` and `C` transposed |
//! | `uplo` | `U` or `L`: the triangle of a symmetric matrix that is read or written; the other is not touched |
//! | `lwork` = −1 | a workspace query: the wanted lengths are written to `work[0]` and `iwork[0]`, nothing else happens |
//! | `info` | 0 for success, −k if argument k is not supported, positive if a pivot is not positive or zero |
//!
//! A matrix with NaN or infinite entries has NaN for eigenvalues and singular values, without an error: the solver stops
//! by itself at a NaN, while it takes an error for a bug and panics.
//!
//! Routines named `s…` take `f32`: they compute in `f64` and round once at the end.

use std::ffi::{c_char, c_int};

use super::{Eigen, Matrix, Svd, matmul, matmul_nt};

/// `f32` or `f64`, the two element types of the routines.
trait Element: Copy {
    fn widen(self) -> f64;
    fn narrow(x: f64) -> Self;
}

impl Element for f64 {
    fn widen(self) -> f64 {
        self
    }
    fn narrow(x: f64) -> Self {
        x
    }
}

impl Element for f32 {
    fn widen(self) -> f64 {
        f64::from(self)
    }
    fn narrow(x: f64) -> Self {
        x as f32
    }
}

/// Copies a `rows` × `cols` operand into a row-major matrix.
///
/// SAFETY: `a` must be readable at `i + j·ld` for all i < rows, j < cols.
unsafe fn read<T: Element>(a: *const T, rows: usize, cols: usize, ld: usize) -> Matrix {
    let mut out = Matrix::zeros(rows, cols);
    for i in 0..rows {
        for (j, x) in out.row_mut(i).iter_mut().enumerate() {
            // SAFETY: i < rows and j < cols, which the caller vouches for.
            *x = unsafe { *a.add(i + j * ld) }.widen();
        }
    }
    out
}

/// Copies op(A), which is `rows` × `cols`, out of an operand that is stored transposed if `trans` says so.
///
/// SAFETY: as [`read`], of the operand as it is stored.
unsafe fn read_operand<T: Element>(trans: c_char, a: *const T, rows: usize, cols: usize, ld: usize) -> Matrix {
    // SAFETY: the caller's promise is about the stored shape, which is what is read.
    unsafe {
        match letter(trans) {
            b'N' => read(a, rows, cols, ld),
            _ => read(a, cols, rows, ld).transpose(),
        }
    }
}

/// Copies a symmetric matrix of which only the triangle `uplo` is stored.
///
/// SAFETY: as [`read`] with `size` rows and columns, of which only the triangle must be initialised.
unsafe fn read_symmetric<T: Element>(uplo: c_char, a: *const T, size: usize, ld: usize) -> Matrix {
    let mut out = Matrix::zeros(size, size);
    for (i, j) in triangle(uplo, size) {
        // SAFETY: (i, j) lies in the triangle that the caller vouches for.
        let x = unsafe { *a.add(i + j * ld) }.widen();
        out[(i, j)] = x;
        out[(j, i)] = x;
    }
    out
}

/// c ← product + beta·c on the given entries; with beta = 0 the old c is not read.
///
/// SAFETY: `c` must be readable and writable at `i + j·ld` for every entry (i, j) of `entries`.
unsafe fn update<T: Element>(
    c: *mut T,
    ld: usize,
    beta: f64,
    product: &Matrix,
    entries: impl Iterator<Item = (usize, usize)>,
) {
    for (i, j) in entries {
        // SAFETY: (i, j) is one of the entries that the caller vouches for.
        unsafe {
            let at = c.add(i + j * ld);
            let old = if beta == 0.0 { 0.0 } else { beta * (*at).widen() };
            *at = T::narrow(product[(i, j)] + old);
        }
    }
}

/// All entries of a `rows` × `cols` matrix.
fn rectangle(rows: usize, cols: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..cols).flat_map(move |j| (0..rows).map(move |i| (i, j)))
}

/// The entries of the upper or lower triangle, with the diagonal.
fn triangle(uplo: c_char, size: usize) -> impl Iterator<Item = (usize, usize)> {
    let upper = letter(uplo) == b'U';
    rectangle(size, size).filter(move |(i, j)| if upper { i <= j } else { i >= j })
}

/// The option letter in upper case.
fn letter(option: c_char) -> u8 {
    (option as u8).to_ascii_uppercase()
}

/// A Fortran integer as a size; negative counts as 0.
fn size(n: c_int) -> usize {
    usize::try_from(n).unwrap_or(0)
}

/// factor · A B.
fn product(factor: f64, a: &Matrix, b: &Matrix) -> Matrix {
    let mut out = Matrix::zeros(a.rows, b.cols);
    matmul(&mut out.data, &a.data, &b.data, a.rows, a.cols, b.cols);
    out.data.iter_mut().for_each(|x| *x *= factor);
    out
}

/// factor · A Bᵀ.
fn product_transposed(factor: f64, a: &Matrix, b: &Matrix) -> Matrix {
    let mut out = Matrix::zeros(a.rows, b.rows);
    matmul_nt(&mut out.data, &a.data, &b.data, a.rows, a.cols, b.rows);
    out.data.iter_mut().for_each(|x| *x *= factor);
    out
}

/// L with A = L Lᵀ, or the 1-based index of the first pivot that is not positive.
fn lower_factor(mut a: Matrix) -> Result<Matrix, c_int> {
    let n = a.rows;
    for j in 0..n {
        let pivot = a[(j, j)] - super::dot(&a.row(j)[..j], &a.row(j)[..j]);
        if pivot.is_nan() || pivot <= 0.0 {
            return Err(j as c_int + 1);
        }
        let root = pivot.sqrt();
        a[(j, j)] = root;
        for i in j + 1..n {
            let known = super::dot(&a.row(i)[..j], &a.row(j)[..j]);
            a[(i, j)] = (a[(i, j)] - known) / root;
            a[(j, i)] = 0.0;
        }
    }
    Ok(a)
}

/// B ← A⁻¹B for A = L Lᵀ, by the two triangular solves.
fn solve_factored(l: &Matrix, b: &mut Matrix) {
    let n = l.rows;
    for column in 0..b.cols {
        for i in 0..n {
            let known: f64 = (0..i).map(|k| l[(i, k)] * b[(k, column)]).sum();
            b[(i, column)] = (b[(i, column)] - known) / l[(i, i)];
        }
        for i in (0..n).rev() {
            let known: f64 = (i + 1..n).map(|k| l[(k, i)] * b[(k, column)]).sum();
            b[(i, column)] = (b[(i, column)] - known) / l[(i, i)];
        }
    }
}

/// A ← its LU factors, B ← A⁻¹B, by elimination with row exchanges; the 1-based pivot rows, or the first zero pivot.
fn eliminate(a: &mut Matrix, b: &mut Matrix) -> Result<Vec<c_int>, c_int> {
    let n = a.rows;
    let mut pivots = Vec::with_capacity(n);
    for k in 0..n {
        let best = (k..n).fold(k, |best, i| if a[(i, k)].abs() > a[(best, k)].abs() { i } else { best });
        if a[(best, k)] == 0.0 {
            return Err(k as c_int + 1);
        }
        pivots.push(best as c_int + 1);
        for matrix in [&mut *a, &mut *b] {
            (0..matrix.cols).for_each(|j| matrix.data.swap(k * matrix.cols + j, best * matrix.cols + j));
        }
        for i in k + 1..n {
            let factor = a[(i, k)] / a[(k, k)];
            (k + 1..n).for_each(|j| a[(i, j)] -= factor * a[(k, j)]);
            (0..b.cols).for_each(|j| b[(i, j)] -= factor * b[(k, j)]);
            a[(i, k)] = factor;
        }
    }
    for i in (0..n).rev() {
        for j in 0..b.cols {
            let known: f64 = (i + 1..n).map(|k| a[(i, k)] * b[(k, j)]).sum();
            b[(i, j)] = (b[(i, j)] - known) / a[(i, i)];
        }
    }
    Ok(pivots)
}

/// The thin singular value decomposition behind both `gesdd` and `gesvd`.
///
/// SAFETY: `a` is m × n, `s` has min(m, n) entries, `u` is m × min(m, n) and `vt` is min(m, n) × n with the given
/// leading dimensions.
#[expect(clippy::too_many_arguments, reason = "the arguments of the Fortran routines")]
unsafe fn thin_svd<T: Element>(
    (m, n): (usize, usize),
    a: *const T,
    lda: usize,
    s: *mut T,
    u: *mut T,
    ldu: usize,
    vt: *mut T,
    ldvt: usize,
) {
    let mut svd = Svd::new(m, n);
    // SAFETY: the caller vouches for a.
    let found = svd.factor(&unsafe { read(a, m, n, lda) }.data).is_ok();
    for k in 0..m.min(n) {
        // SAFETY: k < min(m, n), and the vectors have m and n entries, which the caller vouches for.
        unsafe {
            *s.add(k) = T::narrow(if found { svd.values()[k] } else { f64::NAN });
            svd.left(k).iter().enumerate().for_each(|(i, x)| *u.add(i + k * ldu) = T::narrow(*x));
            svd.right(k).iter().enumerate().for_each(|(j, x)| *vt.add(k + j * ldvt) = T::narrow(*x));
        }
    }
}

/// The routines for one element type. Every routine's safety contract is that of the table in the module's documentation.
macro_rules! routines {
    ($t:ty: $gemm:ident, $gemv:ident, $symv:ident, $syrk:ident, $syr2k:ident, $potrf:ident, $potrs:ident, $gesv:ident,
     $syevr:ident, $gesdd:ident, $gesvd:ident) => {
        /// C ← alpha op(A) op(B) + beta C, with op(A) m × k and op(B) k × n.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $gemm(
            transa: *const c_char,
            transb: *const c_char,
            m: *const c_int,
            n: *const c_int,
            k: *const c_int,
            alpha: *const $t,
            a: *const $t,
            lda: *const c_int,
            b: *const $t,
            ldb: *const c_int,
            beta: *const $t,
            c: *mut $t,
            ldc: *const c_int,
        ) {
            // SAFETY: the caller passes operands of the shapes that the arguments describe.
            unsafe {
                let (m, n, k) = (size(*m), size(*n), size(*k));
                let left = read_operand(*transa, a, m, k, size(*lda));
                let right = read_operand(*transb, b, k, n, size(*ldb));
                let product = product((*alpha).widen(), &left, &right);
                update(c, size(*ldc), (*beta).widen(), &product, rectangle(m, n));
            }
        }

        /// y ← alpha op(A) x + beta y, with A m × n and positive strides.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $gemv(
            trans: *const c_char,
            m: *const c_int,
            n: *const c_int,
            alpha: *const $t,
            a: *const $t,
            lda: *const c_int,
            x: *const $t,
            incx: *const c_int,
            beta: *const $t,
            y: *mut $t,
            incy: *const c_int,
        ) {
            // SAFETY: the caller passes operands of the shapes that the arguments describe.
            unsafe {
                let (m, n) = if letter(*trans) == b'N' { (size(*m), size(*n)) } else { (size(*n), size(*m)) };
                let matrix = read_operand(*trans, a, m, n, size(*lda));
                // a vector with stride s is one row of a matrix with leading dimension s
                let product = product_transposed((*alpha).widen(), &read(x, 1, n, size(*incx)), &matrix);
                update(y, size(*incy), (*beta).widen(), &product, rectangle(1, m));
            }
        }

        /// y ← alpha A x + beta y, with A symmetric and positive strides.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $symv(
            uplo: *const c_char,
            n: *const c_int,
            alpha: *const $t,
            a: *const $t,
            lda: *const c_int,
            x: *const $t,
            incx: *const c_int,
            beta: *const $t,
            y: *mut $t,
            incy: *const c_int,
        ) {
            // SAFETY: the caller passes operands of the shapes that the arguments describe.
            unsafe {
                let n = size(*n);
                let matrix = read_symmetric(*uplo, a, n, size(*lda));
                let product = product_transposed((*alpha).widen(), &read(x, 1, n, size(*incx)), &matrix);
                update(y, size(*incy), (*beta).widen(), &product, rectangle(1, n));
            }
        }

        /// C ← alpha op(A) op(A)ᵀ + beta C on one triangle, with op(A) n × k.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $syrk(
            uplo: *const c_char,
            trans: *const c_char,
            n: *const c_int,
            k: *const c_int,
            alpha: *const $t,
            a: *const $t,
            lda: *const c_int,
            beta: *const $t,
            c: *mut $t,
            ldc: *const c_int,
        ) {
            // SAFETY: the caller passes operands of the shapes that the arguments describe.
            unsafe {
                let n = size(*n);
                let matrix = read_operand(*trans, a, n, size(*k), size(*lda));
                let product = product_transposed((*alpha).widen(), &matrix, &matrix);
                update(c, size(*ldc), (*beta).widen(), &product, triangle(*uplo, n));
            }
        }

        /// C ← alpha (op(A) op(B)ᵀ + op(B) op(A)ᵀ) + beta C on one triangle, with op(A) and op(B) n × k.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $syr2k(
            uplo: *const c_char,
            trans: *const c_char,
            n: *const c_int,
            k: *const c_int,
            alpha: *const $t,
            a: *const $t,
            lda: *const c_int,
            b: *const $t,
            ldb: *const c_int,
            beta: *const $t,
            c: *mut $t,
            ldc: *const c_int,
        ) {
            // SAFETY: the caller passes operands of the shapes that the arguments describe.
            unsafe {
                let (n, k) = (size(*n), size(*k));
                let left = read_operand(*trans, a, n, k, size(*lda));
                let right = read_operand(*trans, b, n, k, size(*ldb));
                let mut sum = product_transposed((*alpha).widen(), &left, &right);
                let transposed = sum.transpose();
                super::add_scaled(&mut sum.data, 1.0, &transposed.data);
                update(c, size(*ldc), (*beta).widen(), &sum, triangle(*uplo, n));
            }
        }

        /// A ← its Cholesky factor on one triangle: L with A = L Lᵀ, or U with A = Uᵀ U.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $potrf(
            uplo: *const c_char,
            n: *const c_int,
            a: *mut $t,
            lda: *const c_int,
            info: *mut c_int,
        ) {
            // SAFETY: the caller passes operands of the shapes that the arguments describe.
            unsafe {
                let (n, lda) = (size(*n), size(*lda));
                *info = match lower_factor(read_symmetric(*uplo, a, n, lda)) {
                    Ok(l) => {
                        let factor = if letter(*uplo) == b'U' { l.transpose() } else { l };
                        update(a, lda, 0.0, &factor, triangle(*uplo, n));
                        0
                    }
                    Err(pivot) => pivot,
                };
            }
        }

        /// B ← A⁻¹B, where `a` holds the factor that `potrf` left.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $potrs(
            uplo: *const c_char,
            n: *const c_int,
            nrhs: *const c_int,
            a: *const $t,
            lda: *const c_int,
            b: *mut $t,
            ldb: *const c_int,
            info: *mut c_int,
        ) {
            // SAFETY: the caller passes operands of the shapes that the arguments describe.
            unsafe {
                let (n, columns, ldb) = (size(*n), size(*nrhs), size(*ldb));
                // symmetric reading puts the factor in both triangles; the solve uses the lower one only
                let factor = read_symmetric(*uplo, a, n, size(*lda));
                let mut right = read(b, n, columns, ldb);
                solve_factored(&factor, &mut right);
                update(b, ldb, 0.0, &right, rectangle(n, columns));
                *info = 0;
            }
        }

        /// A ← its LU factors, B ← A⁻¹B, by elimination with row exchanges.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $gesv(
            n: *const c_int,
            nrhs: *const c_int,
            a: *mut $t,
            lda: *const c_int,
            ipiv: *mut c_int,
            b: *mut $t,
            ldb: *const c_int,
            info: *mut c_int,
        ) {
            // SAFETY: the caller passes operands of the shapes that the arguments describe.
            unsafe {
                let (n, columns, lda, ldb) = (size(*n), size(*nrhs), size(*lda), size(*ldb));
                let (mut matrix, mut right) = (read(a, n, n, lda), read(b, n, columns, ldb));
                *info = match eliminate(&mut matrix, &mut right) {
                    Ok(pivots) => {
                        pivots.iter().enumerate().for_each(|(k, row)| *ipiv.add(k) = *row);
                        update(a, lda, 0.0, &matrix, rectangle(n, n));
                        update(b, ldb, 0.0, &right, rectangle(n, columns));
                        0
                    }
                    Err(pivot) => pivot,
                };
            }
        }

        /// All eigenvalues (`range` = A), increasing, and for `jobz` = V the eigenvectors, of a symmetric matrix.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $syevr(
            jobz: *const c_char,
            range: *const c_char,
            uplo: *const c_char,
            n: *const c_int,
            a: *mut $t,
            lda: *const c_int,
            _vl: *const $t,
            _vu: *const $t,
            _il: *const c_int,
            _iu: *const c_int,
            _abstol: *const $t,
            m: *mut c_int,
            w: *mut $t,
            z: *mut $t,
            ldz: *const c_int,
            _isuppz: *mut c_int,
            work: *mut $t,
            lwork: *const c_int,
            iwork: *mut c_int,
            liwork: *const c_int,
            info: *mut c_int,
        ) {
            // SAFETY: the caller passes operands of the shapes that the arguments describe.
            unsafe {
                *info = 0;
                if *lwork == -1 || *liwork == -1 {
                    *work = 1.0;
                    *iwork = 1;
                    return;
                }
                if letter(*range) != b'A' {
                    *info = -2;
                    return;
                }
                let n = size(*n);
                let mut eigen = Eigen::new(n);
                let found = eigen.factor(&read_symmetric(*uplo, a, n, size(*lda)).data).is_ok();
                *m = n as c_int;
                for k in 0..n {
                    *w.add(k) = <$t>::narrow(if found { eigen.values()[k] } else { f64::NAN });
                    if letter(*jobz) == b'V' {
                        let column = z.add(k * size(*ldz));
                        eigen.vector(k).iter().enumerate().for_each(|(i, x)| *column.add(i) = <$t>::narrow(*x));
                    }
                }
            }
        }

        /// A = U diag(s) Vᵀ in thin form (`jobz` = S).
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $gesdd(
            jobz: *const c_char,
            m: *const c_int,
            n: *const c_int,
            a: *mut $t,
            lda: *const c_int,
            s: *mut $t,
            u: *mut $t,
            ldu: *const c_int,
            vt: *mut $t,
            ldvt: *const c_int,
            work: *mut $t,
            lwork: *const c_int,
            _iwork: *mut c_int,
            info: *mut c_int,
        ) {
            // SAFETY: the caller passes operands of the shapes that the arguments describe.
            unsafe { $gesvd(jobz, jobz, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork, info) }
        }

        /// A = U diag(s) Vᵀ in thin form (`jobu` = `jobvt` = S).
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $gesvd(
            jobu: *const c_char,
            jobvt: *const c_char,
            m: *const c_int,
            n: *const c_int,
            a: *mut $t,
            lda: *const c_int,
            s: *mut $t,
            u: *mut $t,
            ldu: *const c_int,
            vt: *mut $t,
            ldvt: *const c_int,
            work: *mut $t,
            lwork: *const c_int,
            info: *mut c_int,
        ) {
            // SAFETY: the caller passes operands of the shapes that the arguments describe.
            unsafe {
                *info = 0;
                if *lwork == -1 {
                    *work = 1.0;
                } else if letter(*jobu) != b'S' || letter(*jobvt) != b'S' {
                    *info = -1;
                } else {
                    let shape = (size(*m), size(*n));
                    thin_svd(shape, a, size(*lda), s, u, size(*ldu), vt, size(*ldvt));
                }
            }
        }
    };
}

#[rustfmt::skip]
routines!(f64: dgemm_, dgemv_, dsymv_, dsyrk_, dsyr2k_, dpotrf_, dpotrs_, dgesv_, dsyevr_, dgesdd_, dgesvd_);
#[rustfmt::skip]
routines!(f32: sgemm_, sgemv_, ssymv_, ssyrk_, ssyr2k_, spotrf_, spotrs_, sgesv_, ssyevr_, sgesdd_, sgesvd_);

/// Makes sure that the routines are linked, whatever the order in which the linker reads the libraries.
///
/// A library's objects are linked only if something asks for them before they are passed over, and the conic solver,
/// which asks for these, comes after this crate. So the code that uses the solver calls this first.
pub fn link() {
    macro_rules! keep {
        ($($routine:ident),*) => { $(std::hint::black_box($routine as *const ());)* };
    }
    #[rustfmt::skip]
    keep!(dgemm_, dgemv_, dsymv_, dsyrk_, dsyr2k_, dpotrf_, dpotrs_, dgesv_, dsyevr_, dgesdd_, dgesvd_,
          sgemm_, sgemv_, ssymv_, ssyrk_, ssyr2k_, spotrf_, spotrs_, sgesv_, ssyevr_, sgesdd_, sgesvd_);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Streams;

    const UPPER: c_char = b'U' as c_char;
    const LOWER: c_char = b'L' as c_char;

    /// A random column-major matrix inside a buffer with leading dimension `ld`; the gap is NaN, so reading it shows.
    fn random(rows: usize, cols: usize, ld: usize, name: &str) -> Vec<f64> {
        let mut out = vec![f64::NAN; ld * cols];
        let mut stream = Streams::new(7).stream(name);
        out.chunks_exact_mut(ld).for_each(|column| stream.fill_normal(&mut column[..rows]));
        out
    }

    /// A positive definite matrix of which one triangle is stored and the other is NaN.
    fn positive(n: usize, ld: usize, uplo: c_char) -> (Vec<f64>, Vec<Vec<f64>>) {
        let b = random(n, n, n, "positive");
        let full: Vec<Vec<f64>> = (0..n)
            .map(|i| {
                (0..n)
                    .map(|j| (0..n).map(|k| b[i + k * n] * b[j + k * n]).sum::<f64>() + f64::from(u8::from(i == j)))
                    .collect()
            })
            .collect();
        let mut stored = vec![f64::NAN; ld * n];
        triangle(uplo, n).for_each(|(i, j)| stored[i + j * ld] = full[i][j]);
        (stored, full)
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-11 * (1.0 + b.abs())
    }

    #[test]
    fn products_agree_with_their_sums_for_every_transposition_and_leading_dimension() {
        let (m, n, k, ld) = (3, 4, 5, 7);
        for (ta, tb) in [(b'N', b'N'), (b'N', b'T'), (b't', b'n'), (b'C', b'T')] {
            let flat = |t: u8| t.eq_ignore_ascii_case(&b'N');
            let a = if flat(ta) { random(m, k, ld, "a") } else { random(k, m, ld, "a") };
            let b = if flat(tb) { random(k, n, ld, "b") } else { random(n, k, ld, "b") };
            let at = |i: usize, l: usize| if flat(ta) { a[i + l * ld] } else { a[l + i * ld] };
            let bt = |l: usize, j: usize| if flat(tb) { b[l + j * ld] } else { b[j + l * ld] };
            for beta in [0.0, -0.5] {
                let old = if beta == 0.0 { vec![f64::NAN; ld * n] } else { random(m, n, ld, "c") };
                let mut c = old.clone();
                // SAFETY: the buffers have ld·columns entries.
                unsafe {
                    dgemm_(
                        &(ta as c_char),
                        &(tb as c_char),
                        &(m as c_int),
                        &(n as c_int),
                        &(k as c_int),
                        &2.0,
                        a.as_ptr(),
                        &(ld as c_int),
                        b.as_ptr(),
                        &(ld as c_int),
                        &beta,
                        c.as_mut_ptr(),
                        &(ld as c_int),
                    );
                }
                for (i, j) in rectangle(m, n) {
                    let before = if beta == 0.0 { 0.0 } else { beta * old[i + j * ld] };
                    let expected = 2.0 * (0..k).map(|l| at(i, l) * bt(l, j)).sum::<f64>() + before;
                    assert!(close(c[i + j * ld], expected));
                }
                assert!(c[m].is_nan(), "the gap below a column is not written");
            }
        }
    }

    #[test]
    fn matrix_vector_products_agree_with_their_sums() {
        let (m, n, ld) = (3, 5, 6);
        let a = random(m, n, ld, "a");
        let (x, mut y) = (random(1, n, 2, "x"), random(1, m, 3, "y"));
        let old = y.clone();
        // SAFETY: a has ld·n entries, x n with stride 2, y m with stride 3.
        unsafe {
            dgemv_(
                &(b'N' as c_char),
                &(m as c_int),
                &(n as c_int),
                &2.0,
                a.as_ptr(),
                &(ld as c_int),
                x.as_ptr(),
                &2,
                &3.0,
                y.as_mut_ptr(),
                &3,
            );
        }
        for i in 0..m {
            let expected = 2.0 * (0..n).map(|j| a[i + j * ld] * x[2 * j]).sum::<f64>() + 3.0 * old[3 * i];
            assert!(close(y[3 * i], expected));
        }
        let mut z = vec![1.0; n];
        // SAFETY: as above, with the matrix transposed.
        unsafe {
            dgemv_(
                &(b'T' as c_char),
                &(m as c_int),
                &(n as c_int),
                &1.0,
                a.as_ptr(),
                &(ld as c_int),
                y.as_ptr(),
                &3,
                &0.0,
                z.as_mut_ptr(),
                &1,
            );
        }
        (0..n).for_each(|j| assert!(close(z[j], (0..m).map(|i| a[i + j * ld] * y[3 * i]).sum())));
        for uplo in [UPPER, LOWER] {
            let (stored, full) = positive(n, ld, uplo);
            let mut y = vec![1.0; n];
            // SAFETY: the triangle is n × n inside ld·n entries, the vectors have n.
            unsafe {
                dsymv_(
                    &uplo,
                    &(n as c_int),
                    &2.0,
                    stored.as_ptr(),
                    &(ld as c_int),
                    x.as_ptr(),
                    &2,
                    &1.0,
                    y.as_mut_ptr(),
                    &1,
                );
            }
            for i in 0..n {
                assert!(close(y[i], 2.0 * (0..n).map(|j| full[i][j] * x[2 * j]).sum::<f64>() + 1.0));
            }
        }
    }

    #[test]
    fn symmetric_updates_agree_with_their_sums_and_leave_the_other_triangle() {
        let (n, k, ld) = (4, 3, 5);
        for (uplo, trans) in [(UPPER, b'N'), (LOWER, b'N'), (UPPER, b'T'), (LOWER, b'T')] {
            let shape = if trans == b'N' { (n, k) } else { (k, n) };
            let (a, b) = (random(shape.0, shape.1, ld, "a"), random(shape.0, shape.1, ld, "b"));
            let at = |m: &[f64], i: usize, l: usize| if trans == b'N' { m[i + l * ld] } else { m[l + i * ld] };
            let old = random(n, n, ld, "c");
            let (mut c, mut d) = (old.clone(), old.clone());
            // SAFETY: the buffers have ld·columns entries.
            unsafe {
                dsyrk_(
                    &uplo,
                    &(trans as c_char),
                    &(n as c_int),
                    &(k as c_int),
                    &2.0,
                    a.as_ptr(),
                    &(ld as c_int),
                    &0.5,
                    c.as_mut_ptr(),
                    &(ld as c_int),
                );
                dsyr2k_(
                    &uplo,
                    &(trans as c_char),
                    &(n as c_int),
                    &(k as c_int),
                    &2.0,
                    a.as_ptr(),
                    &(ld as c_int),
                    b.as_ptr(),
                    &(ld as c_int),
                    &0.5,
                    d.as_mut_ptr(),
                    &(ld as c_int),
                );
            }
            let inside: Vec<(usize, usize)> = triangle(uplo, n).collect();
            for (i, j) in rectangle(n, n) {
                let before = old[i + j * ld];
                let sum = |p: &[f64], q: &[f64]| (0..k).map(|l| at(p, i, l) * at(q, j, l)).sum::<f64>();
                let (one, two) = if inside.contains(&(i, j)) {
                    (2.0 * sum(&a, &a) + 0.5 * before, 2.0 * (sum(&a, &b) + sum(&b, &a)) + 0.5 * before)
                } else {
                    (before, before)
                };
                assert!(close(c[i + j * ld], one) && close(d[i + j * ld], two));
            }
        }
    }

    #[test]
    fn factors_multiply_back_and_solve() {
        let (n, ld) = (5, 6);
        for uplo in [UPPER, LOWER] {
            let (mut stored, full) = positive(n, ld, uplo);
            let mut info = 9;
            let mut b = random(n, 2, ld, "b");
            let old = b.clone();
            // SAFETY: the triangle is n × n inside ld·n entries, b is n × 2 inside ld·2.
            unsafe {
                dpotrf_(&uplo, &(n as c_int), stored.as_mut_ptr(), &(ld as c_int), &mut info);
                assert_eq!(info, 0);
                dpotrs_(
                    &uplo,
                    &(n as c_int),
                    &2,
                    stored.as_ptr(),
                    &(ld as c_int),
                    b.as_mut_ptr(),
                    &(ld as c_int),
                    &mut info,
                );
            }
            let factor = |i: usize, k: usize| match (uplo == UPPER, k <= i) {
                (_, false) => 0.0,
                (true, _) => stored[k + i * ld],
                (false, _) => stored[i + k * ld],
            };
            for (i, j) in rectangle(n, n) {
                assert!(close((0..n).map(|k| factor(i, k) * factor(j, k)).sum(), full[i][j]));
            }
            for (i, j) in rectangle(n, 2) {
                assert!(close((0..n).map(|k| full[i][k] * b[k + j * ld]).sum(), old[i + j * ld]));
            }
            assert_eq!(info, 0);
        }
        let mut indefinite = [1.0, 2.0, 2.0, 1.0];
        let mut info = 0;
        // SAFETY: a 2 × 2 matrix.
        unsafe { dpotrf_(&LOWER, &2, indefinite.as_mut_ptr(), &2, &mut info) };
        assert_eq!(info, 2, "the second pivot is 1 − 4");
    }

    #[test]
    fn elimination_solves_with_row_exchanges_and_names_a_zero_pivot() {
        let (mut a, mut b) = ([0.0, 2.0, 4.0, 1.0, 3.0, 5.0, 2.0, 2.0, 1.0], [7.0, 9.0, 10.0]);
        let mut pivots = [0; 3];
        let mut info = 9;
        // rows: (0, 1, 2), (2, 3, 2), (4, 5, 1); times (−1, 3, 2) is (7, 11, 13), so solve for that
        b.copy_from_slice(&[7.0, 11.0, 13.0]);
        // SAFETY: a 3 × 3 matrix and one right-hand side.
        unsafe { dgesv_(&3, &1, a.as_mut_ptr(), &3, pivots.as_mut_ptr(), b.as_mut_ptr(), &3, &mut info) };
        assert!(info == 0 && pivots[0] == 3);
        assert!(close(b[0], -1.0) && close(b[1], 3.0) && close(b[2], 2.0), "{b:?}");
        let (mut singular, mut b) = ([1.0, 1.0, 1.0, 1.0], [1.0, 1.0]);
        // SAFETY: a 2 × 2 matrix and one right-hand side.
        unsafe { dgesv_(&2, &1, singular.as_mut_ptr(), &2, pivots.as_mut_ptr(), b.as_mut_ptr(), &2, &mut info) };
        assert_eq!(info, 2);
    }

    #[test]
    fn eigenvectors_rebuild_the_matrix_and_a_query_only_answers() {
        let (n, ld) = (5, 6);
        for uplo in [UPPER, LOWER] {
            let (mut stored, full) = positive(n, ld, uplo);
            let (mut w, mut z, mut support) = (vec![0.0; n], vec![0.0; ld * n], vec![0; 2 * n]);
            let (mut work, mut iwork, mut info, mut found) = ([0.0], [0], 9, 0);
            for length in [-1, 1] {
                // SAFETY: all buffers have the sizes that LAPACK asks for, the workspace that of the query.
                unsafe {
                    dsyevr_(
                        &(b'V' as c_char),
                        &(b'A' as c_char),
                        &uplo,
                        &(n as c_int),
                        stored.as_mut_ptr(),
                        &(ld as c_int),
                        &0.0,
                        &0.0,
                        &0,
                        &0,
                        &-1.0,
                        &mut found,
                        w.as_mut_ptr(),
                        z.as_mut_ptr(),
                        &(ld as c_int),
                        support.as_mut_ptr(),
                        work.as_mut_ptr(),
                        &length,
                        iwork.as_mut_ptr(),
                        &length,
                        &mut info,
                    );
                }
                assert_eq!((info, found), if length == -1 { (0, 0) } else { (0, n as c_int) });
                assert!(work[0] >= 1.0 && iwork[0] >= 1);
            }
            assert!(w.is_sorted());
            for (i, j) in rectangle(n, n) {
                assert!(close((0..n).map(|k| w[k] * z[i + k * ld] * z[j + k * ld]).sum(), full[i][j]));
            }
        }
    }

    #[test]
    fn singular_vectors_rebuild_the_matrix_in_both_precisions() {
        for (m, n) in [(4, 4), (6, 4), (4, 6)] {
            let (r, ld) = (m.min(n), m + 1);
            let a = random(m, n, ld, "a");
            let single: Vec<f32> = a.iter().map(|x| *x as f32).collect();
            let (mut s, mut u, mut vt) = (vec![0.0; r], vec![0.0; m * r], vec![0.0; r * n]);
            let (mut s1, mut u1, mut vt1) = (vec![0.0f32; r], vec![0.0f32; m * r], vec![0.0f32; r * n]);
            let (mut work, mut work1, mut info, mut iwork) = ([0.0], [0.0f32], 9, vec![0; 8 * r]);
            let (sizes, job) = ((m as c_int, n as c_int, r as c_int, ld as c_int), b'S' as c_char);
            for length in [-1, 1] {
                // SAFETY: all buffers have the sizes that LAPACK asks for, the workspace that of the query.
                unsafe {
                    dgesdd_(
                        &job,
                        &sizes.0,
                        &sizes.1,
                        a.clone().as_mut_ptr(),
                        &sizes.3,
                        s.as_mut_ptr(),
                        u.as_mut_ptr(),
                        &sizes.0,
                        vt.as_mut_ptr(),
                        &sizes.2,
                        work.as_mut_ptr(),
                        &length,
                        iwork.as_mut_ptr(),
                        &mut info,
                    );
                    assert_eq!(info, 0);
                    sgesvd_(
                        &job,
                        &job,
                        &sizes.0,
                        &sizes.1,
                        single.clone().as_mut_ptr(),
                        &sizes.3,
                        s1.as_mut_ptr(),
                        u1.as_mut_ptr(),
                        &sizes.0,
                        vt1.as_mut_ptr(),
                        &sizes.2,
                        work1.as_mut_ptr(),
                        &length,
                        &mut info,
                    );
                    assert_eq!(info, 0);
                }
                assert!(work[0] >= 1.0);
            }
            for (i, j) in rectangle(m, n) {
                assert!(close((0..r).map(|k| s[k] * u[i + k * m] * vt[k + j * r]).sum(), a[i + j * ld]));
                let rounded: f32 = (0..r).map(|k| s1[k] * u1[i + k * m] * vt1[k + j * r]).sum();
                assert!((rounded - single[i + j * ld]).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn a_matrix_with_nan_has_nan_values_and_no_error() {
        let (mut a, mut w, mut info) = ([f64::NAN; 16], [0.0; 4], 9);
        let (mut z, mut support, mut work, mut iwork, mut found) = ([0.0], [0; 8], [0.0], [0], 0);
        // SAFETY: a 4 × 4 matrix; without eigenvectors z is not touched.
        unsafe {
            dsyevr_(
                &(b'N' as c_char),
                &(b'A' as c_char),
                &UPPER,
                &4,
                a.as_mut_ptr(),
                &4,
                &0.0,
                &0.0,
                &0,
                &0,
                &-1.0,
                &mut found,
                w.as_mut_ptr(),
                z.as_mut_ptr(),
                &4,
                support.as_mut_ptr(),
                work.as_mut_ptr(),
                &1,
                iwork.as_mut_ptr(),
                &1,
                &mut info,
            );
        }
        assert!(info == 0 && w.iter().all(|x| x.is_nan()));
    }
}
