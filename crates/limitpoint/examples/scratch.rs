use limitpoint::linalg::Matrix;
use limitpoint::models::*;
use limitpoint::numeric::Streams;
fn main() {
    let mut st = Streams::new(0).stream("x");
    for (name, n, d, widths, threads) in [("W1", 250, 32, vec![1024], 2), ("W2", 100, 784, vec![128], 2), ("W3", 200, 2, vec![100], 1), ("W4", 200, 2, vec![100, 100], 2),("W1", 250, 32, vec![1024], 1), ("W2", 100, 784, vec![128], 1), ("W4", 200, 2, vec![100, 100], 1), ("big", 1000, 512, vec![1024, 1024], 1)] {
        let mut x = Matrix::zeros(n, d);
        st.fill_normal(&mut x.data);
        let mut m = ModelSpec::relu(&widths).build(&x, 1, Compute { threads, precision: Precision::F64 }).unwrap();
        let p = m.layout().len();
        let mut w: Vec<f64> = (0..p).map(|_| 0.1 * st.normal()).collect();
        let mut g = vec![0.0; p];
        let mut r = vec![0.0; n];
        let steps = if name == "W3" { 20000 } else if name=="big" {10} else { 1000 };
        let mut best = f64::MAX; let (mut tf, mut tb) = (0.0, 0.0);
        for _ in 0..5 {
            let t = std::time::Instant::now(); tf = 0.0; tb = 0.0;
            for _ in 0..steps {
                let t0 = std::time::Instant::now();
                let s = m.scores(&w);
                let mut sum = 0.0;
                for (a, b) in r.iter_mut().zip(s) { *a = (-b.abs()).exp(); sum += *a; }
                for a in r.iter_mut() { *a /= sum; }
                let t1 = std::time::Instant::now();
                m.pull_back(&w, &r, &mut g);
                for (a, b) in w.iter_mut().zip(&g) { *a -= 1e-6 * b; }
                tf += (t1 - t0).as_secs_f64(); tb += t1.elapsed().as_secs_f64();
            }
            best = best.min(t.elapsed().as_secs_f64());
        }
        let mut flops = 0.0; let sizes: Vec<usize> = std::iter::once(d).chain(widths.iter().copied()).chain([1]).collect();
        for l in 0..sizes.len()-1 { flops += 2.0 * (n*sizes[l]*sizes[l+1]) as f64 * if l == 0 {2.0} else {3.0}; }
        println!("{name} t{threads}: {:.0} steps/s, {:.1} GF/s  fwd {:.1} us bwd {:.1} us", steps as f64 / best, flops * steps as f64 / best / 1e9, tf/steps as f64*1e6, tb/steps as f64*1e6);
    }
    let n = 1200; let mut a = vec![0.0; n*n]; st.fill_normal(&mut a); let b = a.clone(); let mut c = vec![0.0; n*n];
    for _ in 0..3 { let t = std::time::Instant::now(); limitpoint::linalg::matmul(&mut c, &a, &b, n, n, n); println!("gemm 1t {:.1} GF/s", 2.0*(n as f64).powi(3)/t.elapsed().as_secs_f64()/1e9); }
}
