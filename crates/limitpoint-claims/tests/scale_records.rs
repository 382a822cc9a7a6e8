//! Records of claims at a larger scale that this repository keeps: the pages say what the records say.

use std::path::Path;

use limitpoint_claims::{Scale, ScaleRecord, claims, summary};

#[test]
fn pages_and_index_say_what_the_records_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reproduction/full");
    // a crate that is built outside its repository has none
    let Ok(entries) = std::fs::read_dir(&folder) else { return };
    let index = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let records: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    assert!(records.len() >= 3, "{records:?}");
    for path in records {
        let record: ScaleRecord = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(record.scale, Scale::Full);
        assert_eq!(record.summary, summary(record.claims.iter().map(|claim| claim.status)), "{path:?}");
        let page = std::fs::read_to_string(path.with_extension("md")).unwrap();
        let title = page.lines().next().unwrap().trim_start_matches("# ").trim_end_matches(", full scale").to_owned();
        assert!(page == record.page(&title), "{path:?}: the page is not that of the record");
        assert!(index.contains(&record.summary), "{path:?}: the index does not have '{}'", record.summary);
        for claim in &record.claims {
            assert!(claims().iter().any(|known| known.id == claim.id), "{} is no claim", claim.id);
        }
    }
}
