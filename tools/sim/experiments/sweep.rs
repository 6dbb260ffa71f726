//! `sim sweep`: latency and throughput against the options that are given as lists.

use crate::lab::Lab;
use crate::output::{number, size, Plot, Table};
use anyhow::{bail, ensure, Context, Result};
use clap::Args;
use ntbring_sim::agenda::{ms, us, Time};
use ntbring_sim::net::{Form, Net};
use ntbring_sim::plan::{Faults, Outage};
use ntbring_sim::traffic::{Pacing, Pattern, Traffic};
use ntbring_sim::{Plan, Report};
use std::path::Path;

/// Command-line options. The table has a row for every combination of the lists' values. In plots, the first list with
/// several values is the x-axis, and the next one gives several lines.
#[derive(Args)]
pub struct SweepArgs {
    /// Topologies: ring:N, line:N, torus:WxH, up to 1024 hosts
    #[arg(long, value_name = "SHAPE,...", value_delimiter = ',', default_value = "ring:8")]
    topology: Vec<String>,
    /// Traffic: neighbour, uniform, opposite, all-to-all, incast, or trace:FILE with lines of: time_us src dst bytes
    #[arg(long, value_name = "NAME", default_value = "uniform")]
    traffic: String,
    /// Let only host 0 send, to hosts at these distances
    #[arg(long, value_name = "HOPS,...", value_delimiter = ',', conflicts_with = "traffic")]
    distance: Vec<usize>,
    /// Shares of the load that the busiest direction of a link can carry; 0.1,0.5 or 0.1..1.0 or 0.1..1.0:0.05
    #[arg(long, value_name = "LIST", default_value = "0.5")]
    load: String,
    /// Number of messages of each host in transit at once, instead of a load
    #[arg(long, value_name = "N", conflicts_with = "load")]
    window: Option<usize>,
    /// With --window: number of messages of each host
    #[arg(long, value_name = "N", default_value_t = 100)]
    count: u64,
    /// Sizes of a message in bytes
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', default_value = "64K")]
    bytes: Vec<String>,
    /// Largest chunk of a message
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',')]
    chunk: Vec<String>,
    /// Size of a lane in bytes
    #[arg(long, value_name = "BYTES")]
    lane: Option<String>,
    /// Number of forwarder threads of a host
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1")]
    threads: Vec<usize>,
    /// Probabilities that a packet is lost at a hop
    #[arg(long, value_name = "P,...", value_delimiter = ',', default_value = "0")]
    loss: Vec<f64>,
    /// Number of times that a link goes down, one after the other
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "0")]
    failures: Vec<usize>,
    /// Link that goes down: the host to its left, and the times in ms between which it is down; can be given several
    /// times
    #[arg(long, value_name = "HOST:FROM:TO", value_parser = outage, conflicts_with = "failures")]
    down: Vec<Outage>,
    /// Retransmit lost packets (and run the same protocol if none are lost)
    #[arg(long)]
    retry: bool,
    /// Virtual time in which messages are sent, in us; the first tenth of it is not measured
    #[arg(long, value_name = "US", default_value_t = 10_000)]
    time: u64,
    /// Name of the link's parameters
    #[arg(long, value_name = "NAME", default_value = "gen3x8")]
    link: String,
    /// Name of the host's parameters
    #[arg(long, value_name = "NAME", default_value = "i7-8700k")]
    host: String,
    /// Name of the protocol's parameters
    #[arg(long, value_name = "NAME", default_value = "ntbring")]
    protocol: String,
}

/// One of the lists: its name, and its values as text and as numbers.
struct Axis {
    name: &'static str,
    values: Vec<(String, f64)>,
}

/// The order of the axes.
const AXES: [&str; 8] = ["topology", "distance", "bytes", "chunk", "threads", "load", "loss", "failures"];

fn outage(text: &str) -> Result<Outage, String> {
    let parts: Vec<u64> = text.split(':').filter_map(|part| part.parse().ok()).collect();
    match parts[..] {
        [cable, down, up] if text.split(':').count() == 3 => {
            Ok(Outage { cable: cable as usize, down: ms(down), up: ms(up) })
        }
        _ => Err("expected HOST:FROM:TO, e.g. 0:100:300".into()),
    }
}

/// Parses a size in bytes: `8K`, `1M`, `100`.
pub fn bytes(text: &str) -> Result<u64> {
    let (digits, scale) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 1 << 10),
        Some((at, 'M' | 'm')) => (&text[..at], 1 << 20),
        _ => (text, 1),
    };
    let number: u64 = digits.parse().with_context(|| format!("{text:?} is not a size in bytes such as 8K or 1M"))?;
    number
        .checked_mul(scale)
        .filter(|bytes| *bytes > 0)
        .with_context(|| format!("{text:?} is not a valid size in bytes"))
}

/// Parses a list of numbers: `0.1,0.5` or `0.1..1.0` or `0.1..1.0:0.05`.
fn list(text: &str) -> Result<Vec<f64>> {
    let number = |text: &str| text.trim().parse::<f64>().with_context(|| format!("{text:?} is not a number"));
    let Some((from, rest)) = text.split_once("..") else { return text.split(',').map(number).collect() };
    let (to, step) = rest.split_once(':').unwrap_or((rest, "0.1"));
    let (from, to, step) = (number(from)?, number(to)?, number(step)?);
    ensure!(step > 0.0 && from <= to && (to - from) / step <= 1000.0, "{text:?} is not a valid range");
    // Values are computed from the number of the step, so that rounding errors do not accumulate.
    Ok((0..=((to - from) / step + 1e-9) as usize).map(|n| ((from + n as f64 * step) * 1e6).round() / 1e6).collect())
}

fn axes(args: &SweepArgs) -> Result<Vec<Axis>> {
    let plain = |name, values: Vec<f64>| Axis { name, values: values.iter().map(|v| (v.to_string(), *v)).collect() };
    let sizes = |name, texts: &[String]| -> Result<Axis> {
        let values = texts.iter().map(|text| bytes(text).map(|bytes| (size(bytes), bytes as f64)));
        Ok(Axis { name, values: values.collect::<Result<_>>()? })
    };
    let whole = |values: &[usize]| values.iter().map(|value| *value as f64).collect();
    let form = |name: &String| Ok((name.clone(), name.parse::<Form>()?.hosts() as f64));
    let loads = if args.window.is_some() { vec![0.0] } else { list(&args.load)? };
    Ok(vec![
        Axis { name: AXES[0], values: args.topology.iter().map(form).collect::<Result<_>>()? },
        plain(AXES[1], whole(&args.distance)),
        sizes(AXES[2], &args.bytes)?,
        sizes(AXES[3], &args.chunk)?,
        plain(AXES[4], whole(&args.threads)),
        plain(AXES[5], loads),
        plain(AXES[6], args.loss.clone()),
        plain(AXES[7], whole(&args.failures)),
    ])
}

/// Returns the table.
pub fn run(lab: &Lab, args: &SweepArgs) -> Result<Vec<Table>> {
    let axes: Vec<Axis> = axes(args)?.into_iter().filter(|axis| !axis.values.is_empty()).collect();
    let many: Vec<usize> = (0..axes.len()).filter(|n| axes[*n].values.len() > 1).collect();
    let shown = if many.is_empty() { vec![0] } else { many.clone() };
    let mut header: Vec<&str> = shown.iter().map(|n| axes[*n].name).collect();
    header.extend(["messages", "mean us", "median", "99 %", "GB/s", "a sender", "busiest link", "waits"]);
    let fails = args.retry
        || !args.down.is_empty()
        || args.loss.iter().any(|loss| *loss > 0.0)
        || args.failures.iter().any(|n| *n > 0);
    header.extend(if fails { vec!["lost", "resent", "reroutes"] } else { vec![] });
    let mut table = Table::new("", &header);
    let (mut latency, mut throughput) = (Vec::new(), Vec::new());
    let combinations: usize = axes.iter().map(|axis| axis.values.len()).product();
    let mut place = vec![0; axes.len()];
    for _ in 0..combinations {
        let value = |name: &str| axes.iter().position(|axis| axis.name == name).map(|n| &axes[n].values[place[n]]);
        let plan = plan(lab, args, &value)?;
        let report = ntbring_sim::run(&plan)?;
        check(&mut table, &report);
        table.simulated.0 += report.seconds * plan.form.hosts() as f64;
        table.simulated.1 += report.events;
        let heads = shown.iter().map(|n| axes[*n].values[place[*n]].0.clone());
        table.rows.push(heads.chain(cells(&report, fails)).collect());
        if let Some(&x) = many.first() {
            let line: Vec<String> =
                many[1..].iter().map(|n| format!("{} {}", axes[*n].name, axes[*n].values[place[*n]].0)).collect();
            let at = axes[x].values[place[x]].1;
            let add = |lines: &mut Vec<(String, Vec<(f64, f64)>)>, name: String, y: f64| match lines
                .iter_mut()
                .find(|one| one.0 == name)
            {
                Some(one) => one.1.push((at, y)),
                None => lines.push((name, vec![(at, y)])),
            };
            let name = line.join(", ");
            add(&mut latency, format!("{name} median").trim().into(), report.latency_us.median);
            add(&mut latency, format!("{name} 99 %").trim().into(), report.latency_us.p99);
            add(&mut throughput, if name.is_empty() { "all hosts".into() } else { name }, report.throughput / 1e9);
        }
        // The last axis varies fastest.
        for n in (0..axes.len()).rev() {
            place[n] += 1;
            if place[n] < axes[n].values.len() {
                break;
            }
            place[n] = 0;
        }
    }
    let form: Form = args.topology[0].parse()?;
    let protocol = lab.parameters.protocol(&args.protocol)?;
    let what = if args.distance.is_empty() { args.traffic.clone() } else { "host 0 alone".into() };
    table.title =
        format!("{what} traffic on {}; link {}, protocol {}", args.topology.join(", "), args.link, args.protocol);
    table.remarks.push(format!("routes of {form}: {}", Net::new(form, protocol.one_way)?.routes()));
    if let Some(&x) = many.first() {
        let x = if axes[x].name == AXES[0] { "hosts" } else { axes[x].name };
        let plot = |what: &str, y: &str, lines| {
            let (name, title) = (format!("{what}-{x}"), format!("{what} against {x}: {}", table.title));
            Plot { name, title, x: x.into(), y: y.into(), lines }
        };
        table.plots = vec![plot("latency", "us", latency), plot("throughput", "GB/s", throughput)];
    }
    Ok(vec![table])
}

fn plan<'a>(lab: &Lab, args: &SweepArgs, value: &impl Fn(&str) -> Option<&'a (String, f64)>) -> Result<Plan> {
    let text = |name| value(name).map_or("", |value| value.0.as_str());
    let number = |name| value(name).map_or(0.0, |value| value.1);
    let form: Form = text("topology").parse()?;
    let mut protocol = lab.parameters.protocol(&args.protocol)?;
    if value("chunk").is_some() {
        protocol.chunk = number("chunk") as u64;
    }
    if let Some(lane) = &args.lane {
        protocol.lane = bytes(lane)?;
    }
    let bytes = number("bytes") as u64;
    let time = us(args.time);
    let pacing = match args.window {
        Some(open) => Pacing::Window { open, count: args.count },
        None => Pacing::Load { load: number("load"), time, warm_up: time / 10 },
    };
    let traffic = match (value("distance"), args.traffic.strip_prefix("trace:")) {
        (Some((_, hops)), _) => {
            let to = *hops as usize;
            ensure!((1..form.hosts()).contains(&to), "no host of {form} is {to} hops away from host 0");
            ensure!(
                Net::new(form, protocol.one_way)?.distance(0, to) == to,
                "on {form} host {to} is nearer than {to} hops"
            );
            Traffic::Made { pattern: Pattern::Pair(0, to), pacing, bytes }
        }
        (None, Some(file)) => {
            let text = std::fs::read_to_string(Path::new(file)).with_context(|| format!("cannot read {file}"))?;
            Traffic::trace(&text, form.hosts()).with_context(|| file.to_string())?
        }
        (None, None) => match Pattern::parse(&args.traffic) {
            Some(pattern) => Traffic::Made { pattern, pacing, bytes },
            None => bail!(
                "unknown traffic {:?}; allowed: neighbour, uniform, opposite, all-to-all, incast, trace:FILE",
                args.traffic
            ),
        },
    };
    let (failures, loss) = (number("failures") as usize, number("loss"));
    let outages = if failures > 0 { outages(failures, form.hosts(), time) } else { args.down.clone() };
    let retry = args.retry || loss > 0.0 || !outages.is_empty() || args.failures.len() > 1;
    Ok(Plan {
        form,
        links: vec![lab.parameters.link(&args.link)?],
        host: lab.parameters.host(&args.host)?,
        protocol,
        threads: number("threads") as usize,
        traffic,
        faults: Faults { retry, loss, outages },
        seed: lab.seed,
    })
}

/// Returns outages of links one after the other, each for half of the time until the next.
fn outages(count: usize, hosts: usize, time: Time) -> Vec<Outage> {
    let each = time / count as u64;
    let outage = |n: usize| {
        let down = n as u64 * each + each / 4;
        Outage { cable: n % hosts, down, up: down + each / 2 }
    };
    (0..count).map(outage).collect()
}

fn cells(report: &Report, fails: bool) -> Vec<String> {
    let latency = report.latency_us;
    let mut cells = vec![
        report.messages.to_string(),
        number(latency.mean),
        number(latency.median),
        number(latency.p99),
        number(report.throughput / 1e9),
        number(report.per_sender / 1e9),
        format!("{:.0} %", 100.0 * report.busiest),
        report.waits.to_string(),
    ];
    if fails {
        cells.extend([report.lost, report.resent, report.reroutes].map(|count| count.to_string()));
    }
    cells
}

/// Checks the properties that every run must have.
fn check(table: &mut Table, report: &Report) {
    if report.bytes_in != report.bytes_out {
        table.failed.push(format!("{} bytes were sent and {} have arrived", report.bytes_in, report.bytes_out));
    }
    if report.overtaken > 0 {
        table.failed.push(format!("{} messages have overtaken others of their flow", report.overtaken));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: SweepArgs,
    }

    fn sweep(line: &str) -> Result<Vec<Table>> {
        let args = Line::try_parse_from(std::iter::once("x").chain(line.split_whitespace()))?.args;
        run(&Lab { parameters: crate::lab::parameters(crate::lab::PARAMETERS, "x")?, seed: 1 }, &args)
    }

    #[test]
    fn lists_and_sizes_are_read_or_refused() {
        assert_eq!(list("0.1..0.4").unwrap(), [0.1, 0.2, 0.3, 0.4]);
        assert_eq!(list("0.5,2").unwrap(), [0.5, 2.0]);
        assert_eq!(list("1..2:0.5").unwrap(), [1.0, 1.5, 2.0]);
        assert!(list("1..x").is_err() && list("2..1").is_err() && list("0..1:0").is_err());
        assert_eq!((bytes("8K").unwrap(), bytes("1M").unwrap(), bytes("7").unwrap()), (8192, 1 << 20, 7));
        assert!(bytes("K").is_err() && bytes("0").is_err() && bytes("").is_err());
    }

    #[test]
    fn every_axis_can_be_swept() {
        for (line, rows, plots) in [
            ("--topology ring:4,torus:3x3 --load 0.2 --time 200", 2, 2),
            ("--topology ring:6 --distance 1,2,3 --window 2 --count 5", 3, 2),
            ("--threads 1,2 --load 0.2..0.4:0.1 --time 100 --traffic opposite", 6, 2),
            ("--chunk 2K,8K --bytes 4K,20K --time 100", 4, 2),
            ("--failures 0,1 --time 400000 --load 0.002 --topology ring:4", 2, 2),
            ("--loss 0,0.01 --window 2 --count 10 --topology ring:4", 2, 2),
            ("--time 100 --traffic incast", 1, 0),
        ] {
            let tables = sweep(line).unwrap_or_else(|error| panic!("{line}: {error:#}"));
            assert_eq!((tables[0].rows.len(), tables[0].plots.len()), (rows, plots), "{line}");
            assert_eq!(tables[0].failed, Vec::<String>::new());
            tables[0].plots.iter().for_each(|plot| assert!(plot.svg().is_ok(), "{line}"));
        }
    }

    #[test]
    fn what_cannot_be_is_an_error() {
        for (line, what) in [
            ("--topology mesh:4", "mesh:4"),
            ("--traffic noise", "noise"),
            ("--traffic trace:/no/such/file", "/no/such/file"),
            ("--link gen9", "gen9"),
            ("--distance 5", "nearer"),
            ("--threads 0", "threads"),
        ] {
            let error = format!("{:#}", sweep(line).err().expect(line));
            assert!(error.contains(what), "{line}: {error}");
        }
    }
}
