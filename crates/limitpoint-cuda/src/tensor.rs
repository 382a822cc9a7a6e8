//! Products in 32 bits on the units that multiply small matrices (`tensor.cu`): tiles, pieces, and how they are started.

use cudarc::driver::DeviceRepr;
use limitpoint::models::Window;

use super::card::{Argument, Card, WORKSPACE};
use super::error::CardError;
use super::memory::Memory;
use super::plan::{Weights, places};
use super::products::{Operand, Sides};

/// The first generation of cards whose units take 32 bits.
pub(crate) const GENERATION: i32 = 80;
/// A way to make a product: its kernels, by the tiles.
type Way = [&'static str; 4];

const PLAIN: Way = ["plain_high", "plain_square", "plain_low", "plain_small"];
const SECOND: Way = ["second_high", "second_square", "second_low", "second_small"];
const FIRST: Way = ["first_high", "first_square", "first_low", "first_small"];
const CONVOLVE: Way = ["convolve_high", "convolve_square", "convolve_low", "convolve_small"];
const CONVOLVE_BACK: Way = ["convolve_back_high", "convolve_back_square", "convolve_back_low", "convolve_back_small"];
const KERNEL_GRADIENT: Way =
    ["kernel_gradient_high", "kernel_gradient_square", "kernel_gradient_low", "kernel_gradient_small"];

/// Every kernel of the source.
pub(crate) const KERNELS: [Way; 6] = [PLAIN, SECOND, FIRST, CONVOLVE, CONVOLVE_BACK, KERNEL_GRADIENT];

/// Tiles of one kind: their sides, threads of a block, and blocks that keep a large card at work. They are the same for every card,
/// because they decide the order of sums.
#[derive(Debug, PartialEq, Eq)]
struct Tiles {
    high: usize,
    wide: usize,
    threads: u32,
    blocks: usize,
}

/// In the order of the names of a way.
const TILES: [Tiles; 4] = [
    Tiles { high: 128, wide: 64, threads: 128, blocks: 264 },
    Tiles { high: 64, wide: 64, threads: 128, blocks: 264 },
    Tiles { high: 32, wide: 64, threads: 64, blocks: 396 },
    Tiles { high: 32, wide: 32, threads: 32, blocks: 528 },
];

/// Terms of a sum that a block takes at once.
const DEEP: usize = 16;
/// Terms of a piece, at least.
const SHORTEST: usize = 128;
/// Entries that a kernel may have.
const ENTRIES: usize = 31;
/// Its rows and columns, at most: `Places` of tiles.cu has eight bits for either.
const SIDE: usize = 8;

/// An entry of a kernel as the kernels read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Entry {
    /// Where it reads beside the place of its window.
    beside: i32,
    /// Channel · 32 + which of the window's entries; 31 is none.
    which: i32,
}

/// Where a product goes, as the kernels read it.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Target {
    at: u64,
    bias: u64,
    sides: [i32; 5],
}

// SAFETY: plain numbers, as `struct Result` of the kernels.
unsafe impl DeviceRepr for Target {}

/// How a product is cut: which tiles, blocks of the grid, terms of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    kind: usize,
    blocks: [usize; 3],
    chunk: usize,
}

impl Cut {
    /// By the sides alone, so that sums have the same order on every card.
    fn of(Sides { rows, cols, inner }: Sides) -> Self {
        let kind = match (rows, cols) {
            (..=32, ..=32) => 3,
            (..=32, _) => 2,
            (..=64, _) => 1,
            _ => 0,
        };
        let tiles = &TILES[kind];
        let (down, across) = (rows.div_ceil(tiles.high), cols.div_ceil(tiles.wide));
        let room = WORKSPACE / (4 * rows * cols).max(1);
        let wanted = if 2 * down * across >= tiles.blocks { 1 } else { tiles.blocks.div_ceil(down * across) };
        let pieces = wanted.min(inner / SHORTEST).min(room).max(1);
        let chunk = inner.div_ceil(pieces).next_multiple_of(DEEP).max(DEEP);
        Self { kind, blocks: [across, down, inner.div_ceil(chunk).max(1)], chunk }
    }
}

/// What a convolution reads through its windows: entries of its kernels on the way up, and on the way down where there is one.
pub(crate) struct Windows {
    up: Memory,
    back: Option<Memory>,
}

/// The entries of all kernels of a convolution, and of its transpose: channels behind, and where signals are.
fn entries(channels: usize, window: &Window, width: usize, sign: i32) -> Vec<Entry> {
    let [height, wide] = window.size;
    let of = |channel: usize, entry: usize| Entry {
        beside: sign * ((entry / wide) * width + entry % wide) as i32,
        which: (channel << 5 | entry) as i32,
    };
    let mut all: Vec<Entry> =
        (0..channels).flat_map(|channel| (0..height * wide).map(move |entry| of(channel, entry))).collect();
    // kernels read a tile ahead
    all.resize(all.len().next_multiple_of(DEEP) + DEEP, Entry { beside: 0, which: ENTRIES as i32 });
    all
}

/// Whether kernels of these sides are read through their entries.
fn small([height, wide]: [usize; 2]) -> bool {
    height * wide <= ENTRIES && height.max(wide) <= SIDE
}

impl Windows {
    /// The entries of a convolution; nothing where its kernels are too large.
    pub fn of(card: &Card, weights: &Weights, window: &Window) -> Result<Option<Self>, CardError> {
        if !card.tensor || !small(window.size) {
            return Ok(None);
        }
        let size = window.size[0] * window.size[1];
        let stored = |entries: Vec<Entry>| {
            let memory = Memory::zeros(&card.stream, size_of_val(&entries[..]))?;
            memory.write(0, &entries).map(|()| memory)
        };
        let up = stored(entries(weights.cols / size, window, window.before[1], 1))?;
        let back = (window.stride == 1).then(|| stored(entries(weights.rows, window, window.after[1], -1)));
        Ok(Some(Self { up, back: back.transpose()? }))
    }

    /// Whether the way down goes without columns.
    pub fn go_back(&self) -> bool {
        self.back.is_some()
    }
}

/// A convolution at work: its layer, its windows, `n` examples.
#[derive(Clone, Copy)]
pub(crate) struct Convolution<'a> {
    pub weights: &'a Weights,
    pub window: &'a Window,
    pub windows: &'a Windows,
    pub n: usize,
}

impl Card {
    /// A product by the units: c = a·b, or c + a·b.
    pub fn tensor_product(&self, sides: Sides, a: Operand, b: Operand, c: u64, add: bool) -> Result<(), CardError> {
        let way = match (a.transposed, b.transposed) {
            (false, false) => PLAIN,
            (false, true) => SECOND,
            (true, false) => FIRST,
            (true, true) => return Err(CardError::Kernels("a product of two transposes is none".into())),
        };
        let factors = [Argument::Place(a.at), int(a.stride)?, Argument::Place(b.at), int(b.stride)?];
        self.multiply(way, sides, factors.into(), (c, 0, add)).map(drop)
    }

    /// The convolution of images with kernels. Answers whether the biases were added.
    pub fn convolve(
        &self,
        layer: Convolution<'_>,
        kernels: u64,
        bias: u64,
        images: u64,
        to: u64,
    ) -> Result<bool, CardError> {
        let (rows, inner) = (layer.weights.rows, layer.weights.cols);
        let sides = Sides { rows, cols: layer.n * places(layer.window), inner };
        let factors = layer.factors(kernels, images, &layer.windows.up)?;
        self.multiply(CONVOLVE, sides, factors, (to, bias, false))
    }

    /// Signals of the images before a convolution, from those behind it. Answers whether they were made: not where there is a stride.
    pub fn convolve_back(
        &self,
        layer: Convolution<'_>,
        kernels: u64,
        signals: u64,
        to: u64,
    ) -> Result<bool, CardError> {
        let Convolution { weights, window, windows, n } = layer;
        let size = window.size[0] * window.size[1];
        let Some(back) = &windows.back else { return Ok(false) };
        let sides = Sides {
            rows: weights.cols / size,
            cols: n * window.before[0] * window.before[1],
            inner: weights.rows * size,
        };
        let factors = layer.factors(kernels, signals, back)?;
        self.multiply(CONVOLVE_BACK, sides, factors, (to, 0, false)).map(|_| true)
    }

    /// The gradient of the kernels of a convolution.
    pub fn kernel_gradient(
        &self,
        layer: Convolution<'_>,
        signals: u64,
        images: u64,
        to: u64,
        add: bool,
    ) -> Result<(), CardError> {
        let Weights { rows, cols, .. } = *layer.weights;
        let sides = Sides { rows, cols, inner: layer.n * places(layer.window) };
        let factors = layer.factors(signals, images, &layer.windows.up)?;
        self.multiply(KERNEL_GRADIENT, sides, factors, (to, 0, add)).map(drop)
    }

    /// Starts the blocks of a product, and of the sum of its pieces. Answers whether a bias was added: not to pieces.
    fn multiply(
        &self,
        way: Way,
        sides: Sides,
        mut factors: Vec<Argument>,
        (to, bias, add): (u64, u64, bool),
    ) -> Result<bool, CardError> {
        let cut = Cut::of(sides);
        let [across, down, pieces] = cut.blocks;
        let whole = pieces == 1;
        let (at, bias, now) = if whole { (to, bias, add) } else { (self.workspace(), 0, false) };
        let lengths = [sides.rows, sides.cols, sides.inner, cut.chunk, usize::from(now)];
        let mut numbers = [0; 5];
        for (number, length) in numbers.iter_mut().zip(lengths) {
            *number = CardError::length(length)?;
        }
        factors.push(Argument::Target(Target { at, bias, sides: numbers }));
        let [across, down] = [CardError::length(across)?, CardError::length(down)?];
        let blocks = (across as u32, down as u32, pieces as u32);
        self.launch_grid(way[cut.kind], blocks, TILES[cut.kind].threads, &factors)?;
        if !whole {
            self.add_up(to, at, sides.rows * sides.cols, pieces, add)?;
        }
        Ok(whole)
    }
}

impl Convolution<'_> {
    fn factors(&self, a: u64, b: u64, entries: &Memory) -> Result<Vec<Argument>, CardError> {
        Ok(vec![Argument::Place(a), Argument::Place(b), entries.into(), int(self.n)?, Argument::window(self.window)])
    }
}

fn int(length: usize) -> Result<Argument, CardError> {
    CardError::length(length).map(Argument::Int)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_read_through_entries_that_have_a_bit_for_each_of_their_rows_and_columns() {
        for size in [[1, 1], [5, 5], [5, 6], [3, 8], [8, 3]] {
            assert!(small(size), "{size:?}");
        }
        // as many entries as others that are small, but nine rows or columns
        for size in [[3, 9], [9, 3], [1, 9], [2, 15], [31, 1], [6, 6]] {
            assert!(!small(size), "{size:?}");
        }
    }

    #[test]
    fn products_are_cut_by_their_sides_alone() {
        let cut = |rows, cols, inner| Cut::of(Sides { rows, cols, inner });
        // many tiles: whole sums
        assert_eq!(cut(64, 19_600, 288), Cut { kind: 1, blocks: [307, 1, 1], chunk: 288 });
        // few tiles: pieces whose terms are a multiple of sixteen, and all of them
        for (rows, cols, inner) in [(64, 288, 19_600), (32, 25, 78_400), (100, 1024, 3136), (100, 10, 1024), (1, 1, 1)]
        {
            let Cut { kind, blocks: [across, down, pieces], chunk } = cut(rows, cols, inner);
            let tiles = &TILES[kind];
            assert!(chunk % DEEP == 0 && pieces * chunk >= inner && (pieces - 1) * chunk < inner.max(1), "{inner}");
            assert!(tiles.high * down >= rows && tiles.wide * across >= cols, "{rows} × {cols}");
        }
    }

    #[test]
    fn pieces_fit_in_the_scratch_of_products() {
        let sides = Sides { rows: 512, cols: 4608, inner: 1 << 20 };
        let [_, _, pieces] = Cut::of(sides).blocks;
        assert!(pieces * sides.rows * sides.cols * 4 <= WORKSPACE);
    }

    #[test]
    fn entries_say_where_a_window_reads() {
        let window = Window { before: [5, 7], after: [5, 7], size: [3, 2], stride: 1, zeros: [1, 0] };
        let up = entries(2, &window, 7, 1);
        assert_eq!(up.len(), 32);
        assert_eq!(up[3], Entry { beside: 7 + 1, which: 3 });
        assert_eq!(up[6 + 4], Entry { beside: 14, which: 32 + 4 });
        assert_eq!(up[12], Entry { beside: 0, which: 31 });
        assert_eq!(entries(1, &window, 7, -1)[5], Entry { beside: -15, which: 5 });
    }
}
