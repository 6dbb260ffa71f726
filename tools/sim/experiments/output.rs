//! Tables and plots.

use anyhow::{anyhow, Result};
use comfy_table::{presets, CellAlignment};
use plotters::prelude::*;
use serde::Serialize;

/// The output of an experiment.
#[derive(Default, Serialize)]
pub struct Table {
    /// Title.
    pub title: String,
    /// Heads of the columns.
    pub header: Vec<String>,
    /// Rows of cells.
    pub rows: Vec<Vec<String>>,
    /// Remarks below the table.
    pub remarks: Vec<String>,
    /// Checks that have failed.
    pub failed: Vec<String>,
    /// Plots of it.
    #[serde(skip)]
    pub plots: Vec<Plot>,
    /// Host-seconds and events that were simulated.
    #[serde(skip)]
    pub simulated: (f64, u64),
}

impl Table {
    /// Returns an empty table.
    pub fn new(title: &str, header: &[&str]) -> Table {
        Table { title: title.into(), header: header.iter().map(|head| head.to_string()).collect(), ..Table::default() }
    }

    /// Formats the table for the terminal.
    pub fn text(&self) -> String {
        let mut table = comfy_table::Table::new();
        table.load_preset(presets::NOTHING).set_header(&self.header).add_rows(&self.rows);
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let mut text = format!("{}\n\n{}\n", self.title, table.trim_fmt());
        for line in &self.remarks {
            text += &format!("{line}\n");
        }
        for line in &self.failed {
            text += &format!("NOT AS IT MUST BE: {line}\n");
        }
        text
    }
}

/// Formats a number with three significant digits.
pub fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Formats a size in bytes with a unit.
pub fn size(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 20 && b % (1 << 20) == 0 => format!("{} MiB", b >> 20),
        b if b >= 1 << 10 && b % (1 << 10) == 0 => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

const SIZE: (u32, u32) = (800, 430);

/// Colours that can be distinguished with colour-vision deficiency, too.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
];

/// Several lines over a common x-axis.
pub struct Plot {
    /// Name of its file.
    pub name: String,
    /// Title above it.
    pub title: String,
    /// Label of the x-axis.
    pub x: String,
    /// Label of the y-axis.
    pub y: String,
    /// The lines with their names.
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
}

impl Plot {
    /// Draws the plot as SVG.
    pub fn svg(&self) -> Result<String> {
        let mut svg = String::new();
        // The error is converted to text, since the library's errors borrow the drawing area.
        self.draw(&mut svg).map_err(|error| anyhow!("cannot plot {}: {error}", self.name))?;
        Ok(svg)
    }

    fn draw(&self, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
        let points = || self.lines.iter().flat_map(|line| &line.1);
        // Values of very different magnitudes are shown on a logarithmic axis.
        let [x, y] = [bounds(points().map(|p| p.0)), bounds(points().map(|p| p.1))].map(Axis::new);
        let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption(&self.title, ("sans-serif", 17))
            .margin(10)
            .x_label_area_size(42)
            .y_label_area_size(70)
            .build_cartesian_2d(x.range(), y.range())?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .x_desc(&self.x)
            .y_desc(&self.y)
            .x_label_formatter(&|at| number(x.value(*at)))
            .y_label_formatter(&|at| number(y.value(*at)))
            .draw()?;
        for ((name, points), colour) in self.lines.iter().zip(COLOURS.iter().cycle()) {
            let style = colour.stroke_width(2);
            let places: Vec<(f64, f64)> = points.iter().map(|p| (x.place(p.0), y.place(p.1))).collect();
            chart
                .draw_series(LineSeries::new(places.iter().copied(), style))?
                .label(name.clone())
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
            chart.draw_series(places.iter().map(|place| Circle::new(*place, 3, colour.filled())))?;
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
}

fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
}

/// An axis, linear or logarithmic.
#[derive(Clone, Copy)]
struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Axis {
    fn new((low, high): (f64, f64)) -> Axis {
        Axis { low, high, logarithmic: low > 0.0 && high / low > 20.0 }
    }

    fn place(self, value: f64) -> f64 {
        if self.logarithmic {
            value.log2()
        } else {
            value
        }
    }

    fn value(self, place: f64) -> f64 {
        if self.logarithmic {
            place.exp2()
        } else {
            place
        }
    }

    fn range(self) -> std::ops::Range<f64> {
        let (low, high) = (self.place(self.low), self.place(self.high));
        let low = if self.logarithmic { low } else { low.min(0.0) };
        let room = (high - low).max(1e-9) * 0.05;
        low..high + room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_plots_show_what_is_in_them() {
        let mut table = Table::new("a title", &["one", "two"]);
        table.rows.push(vec!["x".into(), number(12.34)]);
        table.failed.push("this".into());
        for text in ["a title", "two", "12.3", "NOT AS IT MUST BE: this"] {
            assert!(table.text().contains(text), "{text}");
        }
        let lines = vec![("a line".to_string(), vec![(1.0, 3.0), (64.0, 5.0)])];
        let plot = Plot { name: "n".into(), title: "t".into(), x: "hosts".into(), y: "us".into(), lines };
        let svg = plot.svg().unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("a line") && svg.contains("hosts"));
        assert_eq!((size(8192), size(1 << 20), size(1000)), ("8 KiB".into(), "1 MiB".into(), "1000 B".into()));
    }
}
