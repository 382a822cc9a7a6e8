//! Certificates as a user meets them: made, checked, and found out when something was changed.

use std::path::Path;

mod home;
mod program;
use home::Home;
use program::{limitpoint, stderr, stdout};

/// Three points of the plane in a file of their own: rows (2, 1), (1, 3/2) and (3, 3). In ℓ2 the second alone supports
/// the largest margin, √(13/4), along itself; in ℓ∞ the best direction is (1, 1), with the margin 5/2.
const POINTS: &str = "a,b,label\n2,1,1\n1,1.5,1\n-3,-3,-1\n";

/// Runs an experiment on those points and returns its folder.
fn points(home: &Home, more: &[&str]) -> String {
    let (file, out) = (home.path("points.csv"), home.path("runs"));
    std::fs::write(&file, POINTS).expect("a file of points");
    let recipe = home.path("points.toml");
    let text = format!(
        "loss = \"exponential\"\nmodel = \"linear\"\ninitialiser = {{ constant = {{ value = 0.0 }} }}\n\
         schedule = \"flow-resolved(resolution=0.1)\"\n\
         data.file = {{ path = {file:?}, task = \"binary\" }}\n\
         [optimisers]\ngradient = \"gradient\"\nsign = \"sign\"\n\
         [observe]\nnorms = [\"l1\", \"l2\", \"linf\"]\n[stop]\nlog10_loss = -3000\nsteps = 20000\n"
    );
    std::fs::write(&recipe, text).expect("a recipe");
    let output = limitpoint(&[&["run", &recipe, "--quiet", "--out", &out], more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    out
}

fn certificate_of(out: &str, run: &str) -> String {
    Path::new(out).join(run).join("certificate.json").to_str().expect("a path in UTF-8").to_owned()
}

fn read(path: &str) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON")
}

fn write(path: &str, value: &serde_json::Value) {
    std::fs::write(path, serde_json::to_vec_pretty(value).expect("JSON")).expect("a file");
}

#[test]
fn runs_are_certified_checked_and_shown_in_the_report() {
    let home = Home::new("certified");
    let out = points(&home, &[]);
    let output = limitpoint(&["certify", &out]);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert!(stdout(&output).contains("gradient-seed0: certified"), "{}", stdout(&output));
    for (run, norm) in [("gradient-seed0", "l2"), ("sign-seed0", "linf")] {
        let path = certificate_of(&out, run);
        let certificate = read(&path);
        assert_eq!(certificate["format"], "limitpoint-certificate");
        assert_eq!(certificate["verdict"], "certified");
        assert_eq!(certificate["claim"]["measure"]["norm"], norm);
        assert!(certificate["evidence"]["margin"]["gap"][1].as_f64().is_some_and(|gap| gap <= 1e-2));
        let check = limitpoint(&["check", &path]);
        assert_eq!(check.status.code(), Some(0), "{}{}", stdout(&check), stderr(&check));
        assert!(stdout(&check).contains("every number agrees"));
    }
    let judge = read(&Path::new(&out).join("judge.json").display().to_string());
    let line = judge["lines"].as_array().and_then(|lines| lines.iter().find(|line| line["column"] == "margin.l2"));
    assert!((line.and_then(|line| line["value"].as_f64()).expect("a line for l2") - 3.25_f64.sqrt()).abs() < 1e-9);
    let page = std::fs::read_to_string(Path::new(&out).join("report.html")).expect("a report");
    assert!(page.contains("id=\"certificates\"") && page.contains("exact optimum 1.8028"), "verdicts and lines");
    // one run alone, as JSON
    let one = limitpoint(&["certify", &home.path("runs/sign-seed0"), "--format", "json"]);
    let answer: serde_json::Value = serde_json::from_str(&stdout(&one)).expect("JSON");
    assert_eq!((answer[0]["run"].as_str(), answer[0]["verdict"].as_str()), (Some("sign-seed0"), Some("certified")));
}

#[test]
fn the_wrong_norm_is_refuted_with_exit_code_one() {
    let home = Home::new("refuted");
    let out = points(&home, &["optimiser=gradient"]);
    let output = limitpoint(&["certify", &out, "--norm", "linf"]);
    assert_eq!(output.status.code(), Some(1), "{}{}", stdout(&output), stderr(&output));
    assert!(stdout(&output).contains("gradient-seed0: refuted"), "{}", stdout(&output));
    let path = certificate_of(&out, "gradient-seed0");
    let certificate = read(&path);
    assert_eq!(certificate["verdict"], "refuted");
    // the direction (2, 3) has the ℓ∞ margin 13/6 of 5/2
    let gap = certificate["evidence"]["margin"]["gap"][0].as_f64().expect("a number");
    assert!((gap - 2.0 / 15.0).abs() < 1e-2, "{gap}");
    // a certificate that holds and proves the claim false
    let check = limitpoint(&["check", &path, "--format", "json"]);
    let answer: serde_json::Value = serde_json::from_str(&stdout(&check)).expect("JSON");
    assert_eq!((check.status.code(), answer[0]["holds"].as_bool()), (Some(1), Some(true)), "{answer}");
}

#[test]
fn whatever_is_changed_is_found_out() {
    let home = Home::new("tampered");
    let out = points(&home, &["optimiser=gradient"]);
    assert_eq!(limitpoint(&["certify", &out]).status.code(), Some(0));
    let path = certificate_of(&out, "gradient-seed0");
    let original = read(&path);
    let finds = |what: &str| {
        let check = limitpoint(&["check", &path]);
        assert_eq!(check.status.code(), Some(1), "{what}: {}{}", stdout(&check), stderr(&check));
        assert!(stdout(&check).contains(what), "{what}: {}", stdout(&check));
    };
    let forge = |pointer: &str, value: serde_json::Value| {
        let mut forged = original.clone();
        *forged.pointer_mut(pointer).expect("a field of the certificate") = value;
        write(&path, &forged);
    };
    forge("/verdict", "refuted".into());
    finds("the verdict is stated as refuted, but is certified");
    forge("/evidence/margin/achieved", serde_json::json!([null, null]));
    finds("achieved is stated as");
    forge("/evidence/margin/achieved", serde_json::json!([1.9, 1.9]));
    finds("achieved is stated as");
    forge("/evidence/margin/rows/0", 7.0.into());
    finds("optimum is stated as");
    forge("/tolerances/gap", 0.5.into());
    finds("the statement is stated as");
    forge("/weights/sha256", "0".into());
    finds("the SHA-256 of the weights");
    forge("/data/examples", 4.into());
    finds("the number of examples");
    forge("/model", serde_json::json!({"network": {"widths": [1]}}));
    assert_eq!(limitpoint(&["check", &path]).status.code(), Some(2), "the weights do not fit another model");
    forge("/evidence/margin/achieved/0", 99.0.into());
    assert_eq!(limitpoint(&["check", &path]).status.code(), Some(2), "bounds out of order");
    write(&path, &original);
    assert_eq!(limitpoint(&["check", &path]).status.code(), Some(0));
    // the data
    std::fs::write(home.path("points.csv"), POINTS.replace("2,1,1", "2,1.25,1")).expect("a file of points");
    finds("the SHA-256 of the data");
    let again = limitpoint(&["certify", &out]);
    assert_eq!(again.status.code(), Some(3), "{}", stdout(&again));
    assert!(stderr(&again).contains("not those it was trained on"), "{}", stderr(&again));
    std::fs::write(home.path("points.csv"), POINTS).expect("a file of points");
    // the weights: one bit in the middle of the tensors
    let weights = Path::new(&out).join("gradient-seed0/checkpoints/final.safetensors");
    let mut bytes = std::fs::read(&weights).expect("weights");
    let header = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize + 8;
    let header_text = String::from_utf8_lossy(&bytes[8..header]).into_owned();
    let parsed: serde_json::Value = serde_json::from_str(&header_text).expect("a header");
    let begin = parsed["layer1.weight"]["data_offsets"][0].as_u64().expect("a tensor of weights") as usize;
    bytes[header + begin + 6] ^= 1;
    std::fs::write(&weights, bytes).expect("weights");
    finds("the SHA-256 of the weights");
}

#[test]
fn what_cannot_be_judged_says_why() {
    let home = Home::new("cannot");
    let nowhere = limitpoint(&["certify", &home.path("nowhere")]);
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(stderr(&nowhere).contains("manifest.json"), "{}", stderr(&nowhere));
    let file = home.path("other.json");
    std::fs::write(&file, "{\"format\": \"something\", \"version\": 1}").expect("a file");
    let other = limitpoint(&["check", &file]);
    assert_eq!(other.status.code(), Some(2));
    assert!(stderr(&other).contains("calls itself 'something'"), "{}", stderr(&other));
    let out = points(&home, &["stop.log10_loss=-5", "optimiser=ada-grad"]);
    let nothing = limitpoint(&["certify", &out]);
    assert_eq!(nothing.status.code(), Some(2), "{}", stdout(&nothing));
    assert!(stderr(&nothing).contains("--norm"), "{}", stderr(&nothing));
    let negative = limitpoint(&["certify", &out, "--norm", "l2", "--tolerance", "-1"]);
    assert_eq!(negative.status.code(), Some(2));
}

#[test]
fn networks_get_a_verdict_on_stationarity() {
    let home = Home::new("network");
    let out = home.path("network");
    let run = limitpoint(&[
        "run",
        "digits",
        "data.count=20",
        "model.width=4",
        "optimiser=gradient",
        "stop.log10_loss=-20",
        "--quiet",
        "--out",
        &out,
    ]);
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    let output = limitpoint(&["certify", &out, "--tolerance", "0.9"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert!(stdout(&output).contains("KKT point of the margin problem in the norm l2"), "{}", stdout(&output));
    let path = certificate_of(&out, "gradient-seed0");
    let tau = read(&path)["evidence"]["stationarity"]["tau"][1].as_f64().expect("a number");
    assert!(tau > 0.0 && tau < 0.9, "{tau}");
    assert_eq!(limitpoint(&["check", &path]).status.code(), Some(0));
    let strict = limitpoint(&["certify", &out, "--tolerance", "1e-9"]);
    assert_eq!(strict.status.code(), Some(1));
    assert!(stdout(&strict).contains("refuted"), "{}", stdout(&strict));
    assert_eq!(limitpoint(&["check", &path]).status.code(), Some(1));
}

#[test]
fn regression_is_certified_as_the_nearest_solution() {
    let home = Home::new("regression");
    let (recipe, out) = (home.path("regression.toml"), home.path("runs"));
    let text = "loss = \"squared\"\nmodel = \"linear\"\nschedule = \"constant(rate=0.02)\"\n\
                data.regression = { count = 5, dimension = 12 }\n\
                [optimisers]\ngradient = \"gradient\"\nsign = \"sign\"\n\
                [stop]\nlog10_loss = -25\nsteps = 3000\n";
    std::fs::write(&recipe, text).expect("a recipe");
    let run = limitpoint(&["run", &recipe, "--quiet", "--no-report", "--out", &out]);
    assert_ne!(run.status.code(), Some(2), "{}", stderr(&run));
    let output = limitpoint(&["certify", &out]);
    // the limit of sign descent in regression is not known
    assert_eq!(output.status.code(), Some(1), "{}{}", stdout(&output), stderr(&output));
    assert!(stderr(&output).contains("nothing can be claimed of sign-seed0"), "{}", stderr(&output));
    assert!(stdout(&output).contains("gradient-seed0: certified"), "{}", stdout(&output));
    let path = certificate_of(&out, "gradient-seed0");
    assert_eq!(read(&path)["claim"]["kind"], "nearest-solution");
    assert_eq!(limitpoint(&["check", &path]).status.code(), Some(0));
}

#[test]
fn a_trained_network_is_polished_and_the_polished_weights_are_certified() {
    let home = Home::new("polish");
    let out = home.path("runs");
    let settings = ["model.widths=[8]", "data.circle-teacher.count=20", "stop.steps=3000", "stop.log10_loss=-8"];
    let output = limitpoint(&[&["run", "plane", "--quiet", "--out", &out][..], &settings].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = limitpoint(&["polish", &out, "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let answer: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let run = &answer[0];
    let number = |name: &str| run[name].as_f64().expect(name);
    assert!(number("tau_after") <= 1e-9 && number("tau_before") > number("tau_after"), "{run}");
    assert!(number("margin_after") >= number("margin_before"), "{run}");
    let folder = Path::new(&out).join(run["run"].as_str().expect("a name"));
    let (folder, weights) = (folder.to_str().expect("UTF-8"), run["file"].as_str().expect("a file"));
    let output = limitpoint(&["certify", folder, "--weights", weights, "--tolerance", "1e-8"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    // the weights that training ended with are not there yet
    let output = limitpoint(&["certify", folder, "--tolerance", "1e-8"]);
    assert_eq!(output.status.code(), Some(1), "{}{}", stdout(&output), stderr(&output));
    let output = limitpoint(&["polish", folder, "--target", "2"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("target"), "{}", stderr(&output));
}

#[test]
fn a_direction_that_circles_for_ever_has_no_limit_to_certify() {
    let home = Home::new("circling");
    let out = home.path("runs");
    let output = limitpoint(&["run", "d-hat", "--quiet", "--out", &out]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let certified = stdout(&limitpoint(&["certify", &out]));
    assert!(certified.contains("gradient-seed0: inconclusive: no limit direction"), "{certified}");
    let path = certificate_of(&out, "gradient-seed0");
    let honest = read(&path);
    assert_eq!(
        (honest["verdict"].as_str(), honest["reason"].as_str()),
        (Some("inconclusive"), Some("no-limit-direction"))
    );
    // the point alone is a KKT point: every limit point is one
    assert!(honest["evidence"]["stationarity"]["tau"][1].as_f64().is_some_and(|tau| tau < 1e-3), "{honest}");
    let check = limitpoint(&["check", &path]);
    assert!(stdout(&check).contains("every number agrees"), "{}{}", stdout(&check), stderr(&check));
    // a path that is said to end is found out twice: by the measurements beside it and by the verdict
    let mut forged = honest.clone();
    forged["course"]["lengths"] = serde_json::json!([0.3, 0.2, 0.1]);
    write(&path, &forged);
    let check = limitpoint(&["check", &path]);
    let words = stdout(&check) + &stderr(&check);
    assert_ne!(check.status.code(), Some(0), "{words}");
    assert!(words.contains("the path is stated as") && words.contains("the verdict is stated as"), "{words}");
    // a rule that waits for the direction says so too
    let waiting = home.path("waiting");
    let output = limitpoint(&["run", "d-hat", "stop.direction=0.001", "--quiet", "--out", &waiting]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let manifest = read(&Path::new(&waiting).join("gradient-seed0/manifest.json").display().to_string());
    assert!(manifest["stop"].as_str().is_some_and(|stop| stop.starts_with("no limit direction")), "{manifest}");
}
