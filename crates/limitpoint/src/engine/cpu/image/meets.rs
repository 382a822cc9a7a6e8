//! Which entries of a kernel meet which pixels. Pixels that meet the same entries go together, so that zeros around an
//! image are not multiplied at all: at the border of large images a few of all products, in images of 2×2 pixels five
//! of nine.

use super::field::Frame;
use crate::models::Window;

/// Pixels that are made of the same entries of a kernel.
pub(super) struct Class {
    /// Such pixels of an image.
    pub pixels: usize,
    /// The first number of the first pixel that each of them meets, example by example.
    pub rows: Vec<u32>,
    /// Where each of them lies, likewise.
    pub places: Vec<u32>,
    /// How far from there the number is that is met at every step in depth.
    pub depth: Vec<u32>,
    /// Where the row of weights begins that it is multiplied by.
    pub weights: Vec<u32>,
}

/// Places along one side that meet the same entries.
struct Along {
    /// Entries, and how far the pixel that each meets is from the first.
    entries: Vec<(usize, usize)>,
    /// Places, and the first pixel that each meets.
    places: Vec<(usize, usize)>,
}

/// The places of one side in classes; `meets` says which pixel an entry meets there.
fn along(places: usize, entries: usize, meets: impl Fn(usize, usize) -> Option<usize>) -> Vec<Along> {
    let mut all: Vec<Along> = Vec::new();
    for place in 0..places {
        let mut met: Vec<(usize, usize)> = (0..entries).filter_map(|e| Some((e, meets(place, e)?))).collect();
        met.sort_by_key(|(_, pixel)| *pixel);
        let first = met.first().map_or(0, |(_, pixel)| *pixel);
        met.iter_mut().for_each(|(_, pixel)| *pixel -= first);
        match all.iter_mut().find(|along| along.entries == met) {
            Some(along) => along.places.push((place, first)),
            None => all.push(Along { entries: met, places: vec![(place, first)] }),
        }
    }
    all
}

/// The pixels of `made` that are made of those of `met` by rows of weights for (entry, channel of `met`), `width`
/// numbers each. `meets` says which pixel an entry meets: of a side, a place along it and the entry.
pub(super) fn classes(
    window: &Window,
    (met, made): (&Frame, &Frame),
    examples: usize,
    width: usize,
    meets: impl Fn(usize, usize, usize) -> Option<usize>,
) -> Vec<Class> {
    let [tall, wide] = [(0, made.height), (1, made.width)]
        .map(|(side, length)| along(length, window.size[side], |place, entry| meets(side, place, entry)));
    let mut classes = Vec::new();
    for (ys, xs) in tall.iter().flat_map(|ys| wide.iter().map(move |xs| (ys, xs))) {
        let (mut rows, mut places) = (Vec::new(), Vec::new());
        for n in 0..examples {
            for (y, first_y) in &ys.places {
                for (x, first_x) in &xs.places {
                    rows.push(met.at(n, *first_y as isize, *first_x as isize) as u32);
                    places.push(made.at(n, *y as isize, *x as isize) as u32);
                }
            }
        }
        let (mut depth, mut weights) = (Vec::new(), Vec::new());
        for (i, below) in &ys.entries {
            for (j, right) in &xs.entries {
                let (pixel, row) = (below * met.row() + right * met.stride, (i * window.size[1] + j) * met.channels);
                depth.extend((0..met.channels).map(|c| (pixel + c) as u32));
                weights.extend((0..met.channels).map(|c| ((row + c) * width) as u32));
            }
        }
        classes.push(Class { pixels: ys.places.len() * xs.places.len(), rows, places, depth, weights });
    }
    classes
}

/// Pixels of the output whose patches have these entries of the kernel inside the image.
pub(super) struct Meeting {
    /// Rows of the kernel's gradient, (entry, channel).
    pub rows: std::ops::Range<usize>,
    /// Such pixels of an image.
    pub pixels: usize,
    /// Where their patches begin, example by example,
    pub patches: Vec<u32>,
    /// and where their signals lie.
    pub places: Vec<u32>,
}

/// Channels from which on entries of a kernel are taken one by one.
const MANY: usize = 8;

/// Pixels that rows of the kernel's gradient are sums over: those inside for every entry, or all of them for all
/// entries where channels are few.
pub(super) fn meetings(window: &Window, input: &Frame, output: &Frame, examples: usize) -> Vec<Meeting> {
    let entries = window.size[0] * window.size[1];
    let corner = |side: usize, place: usize| (place * window.stride) as isize - window.zeros[side] as isize;
    let inside = |side: usize, place: usize, entry: usize| forward(window)(side, place, entry).is_some();
    let one_by_one = input.channels >= MANY;
    let groups = if one_by_one { entries } else { 1 };
    let meeting = |group: usize| {
        let [i, j] = [group / window.size[1], group % window.size[1]];
        let ys = (0..output.height).filter(|y| !one_by_one || inside(0, *y, i));
        let xs: Vec<usize> = (0..output.width).filter(|x| !one_by_one || inside(1, *x, j)).collect();
        let pixels: Vec<(usize, usize)> = ys.flat_map(|y| xs.iter().map(move |x| (y, *x))).collect();
        let (mut patches, mut places) = (Vec::new(), Vec::new());
        for n in 0..examples {
            patches.extend(pixels.iter().map(|(y, x)| input.at(n, corner(0, *y), corner(1, *x)) as u32));
            places.extend(pixels.iter().map(|(y, x)| output.at(n, *y as isize, *x as isize) as u32));
        }
        let each = entries / groups * input.channels;
        Meeting { rows: group * each..(group + 1) * each, pixels: pixels.len(), patches, places }
    };
    (0..groups).map(meeting).collect()
}

/// The input pixel that an entry of the kernel meets at a place of the output, along a side.
pub(super) fn forward(window: &Window) -> impl Fn(usize, usize, usize) -> Option<usize> {
    move |side, place, entry| {
        let pixel = (place * window.stride + entry).checked_sub(window.zeros[side])?;
        (pixel < window.before[side]).then_some(pixel)
    }
}

/// The output pixel at which an entry of the kernel meets a place of the input, along a side.
pub(super) fn backward(window: &Window) -> impl Fn(usize, usize, usize) -> Option<usize> {
    move |side, place, entry| {
        let reach = (place + window.zeros[side]).checked_sub(entry)?;
        let pixel = reach / window.stride;
        (reach % window.stride == 0 && pixel < window.after[side]).then_some(pixel)
    }
}
