//! Records of figures and tables that this repository keeps: pages and index say what they say, and they what the program says.

use std::path::Path;

use limitpoint_claims::{ExhibitRecord, MadeOf, exhibits, index};

#[test]
fn pages_index_and_program_say_what_the_records_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reproduction");
    // a crate that is built outside its repository has none
    if !folder.is_dir() {
        return;
    }
    let text =
        |name: String| std::fs::read_to_string(folder.join(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut records = Vec::new();
    for exhibit in exhibits().iter().filter(|exhibit| !matches!(exhibit.made_of, MadeOf::Illustration)) {
        let record: ExhibitRecord = serde_json::from_str(&text(format!("{}.json", exhibit.id))).unwrap();
        let anew = "say it anew: limitpoint reproduce --scale paper --read, with --out beside a copy of the records";
        assert!(record.shows == exhibit.shows && record.departures == exhibit.departures, "{}: {anew}", record.id);
        assert!(
            text(format!("{}.md", record.id)) == record.page(),
            "{}: the page is not that of the record; {anew}",
            record.id
        );
        for figure in record.figure_names() {
            assert!(folder.join(format!("{figure}.svg")).is_file(), "{figure} is not drawn");
        }
        records.push(record);
    }
    assert!(text("README.md".into()) == index(&records), "the index is not that of the records");
}
