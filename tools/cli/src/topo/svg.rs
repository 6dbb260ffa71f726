//! A network as an SVG drawing.

use ntbring_manager::shape::Layout;
use ntbring_manager::survey::{LinkView, Survey};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::collections::BTreeMap;
use std::error::Error;

const MASTER: RGBColor = RGBColor(0xe6, 0x9f, 0x00);
const STANDBY: RGBColor = RGBColor(0x56, 0xb4, 0xe9);
const UP: RGBColor = RGBColor(0x33, 0x33, 0x33);
const DOWN: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
const OFF: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);

/// Radius of a host in pixels.
const RADIUS: i32 = 24;
/// Distance between neighbouring hosts of a row in pixels.
const STEP: i32 = 140;
/// Margin around the drawing, and space above it for the title, in pixels.
const MARGIN: i32 = 90;
const TITLE: i32 = 25;

type Point = (i32, i32);
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Draws the network; returns the text of the SVG file.
pub fn draw(survey: &Survey, layout: Layout) -> Result<String, Box<dyn Error>> {
    let mut svg = String::new();
    // The library's errors borrow the drawing, so they are converted to text.
    paint(&mut svg, survey, layout).map_err(|error| format!("cannot draw {}: {error}", survey.name))?;
    Ok(svg)
}

fn paint(svg: &mut String, survey: &Survey, layout: Layout) -> Result<(), Box<dyn Error>> {
    let ends = survey.links.iter().flat_map(|link| link.ends).map(|end| end.0);
    let count = survey.hosts.iter().map(|host| host.host).chain(ends).max().unwrap_or(0) + 1;
    let (places, size) = places(count, layout);
    let area: Area = SVGBackend::with_string(svg, size).into_drawing_area();
    area.fill(&WHITE)?;
    let middle = size.0 as i32 / 2;
    write(&area, &survey.name, (middle, 16), 16, &BLACK)?;
    write(&area, "routes each way | on links, ports at hosts", (middle, 33), 11, &UP)?;
    let pair =
        |link: &LinkView| link.ends.map(|end| end.0).iter().fold((usize::MAX, 0), |(a, b), &h| (a.min(h), b.max(h)));
    let mut parallel: BTreeMap<(usize, usize), Vec<&LinkView>> = BTreeMap::new();
    survey.links.iter().for_each(|link| parallel.entry(pair(link)).or_default().push(link));
    for links in parallel.values() {
        for (nth, link) in links.iter().enumerate() {
            let ends = link.ends.map(|end| places[end.0]);
            let around = matches!(layout, Layout::Rows(_)) && (nth > 0 || is_far(ends));
            let side = if layout == Layout::Circle { 24.0 * nth as f64 - 12.0 * (links.len() - 1) as f64 } else { 0.0 };
            line(&area, link, ends, around, side)?;
        }
    }
    for (host, &place) in places.iter().enumerate() {
        let Some(view) = survey.hosts.iter().find(|view| view.host == host) else {
            area.draw(&Circle::new(place, RADIUS, OFF.filled()))?;
            write(&area, "off", place, 13, &BLACK)?;
            continue;
        };
        let colour = if view.master == view.hwid { MASTER } else { STANDBY };
        area.draw(&Circle::new(place, RADIUS, colour.filled()))?;
        write(&area, &format!("LID {}", view.lid), (place.0, place.1 - 6), 13, &BLACK)?;
        write(&area, &view.hwid.to_string(), (place.0, place.1 + 9), 11, &BLACK)?;
    }
    area.present()?;
    Ok(())
}

/// Returns the positions of the hosts, and the width and height of the drawing.
fn places(count: usize, layout: Layout) -> (Vec<Point>, (u32, u32)) {
    let (places, width, height): (Vec<Point>, i32, i32) = match layout {
        Layout::Circle => {
            let radius = (f64::from(STEP) * count as f64 / std::f64::consts::TAU).max(110.0);
            let place = |host: usize| {
                let (y, x) = (std::f64::consts::TAU * host as f64 / count as f64).sin_cos();
                ((radius * (1.0 + y)) as i32 + MARGIN, (radius * (1.0 - x)) as i32 + MARGIN + TITLE)
            };
            let across = (2.0 * radius) as i32;
            ((0..count).map(place).collect(), across, across)
        }
        Layout::Rows(width) => {
            let width = width.max(1);
            let place =
                |host: usize| ((host % width) as i32 * STEP + MARGIN, (host / width) as i32 * STEP + MARGIN + TITLE);
            let (columns, rows) = (width.min(count) as i32, count.div_ceil(width) as i32);
            ((0..count).map(place).collect(), (columns - 1) * STEP, (rows - 1) * STEP)
        }
    };
    (places, ((width + 2 * MARGIN) as u32, (height + 2 * MARGIN + TITLE) as u32))
}

/// Returns true if two hosts of a row or column are not neighbours in the drawing.
fn is_far([a, b]: [Point; 2]) -> bool {
    (a.0 - b.0).abs().max((a.1 - b.1).abs()) > STEP
}

/// Draws a link: a line with the numbers of routes at its middle, displaced sideways by `side`. A link that leads
/// around a row or column is drawn as two stubs.
fn line(area: &Area, link: &LinkView, ends: [Point; 2], around: bool, side: f64) -> Result<(), Box<dyn Error>> {
    let [a, b] = ends;
    let (colour, width) = if link.up { (UP, 2) } else { (DOWN, 1) };
    let (dx, dy) = (f64::from(b.0 - a.0), f64::from(b.1 - a.1));
    let length = dx.hypot(dy).max(1.0);
    let (ux, uy) = (dx / length, dy / length);
    let moved = |from: Point, along: f64, beside: f64| {
        let (x, y) = (along * ux - beside * uy, along * uy + beside * ux);
        (from.0 + x.round() as i32, from.1 + y.round() as i32)
    };
    let mut label = match link.up {
        true => format!("{}|{}", link.routes[0], link.routes[1]),
        false => "down".into(),
    };
    if let Some(model) = &link.model {
        label += &format!(" {model}");
    }
    // Stubs lead away from each other; otherwise each half of the line leads to its middle.
    let extent = if around { -66.0 } else { length / 2.0 };
    for (from, sign) in [(a, 1.0), (b, -1.0)] {
        let (start, end) = (moved(from, 0.0, side), moved(from, sign * extent, side));
        area.draw(&PathElement::new(vec![start, end], colour.stroke_width(width)))?;
    }
    let places = if around { vec![moved(a, -52.0, 0.0), moved(b, 52.0, 0.0)] } else { vec![moved(a, extent, side)] };
    for (x, y) in places {
        let half = 3 * label.len() as i32;
        area.draw(&Rectangle::new([(x - half, y - 7), (x + half, y + 7)], WHITE.filled()))?;
        write(area, &label, (x, y), 11, &colour)?;
    }
    for (from, sign, port) in [(a, 1.0, link.ends[0].1), (b, -1.0, link.ends[1].1)] {
        let near = f64::from(RADIUS + 9) * if around { -sign } else { sign };
        write(area, &port.to_string(), moved(from, near, side + 8.0), 11, &colour)?;
    }
    Ok(())
}

fn write(area: &Area, text: &str, at: Point, size: i32, colour: &RGBColor) -> Result<(), Box<dyn Error>> {
    let centre = Pos::new(HPos::Center, VPos::Center);
    let style = ("sans-serif", size).into_font().color(colour).pos(centre);
    Ok(area.draw(&Text::new(text.to_string(), at, style))?)
}
