//! Measurements as TensorBoard reads them: an event file of scalars.
//!
//! ```text
//! file    = record …
//! record  = length: u64   crc(length): u32   event   crc(event): u32       little-endian; "TFRecord"
//! event   = 1: wall time (double)   2: step (varint)   3: "brain.Event:2" | 5: summary
//! summary = 1: { 1: tag   2: value (float) } …                             protocol buffers
//! crc(x)  = ((c >> 15) | (c << 17)) + 0xa282ead8   with c = CRC-32C of x
//! ```
//!
//! TensorBoard keeps scalars as 32-bit floats, about seven digits between 1.2·10⁻³⁸ and 3.4·10³⁸. So losses go there as
//! their logarithms only, where 10⁻¹⁰⁰⁰ is −1000; a number beyond that range, which would become 0 or ∞ or lose
//! digits, is left out and counted. Times are seconds since the start of the run, spread evenly over its steps: records keep no others.

use crate::experiments::RunRecord;

/// An event file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Numbers in it.
    pub scalars: usize,
    /// Numbers that a 32-bit float cannot hold; what is no number (NaN, ±∞) is neither there nor counted.
    pub left_out: usize,
}

/// Whether a column is exported: logarithms, margins and τ.
fn is_exported(column: &str) -> bool {
    ["log10_", "margin.", "tau."].iter().any(|prefix| column.starts_with(prefix))
}

/// The `log10_*`, `margin.*` and `tau.*` columns of a run as an event file; the same run gives the same bytes.
///
/// ```
/// use limitpoint::experiments::{Metrics, RunRecord};
/// let columns = ["step", "log10_loss", "margin.l2"].map(String::from).to_vec();
/// let metrics = Metrics { columns, values: vec![vec![0.0, 10.0], vec![0.5, -1000.0], vec![f64::NAN, 1e-50]] };
/// let exported = limitpoint::report::event_file(&RunRecord { metrics, ..Default::default() });
/// assert_eq!((exported.scalars, exported.left_out), (2, 1)); // 1e-50 would be 0
/// ```
pub fn event_file(run: &RunRecord) -> Exported {
    let mut out = Exported { bytes: Vec::new(), scalars: 0, left_out: 0 };
    let mut begin = Vec::new();
    double(&mut begin, 1, 0.0);
    text(&mut begin, 3, b"brain.Event:2");
    record(&mut out.bytes, &begin);
    let steps = run.metrics.column("step");
    let last = steps.last().copied().filter(|last| *last > 0.0).unwrap_or(1.0);
    for (row, &step) in steps.iter().enumerate() {
        let mut summary = Vec::new();
        for column in run.metrics.columns.iter().filter(|column| is_exported(column)) {
            let Some(value) = run.metrics.column(column).get(row).copied().filter(|value| value.is_finite()) else {
                continue;
            };
            let short = value as f32;
            if !short.is_normal() && value != 0.0 {
                out.left_out += 1;
                continue;
            }
            let mut entry = Vec::new();
            text(&mut entry, 1, column.as_bytes());
            entry.push(2 << 3 | 5);
            entry.extend(short.to_le_bytes());
            text(&mut summary, 1, &entry);
            out.scalars += 1;
        }
        if summary.is_empty() {
            continue;
        }
        let mut event = Vec::new();
        double(&mut event, 1, run.seconds * step / last);
        event.push(2 << 3);
        varint(&mut event, step as u64);
        text(&mut event, 5, &summary);
        record(&mut out.bytes, &event);
    }
    out
}

fn record(out: &mut Vec<u8>, data: &[u8]) {
    let length = (data.len() as u64).to_le_bytes();
    out.extend(length);
    out.extend(masked(&length).to_le_bytes());
    out.extend(data);
    out.extend(masked(data).to_le_bytes());
}

/// The checksum as TFRecord has it, so that a checksum of what holds checksums is no weaker.
fn masked(data: &[u8]) -> u32 {
    let crc = crc32c(data);
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli), bit by bit: event files are small.
fn crc32c(data: &[u8]) -> u32 {
    let mut crc = !0_u32;
    for byte in data {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A field of 64 bits.
fn double(out: &mut Vec<u8>, field: u8, value: f64) {
    out.push(field << 3 | 1);
    out.extend(value.to_le_bytes());
}

/// A field of bytes with their number before them.
fn text(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    out.push(field << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::Metrics;

    #[test]
    fn checksums_are_those_of_the_standard() {
        // RFC 3720, B.4, and the check value of the catalogue of CRCs
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    }

    #[test]
    fn no_loss_becomes_zero_and_no_number_changes_its_kind() {
        let columns = ["step", "log10_loss", "margin.l2", "norm.l2"].map(String::from).to_vec();
        let values = vec![
            vec![0.0, 300.0, 70_000.0],
            vec![0.25, -400.0, f64::NEG_INFINITY],
            vec![0.5, 1e-50, 1e-40],
            vec![1.0, 2.0, 3.0],
        ];
        let run = RunRecord { metrics: Metrics { columns, values }, seconds: 7.0, ..Default::default() };
        let Exported { bytes, scalars, left_out } = event_file(&run);
        // 1e-40 would lose digits, 1e-50 all of them; a loss of 0 has no logarithm, and was not measured as one
        assert_eq!((scalars, left_out), (3, 2));
        let mut rest = &bytes[..];
        let mut events = 0;
        while !rest.is_empty() {
            let length = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
            assert_eq!(u32::from_le_bytes(rest[8..12].try_into().unwrap()), masked(&rest[..8]));
            let event = &rest[12..12 + length];
            assert_eq!(u32::from_le_bytes(rest[12 + length..16 + length].try_into().unwrap()), masked(event));
            rest = &rest[16 + length..];
            events += 1;
        }
        // the last row has nothing to say
        assert_eq!(events, 3);
        let find = |what: &[u8]| bytes.windows(what.len()).any(|window| window == what);
        assert!(find(&(-400.0_f32).to_le_bytes()) && find(b"margin.l2") && !find(b"norm.l2"));
        assert_eq!(bytes, event_file(&run).bytes);
    }
}
