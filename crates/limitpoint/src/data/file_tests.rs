//! Files of every format through the front door.

use std::io::Write;

use super::*;
use crate::data::npy_writer::npy_of as npy;

/// A folder that disappears with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("limitpoint-file-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn the_same_examples_come_out_of_every_format() {
    let folder = Folder::new("same");
    let (x, y) = ([1.0, 2.0, 3.0, 0.0, 5.0, 6.0], [1.0, -1.0, 1.0]);
    let table = [1.0, 2.0, 1.0, 3.0, 0.0, -1.0, 5.0, 6.0, 1.0];
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in [("X.npy", npy(&[3, 2], &x)), ("y.npy", npy(&[3, 1], &y))] {
        archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(&bytes).unwrap();
    }
    let archive = archive.finish().unwrap().into_inner();
    let (x_bytes, y_bytes): (Vec<u8>, Vec<u8>) = (
        x.iter().flat_map(|x: &f64| x.to_le_bytes()).collect(),
        y.iter().flat_map(|y: &f64| y.to_le_bytes()).collect(),
    );
    let tensors = [
        ("X", safetensors::tensor::TensorView::new(safetensors::Dtype::F64, vec![3, 2], &x_bytes).unwrap()),
        ("y", safetensors::tensor::TensorView::new(safetensors::Dtype::F64, vec![3], &y_bytes).unwrap()),
    ];
    let tensors = safetensors::serialize(tensors, None).unwrap();
    let csv = b"a,b,y\n1,2,1\n3,0,-1\n5,6,1\n";
    let labels = folder.write("labels.npy", &npy(&[3], &y));
    let idx = [&[0, 0, 8, 2, 0, 0, 0, 3, 0, 0, 0, 2][..], &[1, 2, 3, 0, 5, 6]].concat();
    let idx_labels = folder.write("labels.idx", &[0, 0, 9, 1, 0, 0, 0, 3, 1, 255, 1]);
    let files = [
        File::at(folder.write("t.npy", &npy(&[3, 3], &table))),
        File { targets_path: Some(labels), ..File::at(folder.write("x.npy", &npy(&[3, 2], &x))) },
        File::at(folder.write("a.npz", &archive)),
        File::at(folder.write("s.safetensors", &tensors)),
        File::at(folder.write("t.csv", csv)),
        File::at(folder.write("t.csv.gz", &gzip(csv))),
        File::at(folder.write("t.tsv", b"1\t2\t1\n3\t0\t-1\n5\t6\t1\n")),
        File { target: Some(TargetColumn::Index(0)), ..File::at(folder.write("front.csv", b"1,1,2\n-1,3,0\n1,5,6\n")) },
        File::at(folder.write("s.svm", b"1 1:1 2:2\n-1 1:3\n1 1:5 2:6\n")),
        File { targets_path: Some(idx_labels), ..File::at(folder.write("x-idx2-ubyte.gz", &gzip(&idx))) },
        File { format: Some(FileFormat::Csv), ..File::at(folder.write("anything", csv)) },
    ];
    for file in files {
        let split = file.load(&Streams::new(0)).unwrap();
        assert_eq!(split.train.dense().unwrap().data, x, "{file:?}");
        assert_eq!(split.train.signs().unwrap(), y, "{file:?}");
        assert_eq!(split.train.input_shape, [2]);
        assert!(split.test.is_none());
    }
}

#[test]
fn test_files_follow_the_training_file() {
    let folder = Folder::new("test");
    let train = folder.write("train.svm", b"0 1:1 3:2\n1 2:3\n2 1:1\n");
    let test = folder.write("test.svm", b"3 1:5\n0 2:1\n");
    let file = File { test_path: Some(test.clone()), ..File::at(train.clone()) };
    let split = file.load(&Streams::new(0)).unwrap();
    let other = split.test.unwrap();
    assert_eq!(other.dense().unwrap().data, [5.0, 0.0, 0.0, 0.0, 1.0, 0.0], "three inputs, as in training");
    assert_eq!(other.targets, Targets::Classes { labels: vec![3, 0], count: 4 });
    assert!(matches!(split.train.targets, Targets::Classes { count: 4, .. }));
    let wide = folder.write("wide.svm", b"0 4:1\n");
    assert!(File { test_path: Some(wide), ..File::at(train.clone()) }.load(&Streams::new(0)).is_err());

    let counted = File { count: Some(2), ..File::at(train.clone()) }.load(&Streams::new(0)).unwrap();
    assert_eq!((counted.train.len(), counted.test.unwrap().len()), (2, 1));
    let both =
        File { count: Some(2), test_path: Some(test), ..File::at(train.clone()) }.load(&Streams::new(0)).unwrap();
    assert_eq!((both.train.len(), both.test.unwrap().len()), (2, 2));
    assert!(File { count: Some(4), ..File::at(train) }.load(&Streams::new(0)).is_err());
}

#[test]
fn refusals_name_the_file_and_the_remedy() {
    let folder = Folder::new("refuse");
    let bits = folder.write("bits.csv", b"1,0\n2,1\n");
    let message = |file: File| file.load(&Streams::new(0)).unwrap_err().to_string();
    assert!(message(File::at(&bits)).contains("task = \"binary\""));
    let binary = File { task: Task::Binary, ..File::at(&bits) }.load(&Streams::new(0)).unwrap();
    assert_eq!(binary.train.signs().unwrap(), [-1.0, 1.0]);
    assert!(message(File { delimiter: Some('é'), ..File::at(&bits) }).contains("delimiter"));
    assert!(message(File { delimiter: Some('\n'), ..File::at(&bits) }).contains("delimiter"));
    assert!(message(File::at("no/such.csv")).contains("no/such.csv"));
    assert!(message(File::at("mystery.xyz")).contains("set format"));
    assert!(message(File::at(&folder.0)).contains("set format"));
    assert!(message(File { format: Some(FileFormat::Csv), ..File::at(&folder.0) }).contains("cannot read"));
    assert!(message(File::at(folder.write("x.idx", &[0, 0, 8, 1, 0, 0, 0, 1, 7]))).contains("targets-path"));
    assert!(message(File::at(folder.write("cube.npy", &npy(&[2, 1, 2], &[1.0; 4])))).contains("targets-path"));
    assert!(message(File::at(folder.write("empty.npy", &npy(&[0, 2], &[])))).contains("0 examples"));
    let long = folder.write("long.npy", &npy(&[3], &[1.0, -1.0, 1.0]));
    let short = File { targets_path: Some(long), ..File::at(folder.write("two.npy", &npy(&[2, 2], &[1.0; 4]))) };
    assert!(message(short).contains("2 rows of inputs but 3 targets"));
    let nan = folder.write("nan.npy", &npy(&[2, 2], &[1.0, 1.0, f64::NAN, -1.0]));
    assert!(message(File::at(nan)).contains("row 1, column 0"));
}

#[test]
fn images_keep_their_shape() {
    let folder = Folder::new("images");
    let targets = folder.write("y.npy", &npy(&[2], &[0.5, 1.5]));
    let images = File { targets_path: Some(targets), ..File::at(folder.write("x.npy", &npy(&[2, 2, 2], &[1.0; 8]))) };
    let train = images.load(&Streams::new(0)).unwrap().train;
    assert_eq!((&train.input_shape[..], train.dimension()), (&[2, 2][..], 4));
    let mut batch = vec![7_u8; 3073];
    batch.extend([3; 3073]);
    let path = folder.write("data_batch_1.bin", &batch);
    let train = File::at(&path).load(&Streams::new(0)).unwrap().train;
    assert_eq!(train.targets, Targets::Classes { labels: vec![7, 3], count: 10 });
    assert_eq!((&train.input_shape[..], train.dense().unwrap()[(0, 5)]), (&[3, 32, 32][..], 7.0 / 255.0));
    let values = File { task: Task::Regression, ..File::at(path) }.load(&Streams::new(0)).unwrap().train;
    assert_eq!(values.targets, Targets::Values(vec![7.0, 3.0]));
}

#[test]
fn images_keep_their_sides_from_every_array_and_are_cut_on_request() {
    let folder = Folder::new("images");
    let archive = |shape: &[usize]| {
        let values: Vec<f64> = (0..shape.iter().product()).map(|k: usize| k as f64).collect();
        let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, bytes) in [("X.npy", npy(shape, &values)), ("y.npy", npy(&[2], &[1.0, -1.0]))] {
            archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
            archive.write_all(&bytes).unwrap();
        }
        folder.write("images.npz", &archive.finish().unwrap().into_inner())
    };
    let load = |file: File| file.load(&Streams::new(0)).map(|split| split.train);
    for (shape, sides) in [(vec![2, 4, 6], vec![4, 6]), (vec![2, 3, 4, 6], vec![3, 4, 6])] {
        assert_eq!(load(File::at(archive(&shape))).unwrap().input_shape, sides);
    }
    let last = File { channels: Channels::Last, ..File::at(archive(&[2, 4, 6, 3])) };
    let data = load(last.clone()).unwrap();
    assert_eq!((&data.input_shape[..], data.dense().unwrap()[(0, 1)]), (&[3, 4, 6][..], 3.0));
    let cut = load(File { crop: Some([4, 4]), resize: Some([2, 2]), ..last.clone() }).unwrap();
    assert_eq!(cut.input_shape, [3, 2, 2]);
    // the mean of the pixels (0, 1), (0, 2), (1, 1) and (1, 2), three numbers each
    assert_eq!(cut.dense().unwrap()[(0, 0)], 0.25 * (3.0 + 6.0 + 21.0 + 24.0));
    let text = load(File { crop: Some([5, 5]), ..last }).unwrap_err().to_string();
    assert!(text.contains("images.npz") && text.contains("4x6") && text.contains("5x5"), "{text}");
}
