//! Data cannot change under a run, in whatever kind of file they are.

use crate::home::Home;
use crate::tools::{LINEAR, csv, expect, files, points, run};

/// The files of every kind a recipe can load, with the settings that load them.
const KINDS: [(&str, &str); 9] = [
    ("csv", "data.file = { path = 'a.csv', task = 'binary' }"),
    ("tsv", "data.file = { path = 'a.tsv', task = 'binary', test-path = 'b.tsv' }"),
    ("npy", "data.file = { path = 'a.npy', task = 'binary' }"),
    ("npz", "data.file = { path = 'a.npz', task = 'binary' }"),
    ("svmlight", "data.file = { path = 'a.svm', task = 'binary' }"),
    ("idx", "data.file = { path = 'a.idx', targets-path = 'b.idx', task = 'binary', normalise = 'unit-norm' }"),
    ("cifar10", "data.file = { path = 'a.bin', task = 'binary' }"),
    ("safetensors", "data.file = { path = 'a.safetensors', task = 'binary' }"),
    ("cifar10 folder", "data.cifar10 = { dir = 'set', pair = [0, 1] }"),
];

/// Writes the files of a kind; another salt gives other examples.
fn write(kind: &str, folder: &str, salt: usize) {
    let points = points(salt);
    let file = |name: &str, bytes: &[u8]| std::fs::write(format!("{folder}/{name}"), bytes).unwrap();
    let bytes = |values: &mut dyn Iterator<Item = f64>| values.flat_map(f64::to_le_bytes).collect::<Vec<u8>>();
    let images = |count: usize| {
        let mut images = Vec::new();
        for (i, [x, _, label]) in points.iter().enumerate().take(count) {
            images.push(u8::from(*label > 0.0));
            images.extend((0..3072).map(|pixel| ((pixel * 7 + i * 13) % 200) as u8 + (20.0 * (x + 3.0)) as u8 / 4));
        }
        images
    };
    match kind {
        "csv" => file("a.csv", csv(salt).as_bytes()),
        "tsv" => {
            file("a.tsv", csv(0).replace(',', "\t").as_bytes());
            file("b.tsv", csv(salt).replace(',', "\t").as_bytes());
        }
        "npy" => file("a.npy", &npy(&[20, 3], &bytes(&mut points.iter().flatten().copied()))),
        "npz" => {
            // as our own program writes it
            let recipe = format!("{folder}/export.toml");
            file("export.csv", csv(salt).as_bytes());
            std::fs::write(&recipe, LINEAR.replace("data.csv", "export.csv")).unwrap();
            expect(0, &["data", "export", &recipe, "--out", &format!("{folder}/a.npz")]);
        }
        "svmlight" => {
            let line = |[x, y, label]: &[f64; 3]| format!("{label} 1:{x} 2:{y}\n");
            file("a.svm", points.iter().map(line).collect::<String>().as_bytes());
        }
        "idx" => {
            let head = |shape: &[u32]| {
                let mut head = vec![0, 0, 8, shape.len() as u8];
                shape.iter().for_each(|side| head.extend(side.to_be_bytes()));
                head
            };
            let pixel = |value: &f64| (30.0 * (value + 4.0)) as u8;
            let pixels: Vec<u8> = points.iter().flat_map(|[x, y, _]| [pixel(x), pixel(y)]).collect();
            let labels: Vec<u8> = points.iter().map(|point| u8::from(point[2] > 0.0)).collect();
            file("a.idx", &[head(&[20, 2]), pixels].concat());
            file("b.idx", &[head(&[20]), labels].concat());
        }
        "cifar10" => file("a.bin", &images(20)),
        "safetensors" => {
            let (x, y) = (
                bytes(&mut points.iter().flat_map(|point| [point[0], point[1]])),
                bytes(&mut points.iter().map(|point| point[2])),
            );
            let header = format!(
                r#"{{"X":{{"dtype":"F64","shape":[20,2],"data_offsets":[0,{}]}},"y":{{"dtype":"F64","shape":[20],"data_offsets":[{},{}]}}}}"#,
                x.len(),
                x.len(),
                x.len() + y.len()
            );
            file("a.safetensors", &[(header.len() as u64).to_le_bytes().to_vec(), header.into_bytes(), x, y].concat());
        }
        _ => {
            std::fs::create_dir_all(format!("{folder}/set")).unwrap();
            for name in ["data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"] {
                file(&format!("set/{name}.bin"), &images(4));
            }
        }
    }
}

fn npy(shape: &[usize], bytes: &[u8]) -> Vec<u8> {
    let sides: Vec<String> = shape.iter().map(ToString::to_string).collect();
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({}), }}", sides.join(", "));
    let header = format!("{header:<117}\n");
    [b"\x93NUMPY\x01\x00".to_vec(), (header.len() as u16).to_le_bytes().to_vec(), header.into_bytes(), bytes.to_vec()]
        .concat()
}

#[test]
fn changed_data_of_every_kind_are_refused_with_both_hashes_and_no_manifest_is_rewritten() {
    let home = Home::new("changed");
    for (number, (kind, settings)) in KINDS.iter().enumerate() {
        let folder = home.path(&format!("kind{number}"));
        std::fs::create_dir_all(&folder).unwrap();
        let recipe = format!("{folder}/mine.toml");
        let old = "data.file = { path = \"data.csv\", task = \"binary\" }";
        assert!(LINEAR.contains(old));
        let slow = "optimiser = \"gradient\"\nschedule = \"constant(rate=1e-9)\"";
        let text = LINEAR.replace(old, settings).replace("optimiser = \"gradient\"", slow);
        std::fs::write(&recipe, text.replace("steps = 60", "steps = 30")).unwrap();
        write(kind, &folder, 0);
        let out = format!("{folder}/out");
        run(&recipe, &out, &[]);
        let before: Vec<(_, Vec<u8>)> =
            files(&out).into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
        let manifest: serde_json::Value =
            serde_json::from_slice(&std::fs::read(format!("{out}/manifest.json")).unwrap()).unwrap();
        let sum = manifest["data"]["sha256"].as_str().unwrap();
        write(kind, &folder, 1);
        let run_folder = format!("{out}/gradient-seed1");
        for arguments in [
            &["resume", &out][..],
            &["resume", &out, "stop.steps=50"],
            &["run", &recipe, "--resume", "--out", &out],
            &["certify", &out],
            &["polish", &run_folder],
            &["prove", &run_folder],
            &["robustness", &run_folder],
            &["data", "export", &run_folder, "--out", &format!("{folder}/x.npz")],
            &["verify", &out],
        ] {
            let text = expect(3, arguments);
            let other = text.split("SHA-256 ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_default();
            assert!(text.contains(sum) && other.len() == 64 && other != sum, "{kind} {arguments:?}: {text}");
        }
        for (path, bytes) in &before {
            assert!(std::fs::read(path).unwrap() == *bytes, "{kind}: {} was rewritten", path.display());
        }
        // a file cut short is no better
        for path in files(&folder).into_iter().filter(|path| path.parent().is_some_and(|p| !p.starts_with(&out))) {
            if path.extension().is_some_and(|end| ["toml", "csv"].contains(&end.to_str().unwrap())) {
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        }
        let text = expect(3, &["resume", &out]);
        assert!(text.contains(sum), "{kind}: {text}");
        write(kind, &folder, 0);
        expect(0, &["resume", &out, "--quiet", "--no-report"]);
        expect(0, &["verify", &out]);
    }
}

#[test]
fn exported_data_are_those_of_the_run() {
    let home = Home::new("export");
    let sum_of = |folder: &str| {
        let manifest = std::fs::read(format!("{folder}/manifest.json")).unwrap();
        serde_json::from_slice::<serde_json::Value>(&manifest).unwrap()["data"]["sha256"].as_str().unwrap().to_owned()
    };
    let (one, two) = (home.path("one"), home.path("two"));
    run("linear", &one, &["stop.steps=5", "optimiser=gradient", "seed=4"]);
    let file = home.path("linear.npz");
    let text = expect(0, &["data", "export", "linear", "--seed", "4", "--out", &file]);
    assert!(text.contains(&sum_of(&one)), "{text}");
    let of_run = home.path("run.npz");
    expect(0, &["data", "export", &format!("{one}/gradient-seed4"), "--out", &of_run]);
    assert!(std::fs::read(&file).unwrap() == std::fs::read(&of_run).unwrap());
    // the archive as the data of a recipe of its own
    let recipe = home.path("again.toml");
    std::fs::write(&recipe, LINEAR.replace("data.csv", "linear.npz")).unwrap();
    run(&recipe, &two, &[]);
    assert_eq!(sum_of(&one), sum_of(&two));
    let output = expect(0, &["data", "export", "digits", "--out", &file, "--format", "json"]);
    let found: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert!(found["data"]["test_examples"].as_u64().is_some_and(|count| count > 0), "{found}");
    let bytes = std::fs::read(&file).unwrap();
    for name in ["X.npy", "y.npy", "X_test.npy", "y_test.npy"] {
        assert!(bytes.windows(name.len()).any(|part| part == name.as_bytes()), "{name}");
    }
    assert!(expect(2, &["data", "export", "digits", "data.count=10,20", "--out", &file]).contains("sweep"));
}
