//! What people read: an experiment as one page, and as figures for papers.
//!
//! Nothing here computes: every number is finished in the records of [`crate::experiments`], [`mod@crate::fingerprint`]
//! and [`crate::potentials`], and a report only arranges them.
//!
//! | file | holds |
//! |---|---|
//! | `html.rs` | the page, put together from its parts and the assets |
//! | `picture.rs` | the picture it begins with: optimisers × norms |
//! | `tables.rs` | findings and tables |
//! | `layers.rs` | norms of the layers of networks of images |
//! | `page_data.rs` | what the page's script draws, as JSON |
//! | `sweep_data.rs` | the same of what a sweep varies |
//! | `budget.rs` | how much of it fits on a page |
//! | `sheet.rs` | what the pages without a script share |
//! | `sketch.rs` | figures as finished numbers |
//! | `robust_accuracy.rs` | the band between certified and attacked robustness |
//! | `fingerprints.rs` | fingerprints of optimisers on one page |
//! | `horizons.rs` | what a potential tends to, on one page |
//! | `robustness.rs` | how far the nearest mistakes of trained models are, on one page |
//! | `figures/` | figures for papers: SVG, PDF, PGF |
//! | `latex.rs` | text as LaTeX sets it |
//! | `sheets.rs` | tables as CSV, LaTeX and Markdown |
//! | `tensorboard.rs` | measurements as TensorBoard's event files |
//! | `live.rs` | the page that follows runs: the same, and who is at work |
//! | `assets/page.html`, `assets/style.css` | the skeleton and its style |
//! | `assets/report.js` | state, colours, sections, the order of drawing, the cursor shared by all plots |
//! | `assets/controls.js` | theme and controls |
//! | `assets/plots.js` | curves over time |
//! | `assets/sweeps.js` | final values against what a sweep varies |
//! | `assets/maps.js` | the same against two settings at a time |
//! | `assets/pictures.js` | histograms, paths of directions, decision regions, learned features |
//! | `assets/live.js` | what follows: asks for what is new when the server says so |
//! | `assets/plotly-cartesian.min.js` | the drawing library, with its licence beside it |

mod budget;
mod figures;
mod fingerprints;
mod horizons;
mod html;
mod latex;
mod layers;
mod live;
mod page_data;
mod picture;
mod reference_page;
mod robust_accuracy;
mod robustness;
mod sheet;
mod sheets;
mod sketch;
mod sweep_data;
mod tables;
mod tensorboard;

pub use figures::{
    Along, Drawing, Figure, FigureAxis, FigureError, FigureRequest, chosen_figures, figures, radar_figure,
    sketch_figure,
};
pub use fingerprints::fingerprints;
pub use horizons::horizon_page;
pub use html::{escape, fill, html};
pub use latex::latex;
pub use live::{live_html, live_parts};
pub use reference_page::reference_page;
pub use robust_accuracy::robust_accuracy;
pub use robustness::{robustness_figures, robustness_page};
pub use sheet::Sheet;
pub use sheets::{TableFormat, sheets};
pub use sketch::{Brackets, Cloud, Curve, Dot, Sketch};
pub use tensorboard::{Exported, event_file};

#[cfg(test)]
mod tests;
