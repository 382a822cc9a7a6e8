//! A finished run goes on to a later stop, bit for bit as if it had had it from the beginning.

use crate::home::Home;
use crate::tools::{LINEAR, RECIPE, assert_same, contents, expect, recipe, run};

#[test]
fn a_later_stop_gives_the_files_of_a_run_that_had_it_from_the_beginning() {
    let home = Home::new("later");
    // flows, batches and momentum; ends between checkpoints, at one, before the first one, by another rule
    let cases = [
        ("{ steps = 90, log10_loss = -60 }", vec!["stop.steps=333"]),
        ("{ steps = 100, log10_loss = -60 }", vec!["stop.steps=105"]),
        ("{ steps = 7 }", vec!["stop.steps=15"]),
        ("{ steps = 2000, log10_loss = -1 }", vec!["stop.log10_loss=-6"]),
        (
            "{ steps = 300, log10_loss = -60, log10_time = 0.5, direction = 0.5 }",
            vec!["stop.log10_time=1.5", "stop.direction=0.1"],
        ),
        ("{ steps = 150, log10_loss = -60, direction = 1.0 }", vec!["stop.steps=200", "stop.direction=1e-9"]),
    ];
    for (number, (stop, later)) in cases.iter().enumerate() {
        let recipe =
            recipe(&home.path(&number.to_string()), "mine", &RECIPE.replace("{ steps = 90, log10_loss = -60 }", stop));
        let (out, whole) = (home.path(&format!("out{number}")), home.path(&format!("whole{number}")));
        run(&recipe, &whole, later);
        run(&recipe, &out, &[]);
        let before = contents(&out);
        let more = ["--quiet", "--no-report"];
        expect(0, &[&["resume", &out], &later[..], &more].concat());
        assert_ne!(before, contents(&out), "{stop}");
        assert_same(&whole, &out);
        // once more is nothing new
        expect(0, &[&["resume", &out], &later[..], &more].concat());
        expect(0, &["resume", &out, "--quiet", "--no-report"]);
        assert_same(&whole, &out);
        expect(0, &["verify", &out]);
    }
}

#[test]
fn killed_on_the_way_to_a_later_stop_it_still_comes_out_the_same() {
    let home = Home::new("later-killed");
    let recipe = recipe(&home.path(""), "mine", RECIPE);
    let (out, whole) = (home.path("out"), home.path("whole"));
    run(&recipe, &whole, &["stop.steps=400"]);
    run(&recipe, &out, &[]);
    let mut deaths = 0;
    for count in [1, 2, 3, 5, 7, 9, 12, 15, 20] {
        let mut command = crate::tools::program();
        command.args(["resume", &out, "stop.steps=400", "--quiet", "--no-report"]);
        let output = command.env("LIMITPOINT_ABORT_AT_RENAME", count.to_string()).output().unwrap();
        deaths += usize::from(!output.status.success());
    }
    assert!(deaths >= 3, "only {deaths} ends between write and rename");
    expect(0, &["resume", &out, "stop.steps=400", "--quiet", "--no-report"]);
    assert_same(&whole, &out);
}

#[test]
fn other_settings_and_sooner_stops_are_refused_and_nothing_is_touched() {
    let home = Home::new("sooner");
    let recipe = recipe(&home.path(""), "mine", LINEAR);
    let out = home.path("out");
    run(&recipe, &out, &[]);
    let before = contents(&out);
    for (setting, word) in [
        ("stop.steps=59", "no later stop"),
        ("stop.log10_loss=-100", "no stop.log10_loss"),
        ("seed=2", "only stop rules"),
        ("optimiser=sign", "only stop rules"),
        ("observe.histogram_bins=9", "only stop rules"),
        ("stop.steps=80,90", "sweep"),
        ("stop.stepps=80", "did you mean"),
    ] {
        let text = expect(2, &["resume", &out, setting]);
        assert!(text.contains(word), "{setting}: {text}");
    }
    // a sweep over a stop cannot move it
    let sweep = home.path("sweep");
    run(&recipe, &sweep, &["stop.steps=20,30"]);
    assert!(expect(2, &["resume", &sweep, "stop.steps=40"]).contains("sweep"));
    assert_eq!(before, contents(&out));
}

#[test]
fn a_certificate_of_the_earlier_end_is_not_taken_for_one_of_the_later() {
    let home = Home::new("later-certified");
    let recipe = recipe(&home.path(""), "mine", LINEAR);
    let out = home.path("out");
    run(&recipe, &out, &[]);
    expect(0, &["certify", &out, "--tolerance", "0.9"]);
    expect(0, &["resume", &out, "stop.steps=90", "--quiet"]);
    let page = std::fs::read_to_string(format!("{out}/report.html")).unwrap();
    assert!(page.contains("certify it again"), "the page shows a certificate of other weights as it is");
    assert!(expect(0, &["verify", &out]).contains("of other weights"));
    expect(0, &["certify", &out, "--tolerance", "0.9"]);
    assert!(!expect(0, &["verify", &out]).contains("of other weights"));
}
