use super::*;
use crate::certificates::{Doubt, Measure, decide};
use crate::data::{Dataset, Gaussians, Targets};
use crate::linalg::Matrix;
use crate::norms::NormSpec;
use crate::potentials::PotentialSpec;

/// Examples (2, 1) and (−1, −2) with the labels + and −: rows (2, 1) and (1, 2), so that (1, 1) is best in every norm.
fn symmetric() -> Dataset {
    let inputs = Matrix::from_rows(&[&[2.0, 1.0], &[-1.0, -2.0]]);
    Dataset::new("two", inputs, Targets::Binary(vec![1.0, -1.0]), vec![2]).unwrap()
}

fn document(claim: RunClaim, gap: f64, model: ModelSpec, subject: &Subject) -> Certificate {
    let tolerances = Tolerances { gap, ..Tolerances::default() };
    let (evidence, verdict) = decide(&claim, &tolerances, subject).unwrap();
    Certificate {
        format: FORMAT.into(),
        version: VERSION,
        library: "0.0.0".into(),
        run: "hand-made".into(),
        statement: claim.statement(gap),
        claim,
        tolerances,
        verdict,
        data: DataReference {
            spec: DataSpec::Gaussians(Gaussians::default()),
            seed: u64::MAX,
            name: "two".into(),
            examples: 2,
            sha256: String::new(),
        },
        model,
        weights: WeightsReference { file: "w.safetensors".into(), entries: 2, sha256: String::new() },
        start: None,
        evidence,
        course: None,
    }
}

fn largest(norm: NormSpec) -> RunClaim {
    RunClaim::LargestMargin { measure: Measure::Norm(norm) }
}

/// A certificate of the weights (3, 3), which attain the largest margin.
fn certified(norm: NormSpec) -> (Dataset, Certificate) {
    let data = symmetric();
    let subject = Subject { data: &data, model: &ModelSpec::Linear, weights: &[3.0, 3.0], start: None };
    let certificate = document(largest(norm), 1e-9, ModelSpec::Linear, &subject);
    (data, certificate)
}

fn complaints(certificate: &Certificate, data: &Dataset, weights: &[f64]) -> Vec<String> {
    let subject = Subject { data, model: &certificate.model, weights, start: None };
    certificate.check(&subject).unwrap().iter().map(Disagreement::to_string).collect()
}

#[test]
fn a_document_reads_back_as_itself_and_checks_without_complaint() {
    for norm in [NormSpec::L1, NormSpec::L2, NormSpec::Linf] {
        let (data, certificate) = certified(norm);
        assert_eq!(certificate.verdict, Verdict::Certified, "{}", certificate.evidence.summary());
        let text = certificate.to_json().unwrap();
        assert!(text.contains("\"verdict\": \"certified\"") && text.contains("\"format\": \"limitpoint-certificate\""));
        let back = Certificate::from_json(&text).unwrap();
        assert_eq!(back, certificate);
        assert_eq!(complaints(&back, &data, &[3.0, 3.0]), Vec::<String>::new());
    }
}

#[test]
fn changed_weights_change_what_is_achieved() {
    let (data, certificate) = certified(NormSpec::L2);
    let found = complaints(&certificate, &data, &[3.0, 2.9]);
    assert!(
        found.iter().any(|c| c.starts_with("achieved")) && found.iter().any(|c| c.contains("the verdict")),
        "{found:?}"
    );
    // a change of scale alone changes no direction
    assert_eq!(complaints(&certificate, &data, &[1.5, 1.5]), Vec::<String>::new());
}

#[test]
fn changed_data_change_the_bounds() {
    let (mut data, certificate) = certified(NormSpec::L2);
    let changed = |first| Matrix::from_rows(&[&[first, 1.0], &[-1.0, -2.0]]).into();
    data.inputs = changed(2.001);
    let found = complaints(&certificate, &data, &[3.0, 3.0]);
    assert!(found.iter().any(|c| c.starts_with("optimum")), "{found:?}");
    data.inputs = changed(2.0);
    data.targets = Targets::Binary(vec![1.0, 1.0]);
    assert!(complaints(&certificate, &data, &[3.0, 3.0]).iter().any(|c| c.contains("the verdict")));
}

#[test]
fn changed_numbers_are_found_one_by_one() {
    let (data, certificate) = certified(NormSpec::L2);
    let Evidence::Margin(evidence) = &certificate.evidence else { panic!("a linear model") };
    let change = |changed: MarginEvidence, what: &str| {
        let forged = Certificate { evidence: Evidence::Margin(changed), ..certificate.clone() };
        let found = complaints(&forged, &data, &[3.0, 3.0]);
        assert!(found.iter().any(|c| c.starts_with(what)), "{what}: {found:?}");
    };
    let more = |x: Interval| Interval::new(x.lo * (1.0 + 1e-6), x.hi * (1.0 + 1e-6));
    change(MarginEvidence { achieved: more(evidence.achieved), ..evidence.clone() }, "achieved");
    change(MarginEvidence { optimum: more(evidence.optimum), ..evidence.clone() }, "optimum");
    // bounds that are moved a little are false on one side
    for share in [9e-10, -9e-10, 1e-12, -1e-12] {
        let moved = |x: Interval| Interval::new(x.lo * (1.0 + share), x.hi * (1.0 + share));
        change(MarginEvidence { achieved: moved(evidence.achieved), ..evidence.clone() }, "achieved");
        change(MarginEvidence { optimum: moved(evidence.optimum), ..evidence.clone() }, "optimum");
    }
    change(MarginEvidence { gap: Interval::new(0.0, 1e-4), ..evidence.clone() }, "gap");
    change(MarginEvidence { gap: Interval::WHOLE, ..evidence.clone() }, "gap");
    change(MarginEvidence { rows: vec![0.6, 0.4], ..evidence.clone() }, "optimum");
    // a worse direction proves less, and the weights are as good: nothing that is stated becomes false
    let weaker = MarginEvidence { direction: vec![1.0, 0.9], ..evidence.clone() };
    let forged = Certificate { evidence: Evidence::Margin(weaker), ..certificate.clone() };
    assert_eq!(complaints(&forged, &data, &[3.0, 3.0]), Vec::<String>::new());
}

#[test]
fn a_changed_verdict_tolerance_or_statement_is_found() {
    let (data, certificate) = certified(NormSpec::L2);
    let forged = Certificate { verdict: Verdict::Refuted, ..certificate.clone() };
    assert_eq!(complaints(&forged, &data, &[3.0, 3.0]), ["the verdict is stated as refuted, but is certified"]);
    let forged = Certificate { statement: "all is well".into(), ..certificate.clone() };
    assert!(complaints(&forged, &data, &[3.0, 3.0])[0].starts_with("the statement is stated as all is well"));
    let forged = Certificate { tolerances: Tolerances { gap: 1e-3, kinks: 0.0 }, ..certificate.clone() };
    assert!(complaints(&forged, &data, &[3.0, 3.0])[0].starts_with("the statement"));
    let other = Certificate { claim: largest(NormSpec::L1), ..certificate.clone() };
    assert!(complaints(&other, &data, &[3.0, 3.0]).iter().any(|c| c.starts_with("achieved")));
    let subject = Subject { data: &data, model: &ModelSpec::Linear, weights: &[3.0, 3.0], start: None };
    let nonsense = Certificate { tolerances: Tolerances { gap: -1.0, kinks: 0.0 }, ..certificate.clone() };
    assert!(nonsense.check(&subject).unwrap_err().to_string().contains("-1"));
    let negative = Evidence::NotSeparated { smallest_margin: -1.0 };
    let forged = Certificate { evidence: negative, ..certificate };
    assert_eq!(forged.check(&subject).unwrap_err(), DocumentError::OtherEvidence);
}

#[test]
fn the_wrong_norm_is_refuted_and_inseparable_data_leave_it_open() {
    // rows (1, 4) and (3, −1): (1, 0) is far from the best direction of ℓ∞, (1, 0.4)
    let inputs = Matrix::from_rows(&[&[1.0, 4.0], &[3.0, -1.0]]);
    let data = Dataset::new("slanted", inputs, Targets::Binary(vec![1.0, 1.0]), vec![2]).unwrap();
    let subject = Subject { data: &data, model: &ModelSpec::Linear, weights: &[1.0, 0.0], start: None };
    let certificate = document(largest(NormSpec::Linf), 1e-3, ModelSpec::Linear, &subject);
    assert_eq!(certificate.verdict, Verdict::Refuted, "{}", certificate.evidence.summary());
    assert_eq!(complaints(&certificate, &data, &[1.0, 0.0]), Vec::<String>::new());
    let inputs = Matrix::from_rows(&[&[1.0, 0.0], &[1.0, 0.0]]);
    let data = Dataset::new("same", inputs, Targets::Binary(vec![1.0, -1.0]), vec![2]).unwrap();
    let subject = Subject { data: &data, model: &ModelSpec::Linear, weights: &[1.0, 0.0], start: None };
    let certificate = document(largest(NormSpec::L2), 1e-3, ModelSpec::Linear, &subject);
    assert_eq!(certificate.verdict, Verdict::Inconclusive(Doubt::NotSeparable), "{}", certificate.evidence.summary());
    let back = Certificate::from_json(&certificate.to_json().unwrap()).unwrap();
    assert_eq!(complaints(&back, &data, &[1.0, 0.0]), Vec::<String>::new());
}

#[test]
fn networks_are_certified_refuted_or_not_yet_separated() {
    let inputs = Matrix::from_rows(&[&[3.0, 4.0]]);
    let data = Dataset::new("one", inputs, Targets::Binary(vec![1.0]), vec![2]).unwrap();
    let model = ModelSpec::relu(&[1]);
    let claim = || RunClaim::StationaryMargin { measure: Measure::Norm(NormSpec::L2) };
    // w along x with |a| = |w| is the KKT point; |a| = 2|w| has τ = 1/5; a < 0 misclassifies
    let cases: [(&[f64], Verdict); 3] = [
        (&[0.6, 0.8, 1.0], Verdict::Certified),
        (&[0.6, 0.8, 2.0], Verdict::Refuted),
        (&[0.6, 0.8, -1.0], Verdict::Inconclusive(Doubt::NotYetSeparated)),
    ];
    for (weights, verdict) in cases {
        let subject = Subject { data: &data, model: &model, weights, start: None };
        let certificate = document(claim(), 1e-6, model.clone(), &subject);
        assert_eq!(certificate.verdict, verdict, "{}", certificate.evidence.summary());
        let back = Certificate::from_json(&certificate.to_json().unwrap()).unwrap();
        assert_eq!(complaints(&back, &data, weights), Vec::<String>::new());
        // other weights under the same certificate
        let moved: Vec<f64> = weights.iter().enumerate().map(|(i, w)| w + 0.01 * i as f64).collect();
        assert!(!complaints(&back, &data, &moved).is_empty());
    }
    let subject = Subject { data: &data, model: &model, weights: &[0.6, 0.8, 1.0], start: None };
    let refused = decide(&largest(NormSpec::L2), &Tolerances::default(), &subject).unwrap_err();
    assert_eq!(refused, DocumentError::NotLinear { model: "network" });
}

#[test]
fn the_nearest_solution_is_certified_from_its_start() {
    // w₁ + 3w₂ = 5: from (0, 0) the nearest solution in ℓ2 is (1/2, 3/2), from (1, 0) it is (7/5, 6/5)
    let inputs = Matrix::from_rows(&[&[1.0, 3.0]]);
    let data = Dataset::new("one", inputs, Targets::Values(vec![5.0]), vec![2]).unwrap();
    let claim = || RunClaim::NearestSolution { potential: PotentialSpec::Euclidean };
    let at = |weights: &'static [f64], start: &'static [f64]| {
        let subject = Subject { data: &data, model: &ModelSpec::Linear, weights, start: Some(start) };
        let certificate = document(claim(), 1e-6, ModelSpec::Linear, &subject);
        let back = Certificate::from_json(&certificate.to_json().unwrap()).unwrap();
        assert_eq!(back.check(&subject).unwrap(), Vec::new());
        (back, subject)
    };
    assert_eq!(at(&[0.5, 1.5], &[0.0, 0.0]).0.verdict, Verdict::Certified);
    assert_eq!(at(&[0.5, 1.5], &[1.0, 0.0]).0.verdict, Verdict::Refuted);
    let (certificate, subject) = at(&[1.4, 1.2], &[1.0, 0.0]);
    assert_eq!(certificate.verdict, Verdict::Certified, "{}", certificate.evidence.summary());
    let moved = certificate.check(&Subject { start: Some(&[0.0, 0.0]), ..subject }).unwrap();
    assert!(moved.iter().any(|complaint| complaint.what == "dual_residual"), "{moved:?}");
    assert_eq!(certificate.check(&Subject { start: None, ..subject }).unwrap_err(), DocumentError::NoStart);
}

#[test]
fn summaries_are_short() {
    let texts = [0.0, 0.5, -0.012345, 1.5687336, 123.456, 3.2e-5, 1.0e9].map(|x| number(x, 3));
    assert_eq!(texts, ["0", "0.500", "-0.0123", "1.57", "123", "3.20e-5", "1.00e9"]);
    let (_, certificate) = certified(NormSpec::Linf);
    assert!(certificate.evidence.summary().starts_with("margin 3.00000 of 3.00000, gap "));
}

#[test]
fn other_documents_are_refused_by_name() {
    let (_, certificate) = certified(NormSpec::L2);
    let newer = Certificate { version: 9, ..certificate.clone() }.to_json().unwrap();
    assert_eq!(
        Certificate::from_json(&newer).unwrap_err(),
        DocumentError::Format { format: FORMAT.into(), version: 9 }
    );
    for text in ["", "{}", "[1]", &certificate.to_json().unwrap().replace("\"rows\"", "\"wors\"")] {
        assert!(matches!(Certificate::from_json(text), Err(DocumentError::Unreadable(_))), "{text}");
    }
    let potential = RunClaim::NearestSolution { potential: PotentialSpec::Euclidean };
    let data = symmetric();
    let subject = Subject { data: &data, model: &ModelSpec::Linear, weights: &[3.0, 3.0], start: None };
    let refused = decide(&potential, &Tolerances::default(), &subject).unwrap_err();
    assert_eq!(refused, DocumentError::NoTargets { data: "two".into() });
}
