use super::*;

/// q = ⟨w, (3, 4)⟩ at (0.6, 0.8): ‖h‖₂ = 5, τ = 0 in ℓ2; in ℓ∞ 1 − 5/(0.8·7).
fn example() -> TangentFile {
    let claim = |norm: &str, level, tau: f64, margin| {
        let sum = if level == Level::Pass { vec![3.0, 4.0] } else { Vec::new() };
        TangentClaim { norm: norm.to_owned(), level, tau, margin, weights: vec![1.0], sum }
    };
    TangentFile {
        blocks: vec![("w".to_owned(), 1, 2)],
        params: vec![0.6, 0.8],
        margins: vec![5.0],
        degree: 1.0,
        rows: Some(Matrix::from_rows(&[&[3.0, 4.0]])),
        gram: Some(Matrix::from_rows(&[&[25.0]])),
        margin_of_row: vec![0],
        claims: vec![
            claim("l2", Level::Rows, 0.0, 5.0),
            claim("l2", Level::Gram, 0.0, 5.0),
            claim("linf", Level::Pass, 1.0 - 5.0 / 5.6, 6.25),
        ],
        about: "one example".to_owned(),
        data_sha256: String::new(),
    }
}

#[test]
fn a_file_reads_back_and_holds() {
    let file = example();
    let bytes = file.to_bytes().unwrap();
    assert!(TangentFile::is_one(&bytes) && !TangentFile::is_one(b"{}"));
    let read = TangentFile::from_bytes(&bytes).unwrap();
    assert_eq!(read, file);
    assert_eq!(read.check().unwrap(), []);
}

#[test]
fn what_is_not_so_is_found() {
    let complaints = |change: fn(&mut TangentFile)| {
        let mut file = example();
        change(&mut file);
        let found = TangentFile::from_bytes(&file.to_bytes().unwrap()).unwrap().check().unwrap();
        found.iter().map(|one| one.what.clone()).collect::<Vec<_>>().join("; ")
    };
    assert!(complaints(|file| file.claims[2].tau = 0.0).contains("τ in linf"));
    assert!(complaints(|file| file.claims[0].margin = 5.1).contains("the margin in l2"));
    assert!(complaints(|file| file.params = vec![0.8, 0.6]).contains("Euler"));
    assert!(complaints(|file| file.claims[0].weights = vec![-1.0]).contains("multipliers"));
    assert!(complaints(|file| file.margins = vec![-5.0]).contains("smallest margin"));
    assert!(complaints(|file| file.claims[2].sum = vec![3.0, 3.0]).contains("Euler"));
}

#[test]
fn changed_bytes_are_refused() {
    let bytes = example().to_bytes().unwrap();
    for place in [bytes.len() - 3, bytes.len() - 40] {
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        let error = TangentFile::from_bytes(&changed).unwrap_err().to_string();
        assert!(error.contains("SHA-256"), "{error}");
    }
    let mut lacking = example();
    lacking.gram = None;
    assert!(TangentFile::from_bytes(&lacking.to_bytes().unwrap()).unwrap().check().is_err());
}
