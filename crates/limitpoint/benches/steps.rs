//! Training steps of the four workloads, and of their parts.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use limitpoint::driver::Process;
use limitpoint::engine::Precision;
use limitpoint::experiments::WorkloadSpec;

fn steps(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("step");
    for spec in WorkloadSpec::all() {
        let workload = spec.build();
        for (threads, precision) in [(1, Precision::F64), (2, Precision::F64), (1, Precision::F32)] {
            let mut descent = workload.start(threads, precision).expect("the built-in workloads are valid");
            group.throughput(Throughput::Elements(spec.flops() as u64));
            let id =
                format!("{}/{}x{}/{:?}/{threads}t/{precision:?}", spec.name, spec.examples, spec.features, spec.widths);
            group.bench_function(id, |bencher| {
                bencher.iter(|| std::hint::black_box(descent.advance().expect("a step succeeds")));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, steps);
criterion_main!(benches);
