//! Section J with convolutions and max-pools: the network of the paper at reduced size.
//!
//! A quarter of the channels (8 of 5×5, 16 of 3×3), 64 hidden units, 60 of the embedded 8×8 digits in one
//! batch; from full scale on a thousand images of MNIST, where they are here. The comparisons are those of the dense network.

use super::courses::{Network, courses};
use super::robustness::{bounds, order, profiles};
use super::training::{accuracy, constant_rate, loss_based, table_1};
use crate::Claim;

pub(super) const CLAIMS: [Claim; 6] = [
    Claim {
        id: "D.fig1a.conv",
        covers: &["D.fig3.conv"],
        statement: "With a constant rate the margin of the convolutional network (8 and 16 channels, 64 units), per product of the layers' \
                    norms and per norm, grows slowly after every image is right, with biases everywhere and without",
        experiments: &["d-convolutions"],
        try_out: |lab| constant_rate(courses(lab, Network::Convolutional)?.as_ref()),
        ..Claim::FINDING
    },
    Claim {
        id: "D.fig1b.conv",
        covers: &["D.fig4.conv"],
        statement: "With the loss-based rate the loss of the convolutional network (8 and 16 channels, 64 units) falls below 10^-800, \
                    exponentially in epochs, and the margin gets larger than with a constant rate in as many epochs",
        experiments: &["d-convolutions"],
        try_out: |lab| loss_based(courses(lab, Network::Convolutional)?.as_ref()),
        ..Claim::FINDING
    },
    Claim {
        id: "D.fig7.conv",
        statement: "Test accuracy of the convolutional network (8 and 16 channels, 64 units) barely moves while the margin grows by half \
                    and more",
        experiments: &["d-convolutions"],
        try_out: |lab| accuracy(courses(lab, Network::Convolutional)?.as_ref()),
        ..Claim::NOT_SEEN
    },
    Claim {
        id: "D.tabl1.conv",
        statement: "Convolutional networks (8 and 16 channels, 64 units) at losses of 10^-10, 10^-15, 10^-20, 10^-120 and 10^-800 have larger \
                    and larger margins, 20.9 times as large in the end, at nearly the same test accuracy",
        experiments: &["d-convolutions"],
        try_out: |lab| table_1(courses(lab, Network::Convolutional)?.as_ref()),
        ..Claim::NOT_SEEN
    },
    Claim {
        id: "D.robust.conv",
        statement: "Images are at least q/Lip away from a wrong answer of the convolutional network (8 and 16 channels, 64 units): no attack \
                    comes closer than that, nor than the certified radius",
        experiments: &["d-convolutions"],
        try_out: |lab| bounds(profiles(lab, Network::Convolutional)?.as_ref()),
        ..Claim::FORMULA
    },
    Claim {
        id: "D.fig8.conv",
        statement: "From a loss of 10^-10 to one of 10^-800 training images get harder to fool from one convolutional network (8 and 16 \
                    channels, 64 units) to the next, by 5 % in the median and by five points of robust accuracy where the first has three \
                    quarters",
        experiments: &["d-convolutions"],
        try_out: |lab| order(profiles(lab, Network::Convolutional)?.as_ref()),
        ..Claim::NOT_SEEN
    },
];
