//! What a dataset refuses, and how it is taken apart.

use super::*;
use crate::linalg::{Matrix, SparseMatrix};
use crate::numeric::Streams;

fn ten() -> Dataset {
    let inputs = Matrix { rows: 10, cols: 2, data: (0..20).map(f64::from).collect() };
    let labels = vec![0, 1, 2, 0, 1, 0, 0, 0, 0, 2];
    Dataset::new("ten", inputs, Targets::Classes { labels, count: 3 }, vec![2]).unwrap()
}

#[test]
fn every_defect_is_named_with_its_place() {
    let two = || Matrix::from_rows(&[&[1.0, 2.0], &[3.0, 4.0]]);
    let signs = || Targets::Binary(vec![1.0, -1.0]);
    assert!(matches!(
        Dataset::new("d", Matrix::zeros(0, 2), Targets::Values(vec![]), vec![2]),
        Err(DataError::Empty { .. })
    ));
    let mut nan = two();
    nan[(1, 0)] = f64::NAN;
    assert!(matches!(
        Dataset::new("d", nan, signs(), vec![2]),
        Err(DataError::NotFinite { row: 1, column: 0, value, .. }) if value.is_nan()
    ));
    assert!(matches!(
        Dataset::new("d", two(), Targets::Binary(vec![1.0, 0.0]), vec![2]),
        Err(DataError::Target { row: 1, value: 0.0, .. })
    ));
    assert!(matches!(
        Dataset::new("d", two(), Targets::Classes { labels: vec![0, 3], count: 3 }, vec![2]),
        Err(DataError::Target { row: 1, value: 3.0, .. })
    ));
    assert!(matches!(
        Dataset::new("d", two(), Targets::Values(vec![f64::INFINITY, 0.0]), vec![2]),
        Err(DataError::Target { row: 0, .. })
    ));
    assert!(matches!(
        Dataset::new("d", two(), Targets::Binary(vec![1.0]), vec![2]),
        Err(DataError::Lengths { inputs: 2, targets: 1, .. })
    ));
    for shape in [vec![3], vec![], vec![usize::MAX, 2], vec![1, 1]] {
        assert!(matches!(Dataset::new("d", two(), signs(), shape), Err(DataError::InputShape { .. })));
    }
    assert!(Dataset::new("d", two(), signs(), vec![1, 2]).is_ok());
}

#[test]
fn a_split_is_a_partition() {
    let data = ten();
    let (train, test) = data.split(7, &mut Streams::new(1).stream("split")).unwrap();
    assert_eq!((train.len(), test.len()), (7, 3));
    let mut seen: Vec<f64> =
        (0..7).map(|i| train.dense().unwrap()[(i, 0)]).chain((0..3).map(|i| test.dense().unwrap()[(i, 0)])).collect();
    seen.sort_by(f64::total_cmp);
    assert_eq!(seen, (0..10).map(|i| f64::from(2 * i)).collect::<Vec<_>>());
    assert!(data.split(10, &mut Streams::new(1).stream("split")).is_err());
    assert!(data.split(0, &mut Streams::new(1).stream("split")).is_err());
}

#[test]
fn samples_are_distinct_reproducible_and_balanced_when_asked() {
    let data = ten();
    let sample = data.sample(6, &mut Streams::new(5).stream("data")).unwrap();
    assert_eq!(sample, data.sample(6, &mut Streams::new(5).stream("data")).unwrap());
    let mut firsts: Vec<f64> = (0..6).map(|i| sample.dense().unwrap()[(i, 0)]).collect();
    firsts.sort_by(f64::total_cmp);
    firsts.dedup();
    assert_eq!(firsts.len(), 6);
    let balanced = data.sample_balanced(6, &mut Streams::new(5).stream("data")).unwrap();
    let Targets::Classes { labels, .. } = &balanced.targets else { panic!("classes stay classes") };
    assert!((0..3).all(|class| labels.iter().filter(|&&label| label == class).count() == 2));
    assert!(matches!(
        data.sample_balanced(9, &mut Streams::new(5).stream("data")),
        Err(DataError::TooFew { asked: 3, available: 2, .. })
    ));
    assert!(matches!(data.sample(11, &mut Streams::new(5).stream("data")), Err(DataError::TooFew { .. })));
}

#[test]
fn a_pair_needs_two_classes_that_occur() {
    let data = ten();
    let pair = data.pair(2, 1).unwrap();
    assert_eq!(pair.signs().unwrap(), [-1.0, 1.0, -1.0, 1.0]);
    assert!(data.pair(1, 1).is_err());
    assert!(data.pair(1, 7).is_err());
    assert!(matches!(pair.pair(0, 1), Err(DataError::TargetKind { .. })));
    assert!(matches!(data.signs(), Err(DataError::TargetKind { .. })));
    assert!(matches!(data.select(&[10]), Err(DataError::Index { index: 10, len: 10, .. })));
    assert!(matches!(data.select(&[]), Err(DataError::Empty { .. })));
    assert_eq!(data.first(2).unwrap().len(), 2);
}

#[test]
fn sparse_inputs_are_checked_and_chosen_like_dense_ones() {
    let dense = ten();
    let sparse = {
        let inputs = SparseMatrix::from_dense(&dense.dense().unwrap()).unwrap();
        Dataset::new("ten", inputs, dense.targets.clone(), vec![2]).unwrap()
    };
    assert_eq!((sparse.len(), sparse.dimension(), sparse.inputs.stored()), (10, 2, 19));
    let stream = || Streams::new(3).stream("data");
    let pairs = [
        (sparse.pair(2, 1), dense.pair(2, 1)),
        (sparse.sample(4, &mut stream()), dense.sample(4, &mut stream())),
        (sparse.sample_balanced(6, &mut stream()), dense.sample_balanced(6, &mut stream())),
        (sparse.first(3), dense.first(3)),
        (sparse.select(&[9, 9, 0]), dense.select(&[9, 9, 0])),
        (sparse.split(7, &mut stream()).map(|(_, test)| test), dense.split(7, &mut stream()).map(|(_, test)| test)),
    ];
    for (sparse, dense) in pairs {
        let (sparse, dense) = (sparse.unwrap(), dense.unwrap());
        assert!(sparse.inputs.is_sparse() && !dense.inputs.is_sparse());
        assert_eq!((sparse.dense().unwrap(), &sparse.targets), (dense.dense().unwrap(), &dense.targets));
    }
    let entries = [(0, 1, 1.0), (1, 0, 2.0), (1, 4, f64::INFINITY)];
    let infinite = SparseMatrix::from_triplets(2, 5, &entries).unwrap();
    let signs = || Targets::Binary(vec![1.0, -1.0]);
    assert!(matches!(
        Dataset::new("d", infinite, signs(), vec![5]),
        Err(DataError::NotFinite { row: 1, column: 4, .. })
    ));
    let empty = || SparseMatrix::from_triplets(2, 5, &[]).unwrap();
    assert!(Dataset::new("d", empty(), signs(), vec![5]).is_ok(), "zeros are examples too");
    assert!(matches!(Dataset::new("d", empty(), signs(), vec![4]), Err(DataError::InputShape { .. })));
    assert!(matches!(
        Dataset::new("d", empty(), Targets::Binary(vec![1.0]), vec![5]),
        Err(DataError::Lengths { inputs: 2, targets: 1, .. })
    ));
}

#[test]
fn a_dense_copy_that_is_too_large_is_refused_by_name_shape_and_remedy() {
    let inputs = SparseMatrix::from_triplets(60, 1_000_000, &[(0, 1, 1.0)]).unwrap();
    let wide = Dataset::new("wide", inputs, Targets::Values(vec![0.0; 60]), vec![1_000_000]).unwrap();
    let error = wide.dense().unwrap_err().to_string();
    assert!(["wide", "60 x 1000000", "use fewer"].iter().all(|part| error.contains(part)), "{error}");
}
