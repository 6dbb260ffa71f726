//! A network as text.

use comfy_table::{presets, Table};
use ntbring_manager::shape::{Layout, RIGHT};
use ntbring_manager::survey::{HostView, LinkView, Survey};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Largest number of hosts for which whole routes are listed.
const WHOLE: usize = 8;
/// Largest number of hosts for which routes are listed at all.
const LISTED: usize = 24;
/// Port of a host in a torus towards the row below.
const DOWN: u8 = 3;
/// Width in characters of a host and the link to its right in the drawing.
const CELL: usize = 8;

/// Formats all statistics of the network.
pub fn show(survey: &Survey, layout: Layout) -> String {
    let mut text = summary(survey);
    let drawing = drawing(survey, layout);
    for part in [drawing, hosts(survey), links(survey), routes(survey), verdict(survey)] {
        if !part.is_empty() {
            text += &format!("\n{part}");
        }
    }
    text
}

fn summary(survey: &Survey) -> String {
    let up = survey.links.iter().filter(|link| link.up).count();
    let masters: BTreeSet<_> = survey.hosts.iter().map(|host| (host.master, host.table.epoch)).collect();
    let mut text = format!("{}: {} hosts, {up} links", survey.name, survey.hosts.len());
    match survey.links.len() - up {
        0 => text.push('\n'),
        down => text += &format!(", {down} down\n"),
    }
    let time = format!("{:.0} us after it began, at 1 us a hop", survey.agreed_us);
    text += &format!("last change {time}; {} packets and {} bytes over links so far\n", survey.packets, survey.bytes);
    for (master, epoch) in masters {
        text += &format!("master: HWID {master}, with tables of epoch {epoch}\n");
    }
    text
}

fn hosts(survey: &Survey) -> String {
    let mut header = vec!["host".to_string(), "HWID".into(), "LID".into(), "master".into()];
    let ports = survey.hosts.iter().filter_map(|host| host.ports.iter().rposition(Option::is_some)).max();
    let ports = ports.map_or(0, |last| last + 1);
    header.extend((0..ports).map(|port| format!("port {port}")));
    let row = |host: &HostView| {
        let master = if host.master == host.hwid { "this".into() } else { host.master.to_string() };
        let mut row = vec![host.host.to_string(), host.hwid.to_string(), host.lid.to_string(), master];
        row.extend((0..ports).map(|port| match host.ports[port] {
            Some((there, port)) => format!("{there}.{port}"),
            None => "-".into(),
        }));
        row
    };
    table(header, survey.hosts.iter().map(row).collect())
}

fn links(survey: &Survey) -> String {
    let header = ["link", "state", "weight", "model", "routes there", "and back"].map(str::to_string).to_vec();
    let row = |link: &LinkView| {
        let [(a, p), (b, q)] = link.ends;
        let [there, back] = link.routes.map(|routes| routes.to_string());
        let state = if link.up { "up" } else { "down" };
        let model = link.model.clone().unwrap_or_else(|| "-".into());
        vec![format!("{a}.{p}-{b}.{q}"), state.into(), link.weight.to_string(), model, there, back]
    };
    table(header, survey.links.iter().map(row).collect())
}

/// Formats the routes between all hosts as lists of ports.
fn routes(survey: &Survey) -> String {
    let hosts = survey.hosts.len();
    if !(2..=LISTED).contains(&hosts) {
        return String::new();
    }
    let header = std::iter::once("from / to".into()).chain(survey.hosts.iter().map(|host| host.host.to_string()));
    let cell = |from: &HostView, to: &HostView| {
        let route = survey.routes.iter().find(|route| (route.from, route.to) == (from.host, to.host));
        match route {
            Some(route) if hosts <= WHOLE => route.ports.to_string(),
            Some(route) => format!("{}/{}", route.ports.get(0).unwrap_or(0), route.ports.len()),
            None => "-".into(),
        }
    };
    let row = |from: &HostView| {
        std::iter::once(from.host.to_string()).chain(survey.hosts.iter().map(|to| cell(from, to))).collect()
    };
    let what = if hosts <= WHOLE { "the ports by which it leaves hosts" } else { "first port / hops" };
    format!("routes: {what}\n{}", table(header.collect(), survey.hosts.iter().map(row).collect()))
}

fn verdict(survey: &Survey) -> String {
    let (least, most) = survey.load;
    let mut text = format!("{} routes, {} of them with equally short alternatives; ", survey.routes.len(), survey.ties);
    match survey.detours {
        0 => text += "all are shortest routes\n",
        detours => text += &format!("{detours} are longer than the shortest, because there are too few lane classes\n"),
    }
    let range = if least == most { least.to_string() } else { format!("{least} to {most}") };
    text += &format!("{range} routes in each direction of a link\n");
    text += &match &survey.cycle {
        None => format!("{} lanes between forwarders are used; none can wait in a circle\n", survey.channels),
        Some(cycle) => format!("{} lanes wait for each other in a circle\n", cycle.len()),
    };
    text
}

/// Draws hosts in rows, by local id, with the master marked. A link that leads out at one end of a row or column
/// comes in at the other.
fn drawing(survey: &Survey, layout: Layout) -> String {
    let ends = survey.links.iter().flat_map(|link| link.ends).map(|end| end.0);
    let last = survey.hosts.iter().map(|host| host.host).chain(ends).max().unwrap_or(0);
    let width = match layout {
        Layout::Rows(width) => width,
        // The network is a ring if every link leads to the next host.
        Layout::Circle => last + 1,
    };
    let right = |host: usize| link_at(survey, host, RIGHT);
    let down = |host: usize| link_at(survey, host, DOWN);
    let in_rows = |link: &LinkView| {
        let [(a, p), (b, _)] = link.ends;
        match p {
            DOWN => a % width == b % width,
            p => p == RIGHT && a / width == b / width && (a + 1) % width == b % width,
        }
    };
    if width == 0 || !survey.links.iter().all(in_rows) || width * CELL > 132 {
        return String::new();
    }
    let mut text = String::new();
    let column = |text: &mut String, hosts: std::ops::Range<usize>| {
        let bars = hosts.map(|host| bar(down(host), ["|", "x", " "])).map(|bar| format!("   {bar:<5}"));
        let line = bars.collect::<String>();
        let _ = match line.trim() {
            "" => Ok(()),
            _ => writeln!(text, "{}", format!("  {line}").trim_end()),
        };
    };
    let height = last / width + 1;
    column(&mut text, width * (height - 1)..width * height);
    for row in 0..height {
        text += bar(right(row * width + width - 1), ["--", "xx", "  "]);
        for host in row * width..(row + 1) * width {
            let name = match survey.hosts.iter().find(|view| view.host == host) {
                Some(view) if view.master == view.hwid => format!("[{}*]", view.lid),
                Some(view) => format!("[{}]", view.lid),
                None => "( )".into(),
            };
            let line = bar(right(host), ["-", "x", " "]);
            let used = CELL - name.len();
            text += &name;
            text += &line.repeat(if host % width == width - 1 { 2 } else { used });
        }
        text = text.trim_end().to_string() + "\n";
        column(&mut text, row * width..(row + 1) * width);
    }
    text
}

fn bar(link: Option<&LinkView>, [up, down, none]: [&'static str; 3]) -> &'static str {
    link.map_or(none, |link| if link.up { up } else { down })
}

fn link_at(survey: &Survey, host: usize, port: u8) -> Option<&LinkView> {
    survey.links.iter().find(|link| link.ends.contains(&(host, port)))
}

fn table(header: Vec<String>, rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(header).add_rows(rows);
    table.trim_fmt() + "\n"
}
