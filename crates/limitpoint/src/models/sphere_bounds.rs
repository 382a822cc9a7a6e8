//! How large margins, their gradients and their Hessians can be on the unit sphere of parameters.

use super::{Architecture, Layer, Pooling};
use crate::linalg::Eigen;

/// Upper bounds of a homogeneous model's margins over all unit parameter vectors and all inputs up to a length.
///
/// ```text
/// |q| ≤ B₀,   ‖∇q‖₂ ≤ B₁,   ‖∇²q‖₂ ≤ B₂        so that |q| ≤ B₀ ρ^L, ‖∇q‖ ≤ B₁ ρ^{L−1}, ‖∇²q‖ ≤ B₂ ρ^{L−2} at ‖θ‖ = ρ
/// ```
///
/// Let θ move along a line, layer l being of length rₗ and moving by vₗ. If a vector h(t) and its first two
/// derivatives are at most H, Ḣ, Ḧ long, then so are W h, by r H, v H + r Ḣ and 2 v Ḣ + r Ḧ, and σ(h), by Hᵖ, (Hᵖ)˙
/// and (Hᵖ)¨, for every activation with |σ(z)| ≤ |z|ᵖ, |σ′| ≤ p|z|^{p−1}, |σ″| ≤ p(p−1)|z|^{p−2}. Both are the rules
/// for numbers. So the model is dominated, derivatives included, by the monomial of the layers' lengths
///
/// ```text
/// F(r) = K Π rₗ^{kₗ},   K = s ‖x‖^{k₁}
/// ```
///
/// with kₗ the degree of layer l and s the output factor. A number that m places of a kernel or m windows meet counts m
/// times, so a convolution and a max-pool make a vector √m times as long; K takes these factors in
/// ([`Layer::stretch`]). Products of weights (diagonal and matrix models) have K =
/// ‖x‖₂. A monomial Π rⱼ^{eⱼ} of total degree E is at most Π (eⱼ/E)^{eⱼ/2} on the unit sphere. That gives B₀ exactly,
/// and bounds every entry of ∇F and of ∇²F, whose norms are at most those of the vector and of the matrix of these
/// bounds.
///
/// Margins of many classes are differences of two scores and have a factor √2. B₂ is infinite where the activation has
/// a kink; for squared ReLU it bounds the Hessian wherever there is one. D section E.2 (D.s5); B₀ and B₁ also in D
/// section C.3.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SphereBounds {
    /// B₀.
    pub value: f64,
    /// B₁.
    pub gradient: f64,
    /// B₂.
    pub hessian: f64,
    /// How fast margins change with the inputs, ‖∇ₓq‖₂: since K = s ‖x‖^{k₁}, it is k₁ B₀/‖x‖.
    pub input_gradient: f64,
}

impl SphereBounds {
    /// Of K Π rₗ^{kₗ}, all kₗ ≥ 1, whatever K is made of: the rate with the inputs is left open (NaN).
    ///
    /// ```
    /// use limitpoint::models::SphereBounds;
    /// let bounds = SphereBounds::of_monomial(1.0, &[1.0, 1.0]); // r₁r₂
    /// assert!((bounds.value - 0.5).abs() < 1e-15 && (bounds.hessian - 1.0).abs() < 1e-15);
    /// assert!((bounds.gradient - 2f64.sqrt()).abs() < 1e-15); // the vector (1, 1) bounds (r₂, r₁)
    /// ```
    pub fn of_monomial(constant: f64, degrees: &[f64]) -> Self {
        let layers = degrees.len();
        let lowered = |less: &[usize]| {
            let mut exponents = degrees.to_vec();
            less.iter().for_each(|l| exponents[*l] -= 1.0);
            largest_monomial(&exponents)
        };
        let gradient = (0..layers).map(|l| degrees[l] * lowered(&[l])).fold(0.0, f64::hypot);
        let mut matrix = vec![0.0; layers * layers];
        for i in 0..layers {
            for j in 0..layers {
                let factor = degrees[i] * if i == j { degrees[i] - 1.0 } else { degrees[j] };
                matrix[i * layers + j] = if factor == 0.0 { 0.0 } else { factor * lowered(&[i, j]) };
            }
        }
        Self {
            value: constant * largest_monomial(degrees),
            gradient: constant * gradient,
            hessian: constant * largest_eigenvalue(&matrix, layers),
            input_gradient: f64::NAN,
        }
    }
}

/// max Π rⱼ^{eⱼ} over unit vectors.
fn largest_monomial(exponents: &[f64]) -> f64 {
    let total: f64 = exponents.iter().sum();
    exponents.iter().filter(|e| **e > 0.0).map(|e| (e / total).powf(0.5 * e)).product()
}

/// The largest eigenvalue of a symmetric matrix of non-negative numbers; its largest row sum, which is no smaller,
/// where it cannot be found.
fn largest_eigenvalue(matrix: &[f64], size: usize) -> f64 {
    let mut eigen = Eigen::new(size);
    match eigen.factor(matrix) {
        Ok(()) => eigen.values().iter().copied().fold(0.0, f64::max),
        Err(_) => matrix.chunks_exact(size).map(|row| row.iter().sum()).fold(0.0, f64::max),
    }
}

impl Architecture {
    /// The bounds for inputs of ℓ2 length up to `longest_input`; nothing for models that are not homogeneous in all of
    /// their parameters (frozen layers, biases beyond the first layer), and for the Mexican hat, whose curvature has no
    /// bound here.
    ///
    /// ```
    /// use limitpoint::models::{Activation, ModelSpec, Shape};
    /// let network = ModelSpec::network(&[8], Activation::Quadratic).architecture(&Shape::vector(3), 1)?;
    /// let bounds = network.sphere_bounds(1.0).unwrap();
    /// // Σ aⱼ ⟨wⱼ, x⟩² ≤ ‖a‖ ‖W‖², at most 2/3 · √(1/3), and it grows twice as fast with x
    /// assert!((bounds.value - 2.0 / 27f64.sqrt()).abs() < 1e-15);
    /// assert_eq!(bounds.input_gradient, 2.0 * bounds.value);
    /// # Ok::<(), limitpoint::models::ModelError>(())
    /// ```
    pub fn sphere_bounds(&self, longest_input: f64) -> Option<SphereBounds> {
        let hat = self.layers().iter().any(|layer| matches!(layer, Layer::MexicanHat { .. }));
        if hat || self.layout().blocks().iter().any(|block| block.frozen) {
            return None;
        }
        let degrees: Vec<f64> = self.homogeneity()?.groups.iter().map(|group| group.degree).collect();
        // how scores grow with the inputs: with the first of the layers, or with each factor of a product alike
        let entry: f64 = self.layers().iter().map(Layer::degree).product();
        let mut constant = 1.0;
        // a bias of the first layer is the weight of inputs that are always 1, as many as the channel has places
        let mut longest = longest_input;
        for (layer, before) in self.with_inputs() {
            if layer.has_bias() {
                longest = longest.hypot((layer.places(before) as f64).sqrt() / layer.stretch());
            }
            constant = f64::powf(constant * layer.stretch(), layer.degree());
        }
        let mut bounds = SphereBounds::of_monomial(constant * self.output_factor() * longest.powf(entry), &degrees);
        bounds.input_gradient = entry * bounds.value / longest;
        if self.outputs() > 1 {
            let entries = [&mut bounds.value, &mut bounds.gradient, &mut bounds.hessian, &mut bounds.input_gradient];
            entries.into_iter().for_each(|bound| *bound *= std::f64::consts::SQRT_2);
        }
        let max_pool = |layer: &Layer| matches!(layer, Layer::Pool(pool) if pool.pooling == Pooling::Max);
        if self.activations().any(|activation| activation.kink().is_some()) || self.layers().iter().any(max_pool) {
            bounds.hessian = f64::INFINITY;
        }
        Some(bounds)
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::{Compute, Forward, cpu};
    use crate::linalg::{Matrix, norm2};
    use crate::models::{Activation, ModelSpec, Shape};
    use crate::numeric::Streams;

    fn unit(vector: &mut [f64]) {
        let length = norm2(vector);
        vector.iter_mut().for_each(|x| *x /= length);
    }

    /// Values, gradients and Hessians at random unit vectors, the Hessian by differences and power iteration.
    #[test]
    fn sampled_values_stay_below() {
        let mut stream = Streams::new(3).stream("points");
        let mut tried = 0;
        for spec in ModelSpec::examples() {
            let mut inputs = Matrix::zeros(5, 4);
            stream.fill_normal(&mut inputs.data);
            let longest = (0..5).map(|n| norm2(inputs.row(n))).fold(0.0, f64::max);
            let architecture = spec.architecture(&Shape::vector(4), 1).unwrap();
            let Some(bounds) = architecture.sphere_bounds(longest) else { continue };
            let mut model = cpu::bind(&spec, &inputs, 1, Compute::default()).unwrap();
            let mut theta = vec![0.0; model.layout().len()];
            tried += 1;
            for _ in 0..20 {
                stream.fill_normal(&mut theta);
                unit(&mut theta);
                let largest = model.scores(&theta).iter().fold(0.0f64, |most, x| most.max(x.abs()));
                assert!(largest <= bounds.value * (1.0 + 1e-12), "{spec:?}: {largest} {}", bounds.value);
                let rows = model.per_example_gradients(&theta, 0);
                let steepest = (0..5).map(|n| norm2(rows.row(n))).fold(0.0, f64::max);
                assert!(steepest <= bounds.gradient * (1.0 + 1e-12), "{spec:?}: {steepest} {}", bounds.gradient);
                if bounds.hessian.is_infinite() {
                    continue;
                }
                let mut direction = vec![0.0; theta.len()];
                stream.fill_normal(&mut direction);
                for _ in 0..6 {
                    unit(&mut direction);
                    let step = 1e-5;
                    let shifted = |sign: f64| -> Vec<f64> {
                        theta.iter().zip(&direction).map(|(x, v)| x + sign * step * v).collect()
                    };
                    let ahead = model.per_example_gradients(&shifted(1.0), 0);
                    let behind = model.per_example_gradients(&shifted(-1.0), 0);
                    let change = |n: usize| -> Vec<f64> {
                        ahead.row(n).iter().zip(behind.row(n)).map(|(a, b)| (a - b) / (2.0 * step)).collect()
                    };
                    let curved = (0..5).map(|n| norm2(&change(n))).fold(0.0, f64::max);
                    assert!(curved <= bounds.hessian * (1.0 + 1e-6) + 1e-6, "{spec:?}: {curved} {}", bounds.hessian);
                    direction = change(0);
                    if norm2(&direction) < 1e-9 {
                        break;
                    }
                }
            }
        }
        assert!(tried > 10, "only {tried} models have bounds");
    }

    /// One weight a layer and one input: the model is its monomial, and B₀ is attained.
    #[test]
    fn the_bound_of_values_is_attained() {
        let spec = ModelSpec::network(&[1], Activation::ReluPower { power: 2 });
        let bounds = spec.architecture(&Shape::vector(1), 1).unwrap().sphere_bounds(3.0).unwrap();
        let mut model = cpu::bind(&spec, Matrix::from_rows(&[&[3.0]]), 1, Compute::default()).unwrap();
        let best = model.scores(&[(2.0f64 / 3.0).sqrt(), (1.0f64 / 3.0).sqrt()])[0];
        assert!((best / bounds.value - 1.0).abs() < 1e-14);
        // ‖∇(9 r₁² r₂)‖² = 81 (4 s − 3 s²) for s = r₁² is at most 81 · 4/3
        assert!(bounds.gradient >= 9.0 * (4.0f64 / 3.0).sqrt() && bounds.gradient <= 9.0 * 2f64.sqrt() * (1.0 + 1e-14));
        assert!(
            bounds.hessian >= 9.0 * 4.0 / 3f64.sqrt() && bounds.hessian <= 9.0 * (1.0 + 5f64.sqrt()) * (1.0 + 1e-14)
        );
    }

    #[test]
    fn kinks_biases_and_classes() {
        let bounds = |spec: &ModelSpec, longest, outputs| {
            spec.architecture(&Shape::vector(4), outputs).unwrap().sphere_bounds(longest)
        };
        assert_eq!(bounds(&ModelSpec::relu(&[4]), 1.0, 1).unwrap().hessian, f64::INFINITY);
        assert!(ModelSpec::examples().iter().any(|spec| bounds(spec, 1.0, 1).is_none()));
        let [one, many] = [1, 3].map(|outputs| bounds(&ModelSpec::Linear, 2.0, outputs).unwrap());
        assert_eq!((one.value, one.gradient, one.hessian), (2.0, 2.0, 0.0));
        assert!((many.gradient - 8f64.sqrt()).abs() < 1e-15);
    }
}
