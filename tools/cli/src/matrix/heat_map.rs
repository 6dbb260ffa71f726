//! The matrix as an SVG drawing: a heat map with the sums of rows and columns beside it.

use super::table::scaled;
use super::traffic::{Matrix, Unit};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::error::Error;

/// Smallest and largest size of a cell, and the size of the map at which cells get smaller, in pixels.
const CELL_MIN: i32 = 3;
const CELL_MAX: i32 = 56;
const MAP: i32 = 720;
/// Space for the title above the map, and for the labels at the left and the top of it, in pixels.
const TITLE: i32 = 44;
const LABELS: i32 = 56;
/// Longest bar of a sum, and the space beside the map for the bars and their numbers, in pixels.
const BAR: i32 = 70;
const SUMS: i32 = BAR + 64;
/// Height of the legend in pixels.
const LEGEND: i32 = 56;
/// Smallest distance between two labels of rows, and of columns, in pixels.
const ROW_LABEL: i32 = 13;
const COLUMN_LABEL: i32 = 30;
/// Size of cells from which on their numbers are written into them, in pixels.
const NUMBERS: i32 = 44;

const EMPTY: RGBColor = RGBColor(0xf2, 0xf2, 0xf2);
const LINE: RGBColor = RGBColor(0x99, 0x99, 0x99);
const BARS: RGBColor = RGBColor(0x56, 0x78, 0x9a);
/// The colours of the scale, from little to much: they get darker, so that they differ without colour, too.
const SCALE: [(u8, u8, u8); 5] =
    [(0xff, 0xf3, 0xb0), (0xfe, 0xc4, 0x4f), (0xec, 0x70, 0x14), (0xa6, 0x1c, 0x3c), (0x3b, 0x0f, 0x4f)];

type Point = (i32, i32);
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Draws the matrix; returns the text of the SVG file.
pub fn draw(name: &str, matrix: &Matrix, unit: Unit) -> Result<String, Box<dyn Error>> {
    let mut svg = String::new();
    // The library's errors borrow the drawing, so they are converted to text.
    paint(&mut svg, name, matrix, unit).map_err(|error| format!("cannot draw {name}: {error}"))?;
    Ok(svg)
}

/// The colour scale: logarithmic, from the smallest number that is not 0 to the largest.
struct Scale {
    least: u64,
    most: u64,
}

impl Scale {
    fn of(cells: &[Vec<u64>]) -> Scale {
        let some = || cells.iter().flatten().copied().filter(|&cell| cell > 0);
        Scale { least: some().min().unwrap_or(1), most: some().max().unwrap_or(1) }
    }

    /// Returns the place of a number on the scale, from 0 to 1.
    fn place(&self, number: u64) -> f64 {
        let range = (self.most as f64 / self.least as f64).ln();
        if range == 0.0 {
            1.0
        } else {
            (number as f64 / self.least as f64).ln() / range
        }
    }

    fn colour(&self, number: u64) -> RGBColor {
        if number == 0 {
            return EMPTY;
        }
        let at = self.place(number).clamp(0.0, 1.0) * (SCALE.len() - 1) as f64;
        let below = (at as usize).min(SCALE.len() - 2);
        let (a, b, part) = (SCALE[below], SCALE[below + 1], at - below as f64);
        let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * part).round() as u8;
        RGBColor(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
    }
}

fn paint(svg: &mut String, name: &str, matrix: &Matrix, unit: Unit) -> Result<(), Box<dyn Error>> {
    let n = matrix.len() as i32;
    let cell = (MAP / n.max(1)).clamp(CELL_MIN, CELL_MAX);
    let (left, top) = (LABELS, TITLE + LABELS);
    let (right, bottom) = (left + n * cell, top + n * cell);
    let width = (right + SUMS).max(460);
    let area: Area = SVGBackend::with_string(svg, (width as u32, (bottom + SUMS + LEGEND) as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    let title = format!("{name}: {} sent, by sender (row) and receiver (column)", unit.name());
    write(&area, &title, (left, 16), 15, HPos::Left)?;
    let facts = format!("{} ranks on {} hosts", matrix.ranks, matrix.hosts);
    write(&area, &facts, (left, 34), 11, HPos::Left)?;

    let scale = Scale::of(matrix.cells(unit));
    area.draw(&Rectangle::new([(left, top), (right, bottom)], EMPTY.filled()))?;
    for (row, cells) in matrix.cells(unit).iter().enumerate() {
        for (column, &number) in cells.iter().enumerate().filter(|(_, &number)| number > 0) {
            let (x, y) = (left + column as i32 * cell, top + row as i32 * cell);
            // A gap between cells, unless they are small.
            let size = if cell >= 8 { cell - 1 } else { cell };
            area.draw(&Rectangle::new([(x, y), (x + size, y + size)], scale.colour(number).filled()))?;
            if cell >= NUMBERS {
                let colour = if scale.place(number) > 0.5 { WHITE } else { BLACK };
                let middle = Pos::new(HPos::Center, VPos::Center);
                let style = ("sans-serif", 11).into_font().color(&colour).pos(middle);
                area.draw(&Text::new(scaled(number), (x + cell / 2, y + cell / 2), style))?;
            }
        }
    }
    hosts(&area, matrix, cell, (left, top))?;
    labels(&area, matrix, cell, (left, top))?;
    sums(&area, matrix, unit, cell, (left, top))?;
    legend(&area, &scale, unit, (left, bottom + SUMS))?;
    area.present()?;
    Ok(())
}

/// Draws a line between the ranks of different hosts, if hosts have several.
fn hosts(area: &Area, matrix: &Matrix, cell: i32, (left, top): Point) -> Result<(), Box<dyn Error>> {
    let Some(host_of) = matrix.host_of.as_ref().filter(|_| matrix.ranks > matrix.hosts) else { return Ok(()) };
    let end = matrix.len() as i32 * cell;
    let borders = host_of.windows(2).zip(1..).filter(|(pair, _)| pair[0] != pair[1]).map(|(_, at)| at);
    for at in borders {
        let (x, y) = (left + at * cell, top + at * cell);
        area.draw(&PathElement::new([(x, top), (x, top + end)], LINE))?;
        area.draw(&PathElement::new([(left, y), (left + end, y)], LINE))?;
    }
    Ok(())
}

/// Writes the numbers of rows and columns, as many as there is room for.
fn labels(area: &Area, matrix: &Matrix, cell: i32, (left, top): Point) -> Result<(), Box<dyn Error>> {
    let step =
        |room: i32| [1, 2, 4, 8, 16, 32, 64, 128, 256].into_iter().find(|step| step * cell >= room).unwrap_or(512);
    for i in (0..matrix.len() as i32).step_by(step(ROW_LABEL) as usize) {
        write(area, &i.to_string(), (left - 6, top + i * cell + cell / 2), 11, HPos::Right)?;
    }
    for i in (0..matrix.len() as i32).step_by(step(COLUMN_LABEL) as usize) {
        write(area, &i.to_string(), (left + i * cell + cell / 2, top - 10), 11, HPos::Center)?;
    }
    write(area, &format!("to {}", matrix.kind()), (left, top - 28), 11, HPos::Left)?;
    write(area, matrix.kind(), (left - 6, top - 10), 11, HPos::Right)
}

/// Draws bars of the sums: of rows at the right, of columns below.
fn sums(area: &Area, matrix: &Matrix, unit: Unit, cell: i32, (left, top): Point) -> Result<(), Box<dyn Error>> {
    let (right, bottom) = (left + matrix.len() as i32 * cell + 4, top + matrix.len() as i32 * cell + 4);
    let (sent, received) = (matrix.sent(unit), matrix.received(unit));
    let most = sent.iter().chain(&received).copied().max().unwrap_or(0).max(1);
    let long = |sum: u64| (f64::from(BAR) * sum as f64 / most as f64).round() as i32;
    let (thick, numbers) = ((cell - 1).max(1), cell >= ROW_LABEL);
    for (&sum, y) in sent.iter().zip((0..).map(|i| top + i * cell)) {
        area.draw(&Rectangle::new([(right, y), (right + long(sum), y + thick)], BARS.filled()))?;
        if numbers {
            write(area, &scaled(sum), (right + long(sum) + 4, y + cell / 2), 10, HPos::Left)?;
        }
    }
    for (&sum, x) in received.iter().zip((0..).map(|i| left + i * cell)) {
        area.draw(&Rectangle::new([(x, bottom), (x + thick, bottom + long(sum))], BARS.filled()))?;
        if cell >= NUMBERS {
            write(area, &scaled(sum), (x + cell / 2, bottom + long(sum) + 8), 10, HPos::Center)?;
        }
    }
    write(area, "sent", (right, top - 10), 11, HPos::Left)?;
    write(area, "received", (left - 4, bottom + 6), 11, HPos::Right)
}

/// Draws the colour scale.
fn legend(area: &Area, scale: &Scale, unit: Unit, (left, top): Point) -> Result<(), Box<dyn Error>> {
    let (steps, wide) = (40, 5);
    for step in 0..steps {
        let place = f64::from(step) / f64::from(steps - 1);
        let number = scale.least as f64 * (scale.most as f64 / scale.least as f64).powf(place);
        let x = left + step * wide;
        area.draw(&Rectangle::new([(x, top), (x + wide, top + 12)], scale.colour(number as u64).filled()))?;
    }
    let end = left + steps * wide;
    write(area, &scaled(scale.least), (left, top + 22), 10, HPos::Left)?;
    write(area, &scaled(scale.most), (end, top + 22), 10, HPos::Right)?;
    let text = format!("{}, logarithmic; grey: none", unit.name());
    write(area, &text, (end + 10, top + 6), 10, HPos::Left)
}

fn write(area: &Area, text: &str, at: Point, size: i32, side: HPos) -> Result<(), Box<dyn Error>> {
    let style = ("sans-serif", size).into_font().color(&BLACK).pos(Pos::new(side, VPos::Center));
    Ok(area.draw(&Text::new(text.to_string(), at, style))?)
}

#[cfg(test)]
mod tests {
    use super::super::traffic::tests::sender;
    use super::*;

    #[test]
    fn cells_have_colours_and_numbers() {
        let matrix = Matrix::of(&[sender(0, &[(1, 2, 20), (3, 1, 8)]), sender(2, &[(0, 4, 40_000)])]).unwrap();
        let svg = draw("job 7", &matrix, Unit::Bytes).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        let (first, last) = (SCALE[0], SCALE[4]);
        for (r, g, b) in [first, last] {
            assert!(svg.contains(&format!("#{r:02X}{g:02X}{b:02X}")), "{svg}");
        }
        for text in ["40000", "job 7: bytes sent", "4 ranks on 2 hosts", "received"] {
            assert!(svg.contains(text), "{text} in {svg}");
        }
    }

    #[test]
    fn a_large_matrix_and_an_empty_one_can_be_drawn() {
        let mut matrix = Matrix::of(&[sender(0, &[])]).unwrap();
        assert!(draw("nothing", &matrix, Unit::Messages).is_ok());
        let n = 512;
        (matrix.ranks, matrix.hosts, matrix.host_of) = (n, 64, Some((0..n).map(|rank| Some(rank / 8)).collect()));
        matrix.msgs = (0..n).map(|from| (0..n).map(|to| u64::from(to == (from + 1) % n)).collect()).collect();
        let svg = draw("large", &matrix, Unit::Messages).unwrap();
        assert!(svg.len() < 1 << 20, "{}", svg.len());
    }

    #[test]
    fn the_scale_is_logarithmic() {
        let scale = Scale { least: 1, most: 10_000 };
        assert!((scale.place(100) - 0.5).abs() < 1e-9);
        assert_eq!(scale.colour(0), EMPTY);
        assert_eq!(scale.colour(100), RGBColor(SCALE[2].0, SCALE[2].1, SCALE[2].2));
        assert_eq!(Scale { least: 5, most: 5 }.place(5), 1.0);
    }
}
