use super::super::{KinkRow, MarginProblem};
use super::solve_margin_conic;
use crate::linalg::Matrix;
use crate::norms::NormSpec;
use crate::numeric::Streams;
use crate::params::ParamLayout;

fn gauss(n: usize, norm: &NormSpec, layout: &ParamLayout, seed: u64, shift: f64) -> MarginProblem {
    let d = layout.len();
    let mut stream = Streams::new(seed).stream("rows");
    let mut rows = Matrix::zeros(n, d);
    stream.fill_normal(&mut rows.data);
    let mut w = vec![0.0; d];
    stream.fill_normal(&mut w);
    for i in 0..n {
        crate::linalg::add_scaled(rows.row_mut(i), shift, &w);
    }
    MarginProblem::new(rows, norm.clone(), layout.clone()).unwrap()
}

fn show(p: &MarginProblem) -> String {
    let start = std::time::Instant::now();
    match solve_margin_conic(p) {
        Ok((v, m, it)) => {
            let b = p.bracket(&v, &m).unwrap();
            format!(" {:.2e} {:.1e} {it} {:.3}s;", b.upper, b.relative_gap(), start.elapsed().as_secs_f64())
        }
        Err(e) => format!(" {e}"),
    }
}

#[test]
fn zoo() {
    let layouts = [
        ParamLayout::new([("a", 4, 5)]).unwrap(),
        ParamLayout::new([("a", 3, 4), ("b", 1, 3), ("f", 2, 2), ("c", 4, 2)]).unwrap().freeze(&["f"]).unwrap(),
    ];
    for layout in &layouts {
        for norm in NormSpec::examples(layout) {
            println!("{}", norm.to_string().chars().take(40).collect::<String>());
            let base = gauss(15, &norm, layout, 1, 1.0);
            let mut line = String::new();
            line += "\n   one";
            line += &show(&gauss(1, &norm, layout, 1, 1.0));
            let mut p = base.clone();
            for i in 1..15 {
                let r = p.rows.row(0).to_vec();
                p.rows.row_mut(i).copy_from_slice(&r);
                if i % 2 == 1 {
                    p.rows.row_mut(i).iter_mut().for_each(|x| *x *= 1.0 + i as f64);
                }
            }
            line += "\n   parallel";
            line += &show(&p);
            let mut p = base.clone();
            for i in 7..15 {
                let r = p.rows.row(i - 7).to_vec();
                p.rows.row_mut(i).copy_from_slice(&r);
            }
            line += "\n   duplicates";
            line += &show(&p);
            line += "\n   many";
            line += &show(&gauss(300, &norm, layout, 1, 4.0));
            line += "\n   few";
            line += &show(&gauss(3, &norm, layout, 1, 0.0));
            line += "\n   nonseparable";
            line += &show(&gauss(300, &norm, layout, 1, 0.0));
            line += "\n   tiny";
            for s in [1e-6, 1e6] {
                let mut p = base.clone();
                p.rows.data.iter_mut().for_each(|x| *x *= s);
                line += &show(&p);
            }
            let mut p = base.clone();
            for i in 0..15 {
                let f = 10f64.powi(i as i32 % 7 - 3);
                p.rows.row_mut(i).iter_mut().for_each(|x| *x *= f);
            }
            line += "\n   mixed";
            line += &show(&p);
            let mut p = base.clone();
            let d = layout.len();
            for i in 0..15 {
                for j in 0..d {
                    if j % 3 == 0 {
                        p.rows[(i, j)] = 0.0;
                    }
                }
            }
            line += "\n   sparse";
            line += &show(&p);
            let mut p = base.clone();
            p.rows.data.iter_mut().for_each(|x| *x = x.round());
            line += "\n   integer";
            line += &show(&p);
            for m in [1e-3, 1e-6, 1e-9] {
                // two opposite points with a small common part
                let mut p = base.clone();
                let r0 = p.rows.row(0).to_vec();
                for i in 0..15 {
                    for j in 0..d {
                        let o = if i % 2 == 0 { 1.0 } else { -1.0 };
                        let x = p.rows[(i, j)];
                        p.rows[(i, j)] = if j < d / 2 { o * r0[j] * (1.0 + i as f64 / 7.0) } else { m * x };
                    }
                }
                line += "\n   small";
                line += &show(&p);
            }
            let mut p = base.clone();
            let mut st = Streams::new(5).stream("kinks");
            let mut kinks = Vec::new();
            for row in 0..15 {
                for k in 0..2 {
                    let mut c = vec![0.0; 4];
                    st.fill_normal(&mut c);
                    kinks.push(KinkRow { row, change: vec![((row + 5 * k) % (d - 4), c)] });
                }
            }
            p = p.with_kinks(kinks).unwrap();
            line += "\n   kinks";
            line += &show(&p);
            let cone = (0..6)
                .map(|k| {
                    let mut c = vec![0.0; 4];
                    st.fill_normal(&mut c);
                    vec![((3 * k) % (d - 4), c)]
                })
                .collect();
            p = p.with_cone(cone);
            line += "\n   cone";
            line += &show(&p);
            println!("{line}");
        }
    }
}

#[test]
fn timing() {
    let m = |r, c| ParamLayout::new([("a", r, c)]).unwrap();
    for (n, norm, layout, shift) in [
        (30, "lp:3", m(20, 1), 1.0),
        (30, "lp:4/3", m(20, 1), 1.0),
        (30, "group21", m(4, 5), 1.0),
        (30, "spectral", m(8, 6), 1.0),
        (30, "nuclear", m(8, 6), 1.0),
        (60, "spectral", m(20, 20), 1.0),
        (60, "nuclear", m(20, 20), 1.0),
        (100, "lp:3", m(500, 1), 1.0),
        (100, "lp:4/3", m(500, 1), 1.0),
        (700, "lp:3", m(50, 1), 3.0),
        (700, "lp:3", m(500, 1), 3.0),
        (200, "group21", m(50, 20), 1.0),
        (200, "group2inf", m(50, 20), 1.0),
        (100, "lp:3", m(5000, 1), 0.3),
        (300, "spectral", m(10, 10), 3.0),
    ] {
        let norm: NormSpec = norm.parse().unwrap();
        let p = gauss(n, &norm, &layout, 3, shift);
        println!("{n} {norm} {:?}x{:?} {}", layout.blocks()[0].rows, layout.blocks()[0].cols, show(&p));
    }
}

#[test]
fn least() {
    let layouts = [
        ParamLayout::new([("a", 4, 5)]).unwrap(),
        ParamLayout::new([("a", 3, 4), ("b", 1, 3), ("f", 2, 2), ("c", 4, 2)]).unwrap().freeze(&["f"]).unwrap(),
    ];
    for layout in &layouts {
        for norm in NormSpec::examples(layout) {
            println!("{}", norm.to_string().chars().take(40).collect::<String>());
            for n in [1, 5, 12, 19] {
                let p = gauss(n, &norm, layout, n as u64, 0.0);
                let mut y = vec![0.0; n];
                Streams::new(3).stream("y").fill_normal(&mut y);
                let mut x = p.rows.clone();
                if n == 12 {
                    let r = x.row(0).to_vec();
                    x.row_mut(1).iter_mut().zip(&r).for_each(|(a, b)| *a = -2.0 * b);
                    y[1] = -2.0 * y[0];
                }
                let (w, l, it) = super::minimum_norm_conic(&x, &y, &norm, layout).unwrap();
                let mut z = vec![0.0; layout.len()];
                l.iter().enumerate().for_each(|(i, l)| crate::linalg::add_scaled(&mut z, *l, x.row(i)));
                let mut nm = norm.build(layout).unwrap();
                let res = (0..n).map(|i| (crate::linalg::dot(x.row(i), &w) - y[i]).abs()).fold(0.0, f64::max);
                println!(
                    "    {n} {:.6e} gap {:.1e} dual norm-1 {:.1e} res {:.1e} it {it}",
                    nm.value(&w),
                    nm.value(&w) - crate::linalg::dot(&l, &y),
                    nm.dual(&z) - 1.0,
                    res
                );
            }
        }
    }
}

#[test]
fn psd() {
    for (r, n) in [(2, 1), (2, 3), (4, 10), (8, 30), (20, 60)] {
        let layout = ParamLayout::new([("w", r, r)]).unwrap();
        for (seed, shift) in [(1, 0.0), (2, 1.0), (3, 0.3)] {
            let p = gauss(n, &NormSpec::Nuclear, &layout, seed, shift).semidefinite().unwrap();
            println!("{r} {n} {}", show(&p));
        }
    }
}

#[test]
fn battery() {
    let layouts = [
        ParamLayout::vector(7),
        ParamLayout::new([("a", 3, 3)]).unwrap(),
        ParamLayout::new([("a", 4, 5)]).unwrap(),
        ParamLayout::new([("a", 3, 4), ("b", 1, 3), ("f", 2, 2), ("c", 4, 2)]).unwrap().freeze(&["f"]).unwrap(),
    ];
    for (l, layout) in layouts.iter().enumerate() {
        for norm in NormSpec::examples(layout) {
            let (mut worst, mut worst_zero, mut time, mut count) = (0.0_f64, 0.0_f64, 0.0_f64, 0);
            let mut note = String::new();
            for n in [1, 2, 5, 15, 40, 100] {
                for shift in [0.0, 0.3, 1.0, 3.0] {
                    for seed in 0..3 {
                        let p = gauss(n, &norm, layout, seed + 100, shift);
                        let st = std::time::Instant::now();
                        let (v, m, it) = solve_margin_conic(&p).unwrap();
                        time += st.elapsed().as_secs_f64();
                        count += 1;
                        let b = p.bracket(&v, &m).unwrap();
                        if b.upper > 1e-10 {
                            let g = b.relative_gap();
                            if g > worst {
                                worst = g;
                                note = format!("n {n} shift {shift} seed {seed} upper {:e} it {it}", b.upper);
                            }
                        } else {
                            worst_zero = worst_zero.max(b.upper);
                        }
                    }
                }
            }
            println!(
                "{l} {:40} worst {worst:.1e} zero {worst_zero:.1e} mean time {:.4} {note}",
                norm.to_string().chars().take(40).collect::<String>(),
                time / count as f64
            );
        }
    }
}

#[test]
fn larger() {
    let layouts = [
        ParamLayout::new([("a", 10, 8), ("b", 1, 10)]).unwrap(),
        ParamLayout::new([("a", 20, 5), ("b", 20, 20), ("c", 1, 20)]).unwrap(),
    ];
    for (l, layout) in layouts.iter().enumerate() {
        for norm in NormSpec::examples(layout) {
            let mut line = String::new();
            for (n, shift) in [(60, 0.3), (150, 1.0)] {
                let p = gauss(n, &norm, layout, 7, shift);
                line += &show(&p);
            }
            println!("{l} {:40} {line}", norm.to_string().chars().take(40).collect::<String>());
        }
    }
}

#[test]
fn debug() {
    let l0 = ParamLayout::new([("a", 10, 8), ("b", 1, 10)]).unwrap();
    let l1 = ParamLayout::new([("a", 20, 5), ("b", 20, 20), ("c", 1, 20)]).unwrap();
    let m = ParamLayout::new([("a", 10, 10)]).unwrap();
    println!("A");
    show(&gauss(150, &NormSpec::L1, &l0, 7, 1.0));
    println!("B");
    show(&gauss(300, &NormSpec::Spectral, &m, 3, 3.0));
    println!("C");
    show(&gauss(60, &NormSpec::Linf, &l1, 7, 0.3));
    println!("D");
    show(&gauss(150, &NormSpec::Nuclear, &l1, 7, 1.0));
    println!("E");
    show(&gauss(60, &"max(a=0.75*spectral,*=l1)".parse().unwrap(), &l1, 7, 0.3));
}
