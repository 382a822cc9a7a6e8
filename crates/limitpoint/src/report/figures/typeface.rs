//! The typeface that PDF figures carry, so that they need none of the system: a part of STIX Two Math with Latin, Greek
//! and the signs of formulas.
//!
//! STIX Two is under the SIL Open Font License 1.1, which stands beside the file. Only what a PDF asks for is read: which
//! glyph shows a character (table `cmap`, format 4) and how wide it is (`hmtx`); see the OpenType specification 1.9.

/// The TrueType file.
pub(super) const FILE: &[u8] = include_bytes!("../assets/stix-two-math-subset.ttf");
/// Its name; the letters before the sign say that it is a part.
pub(super) const NAME: &str = "LIMPNT+STIXTwoMath";
/// Ascent, descent and height of capitals, in thousandths of the size.
pub(super) const HEIGHTS: [i32; 3] = [762, -238, 657];
/// Left, lower, right and upper end of all glyphs laid over each other, in the same unit.
pub(super) const BOX: [i32; 4] = [-978, -1641, 3072, 2627];

/// Two bytes of the file, or nothing beyond its end.
fn short(at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*FILE.get(at)?, *FILE.get(at + 1)?]))
}

/// Where a table begins.
fn table(tag: &[u8; 4]) -> Option<usize> {
    let count = usize::from(short(4)?);
    let entry = (0..count).map(|place| 12 + 16 * place).find(|at| FILE.get(*at..at + 4) == Some(tag))?;
    Some((usize::from(short(entry + 8)?) << 16) | usize::from(short(entry + 10)?))
}

/// The glyph of a character; 0, an empty box, for one that is not in the typeface.
pub(super) fn glyph(letter: char) -> u16 {
    find(letter).unwrap_or(0)
}

fn find(letter: char) -> Option<u16> {
    let code = u16::try_from(u32::from(letter)).ok()?;
    let map = table(b"cmap")?;
    let tables = usize::from(short(map + 2)?);
    let offset = |place: usize| {
        Some((usize::from(short(map + 8 + 8 * place)?) << 16) | usize::from(short(map + 10 + 8 * place)?))
    };
    let sub = (0..tables).filter_map(offset).map(|offset| map + offset).find(|at| short(*at) == Some(4))?;
    let double = usize::from(short(sub + 6)?);
    let (ends, starts) = (sub + 14, sub + 16 + double);
    let (deltas, ranges) = (starts + double, starts + 2 * double);
    let place = (0..double).step_by(2).find(|place| short(ends + place).is_some_and(|end| end >= code))?;
    let start = short(starts + place)?;
    if start > code {
        return None;
    }
    let (delta, range) = (short(deltas + place)?, short(ranges + place)?);
    if range == 0 {
        return Some(code.wrapping_add(delta));
    }
    match short(ranges + place + usize::from(range) + 2 * usize::from(code - start))? {
        0 => None,
        glyph => Some(glyph.wrapping_add(delta)),
    }
}

/// The width of a glyph in thousandths of the size of the type.
pub(super) fn width(glyph: u16) -> u16 {
    let of = || {
        let last = short(table(b"hhea")? + 34)?.checked_sub(1)?;
        short(table(b"hmtx")? + 4 * usize::from(glyph.min(last)))
    };
    of().unwrap_or(500)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glyphs_and_widths_are_those_of_the_file() {
        // as fontTools reads them
        let expected = [('A', 718), ('i', 285), ('γ', 466), ('ℓ', 529), ('∞', 953), ('−', 720), ('‖', 427), ('₁', 333)];
        assert_eq!(expected.map(|(letter, _)| width(glyph(letter))), expected.map(|(_, width)| width));
        for letter in "γℓ∞σ₁₂·−×‖τθλεΔ≤≥→∇√∂∈ℝ…–’|ϕφαβμηρψ∥±≈≠Σ∑äéößñ~^\\{}".chars()
        {
            assert_ne!(glyph(letter), 0, "{letter}");
        }
        assert_eq!((glyph('漢'), glyph('\u{1f600}')), (0, 0));
    }
}
