//! What potentials refuse.

/// Why a potential could not be described, built or evaluated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PotentialError {
    /// A setting out of its range.
    #[error("{parameter} of the {potential} potential should be {range}, but is {value}; {remedy}")]
    Setting {
        /// Key of the potential.
        potential: &'static str,
        /// Name of the setting.
        parameter: &'static str,
        /// What was given.
        value: f64,
        /// What is allowed.
        range: &'static str,
        /// What to do instead.
        remedy: &'static str,
    },
    /// The weights of a quadratic potential have the wrong number of entries.
    #[error(
        "a quadratic potential of size {found} was given for {expected} trainable entries; give {expected} weights, or one for all"
    )]
    QuadraticSize {
        /// Size given (of the offending row, for a matrix that is not square).
        found: usize,
        /// Size needed.
        expected: usize,
    },
    /// The matrix of a quadratic potential is not symmetric.
    #[error(
        "the matrix of the quadratic potential has D[{row}][{col}] = {value} but D[{col}][{row}] = {mirrored}; make it symmetric"
    )]
    AsymmetricQuadratic {
        /// Row of the entry.
        row: usize,
        /// Column of the entry.
        col: usize,
        /// The entry.
        value: f64,
        /// Its mirror image.
        mirrored: f64,
    },
    /// A weight outside the domain of R.
    #[error("the {potential} potential needs {requirement}, but entry {index} of block '{block}' is {value}; {remedy}")]
    OutsideDomain {
        /// Key of the potential.
        potential: &'static str,
        /// Name of the block.
        block: String,
        /// Index inside the block, row-major.
        index: usize,
        /// The weight.
        value: f64,
        /// What the domain is.
        requirement: &'static str,
        /// What to do instead.
        remedy: &'static str,
    },
    /// A matrix that is not positive definite where R needs one.
    #[error(
        "the {potential} potential needs a positive definite matrix, but block '{block}' has the eigenvalue {eigenvalue}; start from a positive multiple of the identity"
    )]
    NotPositiveDefinite {
        /// Key of the potential.
        potential: &'static str,
        /// Name of the block.
        block: String,
        /// The smallest eigenvalue (NaN if it could not be computed).
        eigenvalue: f64,
    },
    /// A potential of square matrices on a block that is not square.
    #[error(
        "the spectral-entropy potential acts on square matrices, but block '{block}' is {rows}x{cols}; use 'layers' to give this block another potential"
    )]
    NotSquare {
        /// Name of the block.
        block: String,
        /// Its rows.
        rows: usize,
        /// Its columns.
        cols: usize,
    },
    /// A layer-wise potential inside another.
    #[error("the layers potential gives block '{block}' another layers potential; name the blocks in one list")]
    NestedLayers {
        /// Name of the block.
        block: String,
    },
    /// Text that is not a potential.
    #[error("'{text}' is not a potential; write {expected}")]
    Text {
        /// What was given.
        text: String,
        /// The accepted forms.
        expected: &'static str,
    },
    /// Text that is not a formula.
    #[error("'{text}' is not a formula: at character {place}, {problem}; {remedy}")]
    Formula {
        /// What was given, or its beginning.
        text: String,
        /// Where reading stopped, from 1.
        place: usize,
        /// What is wrong there.
        problem: String,
        /// What to do instead.
        remedy: String,
    },
    /// A potential that is not a sum of one function over the entries, where one is needed.
    #[error(
        "the {potential} potential is not a sum of one function over the weights, so there is no R(t) to look at; give \
         euclidean, entropy, hyperbolic:LAMBDA, smoothed:P,LAMBDA, power-smoothed:P,LAMBDA, or a formula in t"
    )]
    NotScalar {
        /// Key of the potential.
        potential: &'static str,
    },
    /// The layout refused a name or a length.
    #[error(transparent)]
    Params(#[from] crate::params::ParamsError),
}
