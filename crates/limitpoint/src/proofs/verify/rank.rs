//! Whether a row of whole numbers depends on others, exactly.
//!
//! Elimination without fractions: every row is divided by its greatest common divisor, and numbers that would not fit end the search
//! without an answer.

/// Whether `row` is a rational combination of `rows`; `None` where the numbers grow too large to tell.
pub(super) fn depends(rows: &[Vec<i128>], row: &[i128]) -> Option<bool> {
    let mut echelon: Vec<(usize, Vec<i128>)> = Vec::new();
    for next in rows {
        let reduced = reduce(&echelon, next.clone())?;
        if let Some(pivot) = reduced.iter().position(|x| *x != 0) {
            echelon.push((pivot, reduced));
        }
    }
    Some(reduce(&echelon, row.to_vec())?.iter().all(|x| *x == 0))
}

fn reduce(echelon: &[(usize, Vec<i128>)], mut row: Vec<i128>) -> Option<Vec<i128>> {
    for (pivot, other) in echelon {
        let (factor, lead) = (row[*pivot], other[*pivot]);
        if factor == 0 {
            continue;
        }
        for (x, y) in row.iter_mut().zip(other) {
            *x = x.checked_mul(lead)?.checked_sub(y.checked_mul(factor)?)?;
        }
        let divisor = row.iter().fold(0, |a, b| gcd(a, b.abs()));
        if divisor > 1 {
            row.iter_mut().for_each(|x| *x /= divisor);
        }
    }
    Some(row)
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::depends;

    #[test]
    fn dependence_is_decided_exactly() {
        let rows = [vec![1, 1, 0, 0], vec![0, 0, 1, 1], vec![1, 0, 1, 0]];
        assert_eq!(depends(&rows, &[0, 1, 0, 1]), Some(true));
        assert_eq!(depends(&rows, &[0, 1, 1, 0]), Some(false));
        assert_eq!(depends(&[], &[0, 0]), Some(true));
        assert_eq!(depends(&[], &[0, 1]), Some(false));
        // numbers that do not fit are no answer
        let large = i128::MAX / 2;
        assert_eq!(depends(&[vec![large, 1]], &[3, large]), None);
    }
}
