use super::equations::Equations;
use super::newton::Newton;
use crate::linalg::Matrix;
use crate::numeric::Streams;
use crate::params::ParamLayout;
use crate::potentials::*;

#[test]
fn proto() {
    let mut stream = Streams::new(1).stream("p");
    let mut specs: Vec<String> = PotentialSpec::examples().iter().map(|s| s.to_string()).filter(|s| s != "spectral-entropy").collect();
    specs.extend(["smoothed:6,0", "smoothed:10,0", "squared-lp:1.05", "squared-lp:1.02", "power-smoothed:1.05,0", "smoothed:3,1e-6", "hyperbolic:1e-20"].map(String::from));
    for spec in specs {
        for (n, d) in [(1, 2), (3, 8), (5, 12), (12, 12), (20, 60), (60, 200)] {
            let mut its = Vec::new();
            let mut worst = 0.0f64;
            for scale in [1e-6, 1.0, 1e6] { for _ in 0..3 {
                let mut x = Matrix::zeros(n, d);
                stream.fill_normal(&mut x.data);
                let mut w = vec![0.0; d];
                stream.fill_normal(&mut w);
                if spec == "entropy" { w.iter_mut().for_each(|x| *x = x.exp()); }
                w.iter_mut().for_each(|x| *x *= scale);
                let y: Vec<f64> = (0..n).map(|i| crate::linalg::dot(x.row(i), &w)).collect();
                let e = Equations::new(x, y).unwrap();
                let mut p = spec.parse::<PotentialSpec>().unwrap().build(&ParamLayout::vector(d)).unwrap();
                let z0 = vec![0.0; d];
                let ls = e.shortest();
                let nu = if p.check_domain(&ls).is_ok() {
                    let mut z = vec![0.0; d];
                    p.mirror_map(&ls, &mut z);
                    (0..e.rank()).map(|k| crate::linalg::dot(e.rows.row(k), &z)).collect()
                } else { vec![0.0; e.rank()] };
                let mut newton = Newton { potential: &mut *p, equations: &e, dual_start: &z0 };
                let start = newton.at(nu);
                let trace = std::env::var("TRACE").is_ok_and(|t| t == spec) && n == 20;
                if trace { println!("scale {scale}"); }
                let out = newton.solve(start, trace);
                its.push(out.iterations);
                worst = worst.max(out.error);
            } }
            println!("{spec:30} {n}x{d}: {its:?} {worst:.1e}");
        }
    }
}
#[test]
fn mixed() {
    let mut stream = Streams::new(1).stream("p");
    for spec in ["smoothed:3,0", "smoothed:4,0", "smoothed:6,0", "smoothed:10,0", "smoothed:20,0", "smoothed:20,0.1", "smoothed:50,0",
        "layers:w=hyperbolic:0.1|*=smoothed:3,1", "layers:w=entropy|*=smoothed:4,0", "layers:w=squared-lp:1.1|*=smoothed:6,0", "layers:w=hyperbolic:0.00000001|*=smoothed:10,0"] {
        for (n, d) in [(1, 2), (3, 8), (5, 12), (12, 12), (20, 60), (60, 200)] {
            let mut its = Vec::new();
            let mut worst = (0.0f64, 0.0f64);
            for scale in [1e-6, 1.0, 1e6] { for _ in 0..3 {
                let mut x = Matrix::zeros(n, d);
                stream.fill_normal(&mut x.data);
                let mut w = vec![0.0; d];
                stream.fill_normal(&mut w);
                if spec.contains("entropy") { w.iter_mut().for_each(|x| *x = x.exp()); }
                w.iter_mut().for_each(|x| *x *= scale);
                let y: Vec<f64> = (0..n).map(|i| crate::linalg::dot(x.row(i), &w)).collect();
                let e = Equations::new(x, y).unwrap();
                let layout = ParamLayout::new([("w", 1, d / 2), ("v", 1, d - d / 2)]).unwrap();
                let mut p = spec.parse::<PotentialSpec>().unwrap().build(&layout).unwrap();
                let exponent: f64 = { let a = &spec[spec.find("smoothed:").unwrap() + 9..]; a.split(',').next().unwrap().parse().unwrap() };
                let mut direct = vec![1e-12f64.powf(1.0 / (exponent - 2.0)); d];
                if spec.contains("layers") { direct[..d / 2].fill(0.0); }
                let z0 = vec![0.0; d];
                let ls = e.shortest();
                let nu = if p.check_domain(&ls).is_ok() {
                    let mut z = vec![0.0; d];
                    p.mirror_map(&ls, &mut z);
                    (0..e.rank()).map(|k| crate::linalg::dot(e.rows.row(k), &z)).collect()
                } else { vec![0.0; e.rank()] };
                let mut newton = Newton { potential: &mut *p, equations: &e, dual_start: &z0 };
                let trace = std::env::var("TRACE").is_ok_and(|t| t == spec) && n == 20;
                if trace { println!("scale {scale}"); }
                let out = newton.mixed(ls, nu, &direct, trace);
                its.push(out.0);
                worst = (worst.0.max(out.1), worst.1.max(out.2));
            } }
            println!("{spec:30} {n}x{d}: {its:?} {:.1e} {:.1e}", worst.0, worst.1);
        }
    }
}
