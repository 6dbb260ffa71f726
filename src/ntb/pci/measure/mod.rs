//! Measuring a link: two agents measure it through a few words at the start of their windows, beside the traffic of
//! jobs, and each agent measures the rate of its own writes whenever the link has come up.
//!
//! | file | holds |
//! |---|---|
//! | `area` | the words and the data through which two agents measure |
//! | `answer` | answers to measurements of the neighbour |
//! | `report` | the result of a measurement, and the limit of the link |
//! | `error` | errors, and the times that bound a measurement |
//!
//! Nothing is read across the link: a time ends when an answer of the neighbour has arrived.

mod answer;
mod area;
mod error;
mod report;

pub(crate) use answer::Answering;
pub(crate) use area::{Area, REQUEST_SPIN, REQUEST_STREAM};
pub use error::MeasureError;
pub(crate) use error::{ANSWER, STREAM};
pub(crate) use report::slow_link;
pub use report::{limit, LinkMeasurement};
