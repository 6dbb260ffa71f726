//! A plot of values by size, both axes logarithmic, as SVG.

use anyhow::{anyhow, Result};
use plotters::prelude::*;

use crate::bench::figures::{number, size};

/// The name of the series that is the machine's limit.
pub const LIMIT: &str = "limit";

const WIDTH: u32 = 900;
const HEIGHT: u32 = 430;

/// Colours that can be distinguished with colour-vision deficiency, too.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0x7f, 0x7f, 0x7f),
    RGBColor(0x8c, 0x56, 0x4b),
];

/// One line of a plot.
pub struct Series {
    /// Name for the legend.
    pub name: String,
    /// Sizes and values, all positive.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// Returns a series with a name.
    pub fn of(name: &str, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.to_string(), points }
    }
}

/// Draws the series as SVG. There must be at least one point.
pub fn svg(title: &str, unit: &str, series: &[Series]) -> Result<String> {
    let mut svg = String::new();
    // The error is converted to text, since the library's errors borrow the drawing area.
    draw(&mut svg, title, unit, series).map_err(|error| anyhow!("cannot plot {title}: {error}"))?;
    Ok(svg)
}

fn draw(svg: &mut String, title: &str, unit: &str, series: &[Series]) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(svg, (WIDTH, HEIGHT)).into_drawing_area();
    root.fill(&WHITE)?;
    let points = || series.iter().flat_map(|series| &series.points);
    let (left, right) = bounds(points().map(|point| point.0));
    let (low, high) = bounds(points().map(|point| point.1));
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 18))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d((left..right).log_scale().base(2.0), (low * 0.8..high * 1.25).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_labels(14)
        .y_labels(6)
        .x_label_formatter(&|bytes| size(*bytes as u64))
        .y_label_formatter(&|value| number(*value))
        .y_desc(unit)
        .draw()?;
    let mut colours = COLOURS.iter().cycle();
    for one in series {
        let colour = if one.name == LIMIT { BLACK } else { *colours.next().unwrap_or(&BLACK) };
        let width = if one.name == LIMIT { 1 } else { 2 };
        let style = colour.stroke_width(width);
        chart
            .draw_series(LineSeries::new(one.points.iter().copied(), style))?
            .label(one.name.clone())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
        chart.draw_series(one.points.iter().map(|point| Circle::new(*point, 2 + width, colour.filled())))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.2))
        .draw()?;
    root.present()?;
    Ok(())
}

/// Returns the smallest and the largest value, which differ even if there is only one.
fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
    if low < high {
        (low, high)
    } else {
        (low, 2.0 * low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_names_are_drawn() {
        let series = [
            Series::of("one", vec![(8.0, 0.1), (64.0, 0.2), (1_048_576.0, 30.0)]),
            Series::of(LIMIT, vec![(8.0, 0.06)]),
        ];
        let svg = svg("latency", "us", &series).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        for text in ["one", LIMIT, "latency", " KiB"] {
            assert!(svg.contains(text), "{text}");
        }
        assert_eq!(bounds([3.0].into_iter()), (3.0, 6.0));
    }
}
