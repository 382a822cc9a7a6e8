//! Where a network of images is not smooth: preactivations on the kink of their activation, and ties of a max-pool.
//!
//! Slopes at kinks, and convex combinations of tied pixels, are those of [`super::plain`]; the set of all of them holds
//! Clarke's subdifferential, since every gradient nearby takes one side of every kink and one of the tied pixels. It is
//! equal to it where the patches on kinks of one channel, and the differences of its tied patches, are linearly
//! independent for each example: then the kernel can be moved to all sides at once. Kernels are shared by the pixels of
//! an image, so that this is not always so: patches that are multiples of each other cross their kinks together.
//!
//! Kinks that no step can reach are left out: pixels whose patch is zero, ties of pixels that are all off, and ties of
//! equal patches, which no kernel tells apart.

use super::ImageNetwork;
use super::plain::{Body, Plain, Step, Trace, Weighed, areas, first_largest, patches, window_of};
use crate::engine::{Evaluator, Kink, KinkColumn, Kinks};
use crate::linalg::{Real, norm2};
use crate::models::{Pooling, Window};

/// For every pixel (or every unit), how far a step of length 1 in one unit's weights moves its number; a layer of images
/// has one for all channels.
type Reach = Vec<f64>;

impl<T: Real> ImageNetwork<T> {
    /// Example `n` of those in use, as the network rounds it.
    pub(super) fn image(&self, n: usize) -> Vec<f64> {
        self.examples.row(n).iter().map(|x| T::from_f64(*x).to_f64()).collect()
    }

    /// The kinks of one example within reach of a step of length `radius`.
    fn kinks_of(&self, trace: &Trace, radius: f64, example: usize) -> Vec<Kink> {
        let (mut kinks, mut reach) = (Vec::new(), Reach::new());
        for (l, step) in self.plain.steps.iter().enumerate() {
            let above = step.reach(&trace.values[l], &reach);
            let below = std::mem::replace(&mut reach, above);
            let mut push = |layer, unit, slopes| kinks.push(Kink { layer, unit, example, slopes });
            if let Body::Windows { pooling: Pooling::Max, window, .. } = &step.body {
                let tied = Ties::new(&self.plain.steps[..l], trace, window, &below, radius);
                tied.find(&trace.values[l], |unit, entry| push(step.stage + entry - 1, unit, (0.0, 1.0)));
            }
            let Some(slopes) = step.activation.kink() else { continue };
            for (unit, z) in trace.signals[l].iter().enumerate() {
                let within = radius * reach[unit % reach.len()];
                if z.abs() <= within && (within > 0.0 || radius == 0.0) {
                    push(step.last_stage(), unit, slopes);
                }
            }
        }
        kinks
    }

    /// Adds the gradient of ⟨cotangent, scores⟩ of example `n` at the slopes that are set.
    pub(super) fn plain_gradient(&self, params: &[f64], n: usize, cotangent: &[f64], gradient: &mut [f64]) {
        let trace = self.plain.forward(params, self.image(n));
        self.plain.backward(params, &trace, cotangent, &self.weighed[n], gradient);
    }
}

impl Step {
    /// How far a step of length 1 moves every number of the layer.
    fn reach(&self, input: &[f64], below: &[f64]) -> Reach {
        match &self.body {
            Body::Matrix { place, outputs, .. } => {
                vec![norm2(input).hypot(f64::from(u8::from(place.bias.is_some()))); *outputs]
            }
            Body::Kernels { place, window, channels: [before, _] } => {
                let [area, pixels, _] = areas(window);
                let mut squares = vec![f64::from(u8::from(place.bias.is_some())); pixels];
                for image in input.chunks_exact(area).take(*before) {
                    window.meetings(|to, _, from| squares[to] += image[from] * image[from]);
                }
                squares.into_iter().map(f64::sqrt).collect()
            }
            Body::Windows { window, .. } => {
                let mut reach = vec![0.0f64; areas(window)[1]];
                let of_pixel = |pixel: usize| below.get(pixel).copied().unwrap_or(0.0);
                window.meetings(|to, _, from| reach[to] = reach[to].max(of_pixel(from)));
                reach
            }
        }
    }
}

/// What decides whether pixels of a max-pool are tied.
struct Ties<'a> {
    /// The layers below the pool.
    steps: &'a [Step],
    trace: &'a Trace,
    window: &'a Window,
    reach: &'a [f64],
    radius: f64,
    /// What kernels right below the pool see at every pixel; nothing where there are none.
    patches: Vec<f64>,
    fan_in: usize,
}

impl<'a> Ties<'a> {
    fn new(steps: &'a [Step], trace: &'a Trace, window: &'a Window, reach: &'a [f64], radius: f64) -> Self {
        let (patches, fan_in) = match steps.last() {
            Some(Step { body: Body::Kernels { window, channels: [before, _], .. }, .. }) => {
                (patches(window, &trace.values[steps.len() - 1]), before * areas(window)[2])
            }
            _ => (Vec::new(), 0),
        };
        Self { steps, trace, window, reach, radius, patches, fan_in }
    }

    /// Calls `take` with the output number and the entry of the window of every pixel that is tied with the first.
    fn find(&self, input: &[f64], mut take: impl FnMut(usize, usize)) {
        let [area, pixels, _] = areas(self.window);
        let channels = input.len() / area;
        for channel in 0..channels {
            let image = &input[channel * area..][..area];
            for pixel in 0..pixels {
                let places = window_of(self.window, pixel);
                let first = first_largest(image, &places);
                let of_pixel = |place: usize| self.reach.get(place).copied().unwrap_or(0.0);
                for (entry, place) in places.iter().enumerate().filter(|(entry, _)| *entry != first) {
                    let within = self.radius * (of_pixel(*place) + of_pixel(places[first]));
                    let matters = || {
                        let alive = |at: usize| self.can_pass(channel * area + at, at);
                        (alive(*place) || alive(places[first])) && !self.same_patch(*place, places[first])
                    };
                    if image[places[first]] - image[*place] <= within && matters() {
                        take(channel * pixels + pixel, if entry == 0 { first } else { entry });
                    }
                }
            }
        }
    }

    /// Whether a number below the pool passes a signal on, at some slope of its activation.
    fn can_pass(&self, at: usize, pixel: usize) -> bool {
        let Some(step) = self.steps.last() else { return false };
        let z = self.trace.signals[self.steps.len() - 1][at];
        let reach = self.reach.get(pixel).copied().unwrap_or(0.0);
        let on_kink = || step.activation.kink().is_some() && z.abs() <= self.radius * reach;
        reach > 0.0 && (step.activation.slope(z) != 0.0 || on_kink())
    }

    /// Whether two pixels right above kernels see the same patch.
    fn same_patch(&self, a: usize, b: usize) -> bool {
        let patch = |pixel: usize| &self.patches[pixel * self.fan_in..][..self.fan_in];
        self.fan_in > 0 && patch(a) == patch(b)
    }
}

impl Plain {
    /// What changes in the gradient of one example when slopes change.
    fn change(&self, (params, trace): (&[f64], &Trace), cotangent: &[f64], [from, to]: [&[Weighed]; 2]) -> Vec<f64> {
        let (mut base, mut moved) = (vec![0.0; params.len()], vec![0.0; params.len()]);
        self.backward(params, trace, cotangent, from, &mut base);
        self.backward(params, trace, cotangent, to, &mut moved);
        crate::linalg::add_scaled(&mut moved, -1.0, &base);
        moved
    }
}

/// A kink's slope or share at e.
fn weighed((kink, e): &(Kink, f64)) -> Weighed {
    (kink.layer, kink.unit, (1.0 - e) * kink.slopes.0 + e * kink.slopes.1)
}

impl<T: Real> Kinks for ImageNetwork<T> {
    fn near(&mut self, params: &[f64], radius: f64) -> Vec<Kink> {
        self.score(params.into());
        let find = |n| self.kinks_of(&self.plain.forward(params, self.image(n)), radius, n);
        let mut kinks: Vec<Kink> = (0..self.bound.examples).flat_map(find).collect();
        kinks.sort_by_key(|kink| (kink.layer, kink.example, kink.unit));
        kinks
    }

    fn columns(&mut self, params: &[f64], cotangent: &[f64], kinks: &[Kink]) -> Vec<KinkColumn> {
        let outputs = self.bound.outputs;
        let column = |moved: &Kink| {
            let own = kinks.iter().filter(|kink| kink.example == moved.example);
            let left: Vec<Weighed> = own.clone().map(|kink| weighed(&(*kink, 0.0))).collect();
            let right: Vec<Weighed> = own.map(|kink| weighed(&(*kink, f64::from(u8::from(kink == moved))))).collect();
            let trace = self.plain.forward(params, self.image(moved.example));
            let own = &cotangent[moved.example * outputs..(moved.example + 1) * outputs];
            vec![(0, self.plain.change((params, &trace), own, [&left, &right]))]
        };
        kinks.iter().map(column).collect()
    }

    fn weigh(&mut self, kinks: &[(Kink, f64)]) {
        self.weighed.iter_mut().for_each(Vec::clear);
        self.weighed.resize(self.bound.examples, Vec::new());
        for one in kinks {
            let of_stage = |step: &&Step| (step.stage..=step.last_stage()).contains(&one.0.layer);
            let inside = self.plain.steps.iter().any(|step| of_stage(&step)) && one.0.example < self.bound.examples;
            assert!(inside, "a kink of another batch or network");
            self.weighed[one.0.example].push(weighed(one));
        }
    }

    fn nearest(&mut self, params: &[f64]) -> Option<f64> {
        self.plain.steps.iter().any(|step| step.activation.kink().is_some()).then(|| self.smallest_signal(params))
    }
}
