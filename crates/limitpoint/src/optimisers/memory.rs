//! How fast optimisers forget earlier gradients.

use super::OptimiserSpec;

impl OptimiserSpec {
    /// The largest fall of ln ‖g‖ in a step that what it remembers of earlier gradients can follow.
    ///
    /// ```text
    /// mₜ = (1 − β) Σₖ βᵏ gₜ₋ₖ      follows gₜ ∝ e^{−δt} while β e^δ < 1:   δ < −ln β
    /// √vₜ, vₜ of squares            follows it while β e^{2δ} < 1:          δ < −½ ln β
    /// Σ g², never divided           follows nothing:                        0
    /// ```
    ///
    /// Beyond it the sums are ruled by their oldest terms: Adam divides by gradients of long ago, and its steps are no
    /// longer those of sign descent. Of an optimiser made of others the slowest part counts. Infinite for optimisers that remember no gradients. Heavy ball, Nesterov and mirror
    /// momentum remember displacements, which do not shrink with the loss, and dual acceleration averages ∇ln L.
    ///
    /// ```
    /// use limitpoint::optimisers::OptimiserSpec;
    /// let forgets = |text: &str| text.parse::<OptimiserSpec>().unwrap().forgets();
    /// assert!((forgets("adam") - 0.0005).abs() < 1e-6); // β₂ = 0.999
    /// assert_eq!((forgets("gradient"), forgets("ada-grad")), (f64::INFINITY, 0.0));
    /// ```
    pub fn forgets(&self) -> f64 {
        // ln 0 = −∞: without a memory nothing is held back
        let average = |beta: f64| -beta.ln();
        let root = |beta: f64| -0.5 * beta.ln();
        match self {
            Self::Adam { beta1, beta2, .. } | Self::AdamW { beta1, beta2, .. } => average(*beta1).min(root(*beta2)),
            Self::RmsProp { decay, .. } => root(*decay),
            Self::Signum { momentum } | Self::Muon { momentum, .. } => average(*momentum),
            Self::Lion { beta1, beta2, .. } if *beta1 > 0.0 => average(*beta2),
            Self::AdaGrad { .. } | Self::Shampoo { accumulate: true, .. } => 0.0,
            _ => self.parts().into_iter().map(Self::forgets).fold(f64::INFINITY, f64::min),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forgets(json: &str) -> f64 {
        serde_json::from_str::<OptimiserSpec>(json).unwrap().forgets()
    }

    #[test]
    fn the_slowest_memory_decides() {
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
        near(forgets(r#"{"adam": {"beta1": 0.9, "beta2": 0.99}}"#), -0.5 * 0.99_f64.ln());
        near(forgets(r#"{"adam": {"beta1": 0.9, "beta2": 0.5}}"#), -0.9_f64.ln());
        near(forgets(r#"{"rms-prop": {"decay": 0.9}}"#), -0.5 * 0.9_f64.ln());
        near(forgets(r#"{"lion": {}}"#), -0.99_f64.ln());
        near(forgets(r#"{"muon": {"momentum": 0.95}}"#), -0.95_f64.ln());
        let switch = r#"{"switch": {"first": "ada-boost", "second": {"signum": {}}, "when": {"steps": {"count": 3}}}}"#;
        near(forgets(switch), -0.9_f64.ln());
        let adam = r#"{"adam": {"beta1": 0.9, "beta2": 0.99}}"#;
        near(
            forgets(&format!(r#"{{"blocks": {{"hidden": {{"muon": {{}}}}, "rest": {adam}}}}}"#)),
            -0.5 * 0.99_f64.ln(),
        );
        near(forgets(&format!(r#"{{"adjusted": {{"of": {adam}, "decay": 0.1}}}}"#)), -0.5 * 0.99_f64.ln());
        for json in [r#"{"muon": {}}"#, r#"{"heavy-ball": {}}"#, r#"{"adam": {"beta1": 0.0, "beta2": 0.0}}"#] {
            assert_eq!(forgets(json), f64::INFINITY, "{json}");
        }
        for json in [r#"{"shampoo": {}}"#, r#"{"ada-grad": {}}"#] {
            assert_eq!(forgets(json), 0.0, "{json}");
        }
    }
}
