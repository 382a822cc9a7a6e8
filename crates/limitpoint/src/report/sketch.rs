//! Figures as finished numbers; the report draws them.

use serde::{Deserialize, Serialize};

/// A figure before it is drawn.
///
/// ```
/// use limitpoint::report::Sketch;
/// let sketch = Sketch::new("line", "A line", "x", "y").curve("y = x", vec![[0.0, 0.0], [1.0, 1.0]]).dot("end", [1.0, 1.0]);
/// assert_eq!((sketch.curves.len(), sketch.dots.len()), (1, 1));
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Sketch {
    /// A name for its file.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Words at the axes.
    pub labels: [String; 2],
    /// Whether positions on the axes are logarithms of what is given.
    pub logarithmic: [bool; 2],
    /// The part that is shown, if not all of it: [[x from, x to], [y from, y to]].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<[[f64; 2]; 2]>,
    /// Lines.
    pub curves: Vec<Curve>,
    /// Lines with what lies below them down to another line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bands: Vec<Brackets>,
    /// Marked points.
    pub dots: Vec<Dot>,
    /// Many points of one kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clouds: Vec<Cloud>,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// For the legend.
    pub label: String,
    /// Points from one end to the other.
    pub points: Vec<[f64; 2]>,
    /// Whether it is a reference rather than something that ran: a set of solutions, a theory.
    pub reference: bool,
}

/// What lies between two lines; the upper one is drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Brackets {
    /// For the legend.
    pub label: String,
    /// Position, lower and upper value.
    pub points: Vec<[f64; 3]>,
}

/// One marked point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dot {
    /// For the legend.
    pub label: String,
    /// Where.
    pub at: [f64; 2],
}

/// Many points under one name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cloud {
    /// For the legend.
    pub label: String,
    /// Positions, and the size of each mark relative to the usual one.
    pub points: Vec<[f64; 3]>,
    /// Whether marks are stars rather than discs.
    pub stars: bool,
}

impl Sketch {
    /// An empty figure.
    pub fn new(name: &str, title: &str, x: &str, y: &str) -> Self {
        Self { name: name.into(), title: title.into(), labels: [x.into(), y.into()], ..Self::default() }
    }

    /// Logarithmic axes.
    pub fn logarithmic(mut self, x: bool, y: bool) -> Self {
        self.logarithmic = [x, y];
        self
    }

    /// Shows only this part.
    pub fn window(mut self, x: [f64; 2], y: [f64; 2]) -> Self {
        self.window = Some([x, y]);
        self
    }

    /// Adds a line.
    pub fn curve(mut self, label: impl Into<String>, points: Vec<[f64; 2]>) -> Self {
        self.curves.push(Curve { label: label.into(), points, reference: false });
        self
    }

    /// Adds a line that nothing ran along.
    pub fn reference(mut self, label: impl Into<String>, points: Vec<[f64; 2]>) -> Self {
        self.curves.push(Curve { label: label.into(), points, reference: true });
        self
    }

    /// Adds a line with what lies below it: positions, lower and upper values.
    pub fn band(mut self, label: impl Into<String>, points: Vec<[f64; 3]>) -> Self {
        self.bands.push(Brackets { label: label.into(), points });
        self
    }

    /// Adds a marked point.
    pub fn dot(mut self, label: impl Into<String>, at: [f64; 2]) -> Self {
        self.dots.push(Dot { label: label.into(), at });
        self
    }

    /// Adds many points of one kind: positions and relative sizes.
    pub fn cloud(mut self, label: impl Into<String>, points: Vec<[f64; 3]>, stars: bool) -> Self {
        self.clouds.push(Cloud { label: label.into(), points, stars });
        self
    }
}
