//! One name for every norm, and the norm of that name is the same.

use proptest::prelude::*;

use super::*;

fn layouts() -> Vec<ParamLayout> {
    let blocks: [&[(&str, usize, usize)]; 7] = [
        &[("w", 5, 1)],
        &[("w", 1, 1)],
        &[("w", 2, 3)],
        &[("w", 2, 2), ("a", 1, 2)],
        &[("w", 2, 1), ("a", 3, 1)],
        &[("w", 1, 3), ("a", 1, 2)],
        &[("w", 1, 1), ("a", 1, 1)],
    ];
    let mut layouts: Vec<_> = blocks.iter().map(|blocks| ParamLayout::new(blocks.iter().copied()).unwrap()).collect();
    layouts.push(ParamLayout::new([("w", 2, 2), ("b", 2, 2), ("a", 1, 2)]).unwrap().freeze(&["b"]).unwrap());
    layouts
}

/// Every norm of the battery, and every one of them on all blocks of a composite, alone and mixed.
fn names(layout: &ParamLayout) -> Vec<NormSpec> {
    let texts = ["lp:1", "lp:2", "lp:inf", "lp:3", "l1", "l2", "linf", "l1-averaged", "frobenius", "spectral"];
    let inner: Vec<String> =
        texts.iter().chain(&["nuclear", "group21", "group2inf"]).map(|text| (*text).to_owned()).collect();
    let mut names = NormSpec::examples(layout);
    for text in &inner {
        for whole in [
            text.clone(),
            format!("max(*={text})"),
            format!("sum(*={text})"),
            format!("root(*={text})"),
            format!("root(w=3*l1,*=0.5*{text})"),
            format!("max(*=0.3*{text})"),
            format!("sum(w=3*l1,*=3*{text})"),
            format!("max(w=linf,*=2*{text})"),
        ] {
            names.push(whole.parse().unwrap());
        }
    }
    let size: usize = layout.trainable().map(Block::len).sum();
    let identity = |c: f64| (0..size).map(|i| (0..size).map(|j| if i == j { c } else { 0.0 }).collect()).collect();
    names.push(NormSpec::Quadratic { diagonal: vec![4.0; size] });
    names.push(NormSpec::QuadraticDense { matrix: identity(0.25) });
    names
}

/// ‖v‖ and ‖v‖_* from the parts.
fn measured(plain: &Canonical, v: &[f64]) -> (f64, f64) {
    let pairs = plain.parts.iter().map(|part| {
        let layout = ParamLayout::new([("w", part.rows, part.cols)]).unwrap();
        let mut norm = part.norm.spec().build(&layout).unwrap();
        let own = part.gather(v);
        (part.weight * norm.value(&own), norm.dual(&own) / part.weight)
    });
    pairs
        .reduce(|a, b| match plain.rule {
            Rule::Max => (a.0.max(b.0), a.1 + b.1),
            Rule::Sum => (a.0 + b.0, a.1.max(b.1)),
            Rule::Root => (a.0.hypot(b.0), a.1.hypot(b.1)),
        })
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn the_plain_name_has_the_value_and_the_dual_of_the_norm(v in proptest::collection::vec(-3.0..3.0f64, 10)) {
        for layout in layouts() {
            let v = &v[..layout.len()];
            for norm in names(&layout) {
                let Ok(mut built) = norm.build(&layout) else {
                    prop_assert!(norm.canonical(&layout).is_err());
                    continue;
                };
                let plain = norm.canonical(&layout).unwrap();
                let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * a.abs().max(b.abs());
                let (value, dual) = measured(&plain, v);
                prop_assert!(close(built.value(v), value), "{} {:?}", norm, plain);
                prop_assert!(close(built.dual(v), dual), "{} {:?}", norm, plain);
            }
        }
    }
}

#[test]
fn aliases_have_one_name() {
    let two = ParamLayout::new([("w", 2, 2), ("a", 2, 3)]).unwrap();
    let vector = ParamLayout::vector(4);
    for (layout, text, plain) in [
        (&vector, "max(*=lp:1)", "1*l1"),
        (&vector, "sum(*=linf)", "1*linf"),
        (&vector, "sum(*=0.5*lp:2)", "0.5*l2"),
        (&vector, "nuclear", "1*l2"),
        (&vector, "group21", "1*l1"),
        (&vector, "group2inf", "1*linf"),
        (&vector, "quadratic:1:1:1:1", "1*l2"),
        (&vector, "quadratic-dense:4:0:0:0/0:1:0:0/0:0:1:0/0:0:0:1", "1*quadratic:4:1:1:1"),
        (&two, "frobenius", "1*l2"),
        (&two, "sum(*=l1)", "1*l1"),
        (&two, "max(*=3*lp:inf)", "3*linf"),
        (&two, "max(w=spectral,a=spectral)", "Max 1*spectral 1*spectral"),
        (&two, "spectral", "Max 1*spectral 1*spectral"),
        (&two, "sum(*=nuclear)", "Sum 1*nuclear 1*nuclear"),
        (&two, "max(*=l1)", "Max 1*l1 1*l1"),
        (&two, "max(w=linf,a=2*linf)", "Max 1*linf 2*linf"),
        (&two, "sum(matrices=frobenius)", "Sum 1*l2 1*l2"),
    ] {
        let found = text.parse::<NormSpec>().unwrap().canonical(layout).unwrap();
        let parts: Vec<_> = found.parts.iter().map(|part| format!("{}*{}", part.weight, part.norm.spec())).collect();
        let rule = if parts.len() > 1 { format!("{:?} ", found.rule) } else { String::new() };
        assert_eq!(rule + &parts.join(" "), plain, "{text}");
        assert_eq!(found.parts.iter().map(NormPart::len).sum::<usize>(), layout.len(), "{text}");
    }
}

#[test]
fn what_cannot_be_built_has_no_name() {
    let layout = ParamLayout::vector(2);
    for text in [
        "lp:0.5",
        "lp:nan",
        "quadratic:1:2:3",
        "quadratic:1:-1",
        "max(b=l1)",
        "max(biases=l1)",
        "max(w=0*l1)",
        "max(*=max(*=l1))",
    ] {
        let Ok(norm) = text.parse::<NormSpec>() else { continue };
        assert!(norm.canonical(&layout).is_err() && norm.build(&layout).is_err(), "{text}");
    }
}
