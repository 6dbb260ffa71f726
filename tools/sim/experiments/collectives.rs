//! `sim collectives`: the time of large collectives on rings, beside the least time that the links and the processors of
//! the hosts allow.

use crate::lab::Lab;
use crate::output::{number, size, Table};
use crate::sweep::bytes;
use anyhow::{ensure, Result};
use clap::Args;
use ntbring_collectives::Kind;
use ntbring_sim::collective::Operation;
use ntbring_sim::net::Form;
use ntbring_sim::parameters::HostFigures;
use ntbring_sim::plan::Faults;
use ntbring_sim::traffic::{Call, Traffic};
use ntbring_sim::{Plan, Report};

/// Command-line options.
#[derive(Args)]
pub struct CollectivesArgs {
    /// Rings of at least 4 hosts: ring:N
    #[arg(long, value_name = "SHAPE,...", value_delimiter = ',', default_value = "ring:4,ring:8,ring:16")]
    topology: Vec<String>,
    /// Sizes in bytes of a vector, or of one host's block of an allgather or alltoall
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', default_value = "8,8K,64K,1M,16M")]
    bytes: Vec<String>,
    /// Name of the link's parameters
    #[arg(long, value_name = "NAME", default_value = LINK)]
    link: String,
    /// Name of the host's parameters
    #[arg(long, value_name = "NAME", default_value = HOST)]
    host: String,
}

const LINK: &str = "gen3x8";
const HOST: &str = "i7-8700k";

const KINDS: [(&str, Kind); 5] = [
    ("broadcast", Kind::Broadcast { root: 0 }),
    ("reduce", Kind::Reduce { root: 0 }),
    ("allreduce", Kind::Allreduce),
    ("allgather", Kind::Allgather),
    ("alltoall", Kind::Alltoall),
];

/// Size in bytes of an element of a reduction.
const ELEMENT: u64 = 8;

/// Largest size in bytes at which only the latency counts.
const SHORT: u64 = 64;

const MIB: u64 = 1 << 20;

/// Time in ns for which idle threads poll before they sleep: for ever.
const AWAKE: u64 = 1_000_000_000;

/// Bytes per second of a processor that copies and reduces in no time.
const FREE: u64 = 1_000_000_000_000_000;

/// Largest ratio of a promised time to its bound.
const RATIO_MAX: f64 = 1.2;

/// Returns the tables: one of the hosts as they are, and one of hosts whose processors are never the limit.
pub fn run(lab: &Lab, args: &CollectivesArgs) -> Result<Vec<Table>> {
    let host = lab.parameters.host(&args.host)?;
    let free = HostFigures { copy: FREE, reduce: FREE, ..host.clone() };
    let title = |what: &str| format!("collectives on rings, link {}, {what}", args.link);
    let real = table(lab, args, &title(&format!("host {}", args.host)), host, false)?;
    let links = table(lab, args, &title("hosts that copy and reduce in no time"), free, true)?;
    Ok(vec![real, links])
}

fn table(lab: &Lab, args: &CollectivesArgs, title: &str, host: HostFigures, is_free: bool) -> Result<Table> {
    let mut table = Table::new(title, &["collective", "hosts", "size", "us", "bound, us", "limit", "ratio", "so"]);
    for (name, kind) in KINDS {
        for shape in &args.topology {
            let form: Form = shape.parse()?;
            let Form::Ring(hosts @ 4..) = form else { anyhow::bail!("{shape} is not a ring of at least 4 hosts") };
            for text in &args.bytes {
                let bytes = bytes(text)?;
                let operation = operation(kind, bytes)?;
                let plan = plan(lab, args, form, &host, Traffic::Collective(operation))?;
                let time = simulate(&mut table, &plan)?.collective_us.max;
                let call = Call { at: 0, src: 0, dst: 1, bytes: ELEMENT };
                let hop = simulate(&mut table, &self::plan(lab, args, form, &host, Traffic::Trace(vec![call]))?)?;
                let (bound, limit) = bound(kind, hosts as u64, bytes, hop.latency_us.max, &plan);
                let ratio = time / bound;
                let is_default = args.link == LINK && args.host == HOST;
                let verdict = match (is_default && is_promised(kind, hosts as u64, bytes, is_free), ratio <= RATIO_MAX)
                {
                    (true, true) => "as promised",
                    (true, false) => "NOT AS PROMISED",
                    (false, true) => "reached",
                    (false, false) => "not promised",
                };
                let of = format!("{name} of {} on {hosts} hosts", size(bytes));
                table.failed.extend((verdict == "NOT AS PROMISED").then(|| format!("{of}: {ratio:.2} of its bound")));
                let cells = [number(time), number(bound), limit.into(), format!("{ratio:.2}"), verdict.into()];
                table.rows.push([vec![name.into(), hosts.to_string(), size(bytes)], cells.to_vec()].concat());
            }
        }
    }
    Ok(table)
}

/// Returns the collective of that size. A block is one element, as in a job.
fn operation(kind: Kind, bytes: u64) -> Result<Operation> {
    let (elements, element_size) = match kind {
        Kind::Broadcast { .. } => (bytes, 1),
        Kind::Reduce { .. } | Kind::Allreduce => (bytes / ELEMENT, ELEMENT),
        Kind::Allgather | Kind::Alltoall => (1, bytes),
    };
    ensure!(elements > 0, "a reduction has at least {ELEMENT} bytes");
    Ok(Operation { kind, elements, element_size, in_place: false })
}

fn plan(lab: &Lab, args: &CollectivesArgs, form: Form, host: &HostFigures, traffic: Traffic) -> Result<Plan> {
    let mut protocol = lab.parameters.protocol("ntbring")?;
    protocol.spin_ns = AWAKE;
    let (links, host) = (vec![lab.parameters.link(&args.link)?], host.clone());
    Ok(Plan { form, links, host, protocol, threads: 1, traffic, faults: Faults::default(), seed: lab.seed })
}

/// Runs a plan. Fails if a message was lost or has overtaken another one.
fn simulate(table: &mut Table, plan: &Plan) -> Result<Report> {
    let report = ntbring_sim::run(plan)?;
    ensure!(report.bytes_in == report.bytes_out, "{} of {} bytes arrived", report.bytes_out, report.bytes_in);
    ensure!(report.overtaken == 0, "{} messages have overtaken others", report.overtaken);
    table.simulated.0 += report.seconds * plan.form.hosts() as f64;
    table.simulated.1 += report.events;
    Ok(report)
}

/// Returns a lower bound of a collective's time in us, of which `hop` is the time of a hop, and its cause: the latency or
/// the bandwidth of links, or the copies of the hosts' processors. docs/simulator.md derives it.
fn bound(kind: Kind, hosts: u64, bytes: u64, hop: f64, plan: &Plan) -> (f64, &'static str) {
    let (n, m) = (hosts as f64, bytes as f64);
    let latency = (hosts / 2) as f64 * hop;
    let others = n - 1.0;
    // Number of links that the blocks of one host cross.
    let crossed = (hosts * hosts / 4) as f64;
    let (carried, copied, reduced) = match kind {
        Kind::Broadcast { .. } => (m / 2.0, 2.0 * m * others / n, 0.0),
        Kind::Reduce { .. } => (m / 2.0, 2.0 * m * others / n, m * others / n),
        Kind::Allreduce => (m * others / n, 4.0 * m * others / n, m * others / n),
        Kind::Allgather => (m * others / 2.0, 2.0 * m * others + m, 0.0),
        Kind::Alltoall => (m * crossed / 2.0, 2.0 * m * others + m, 0.0),
    };
    let links = 1e6 * carried / plan.links[0].bandwidth as f64;
    let links = match kind {
        Kind::Broadcast { .. } | Kind::Reduce { .. } => latency + links,
        _ => hop + links,
    };
    let copies = 1e6 * (copied / plan.host.copy as f64 + reduced / plan.host.reduce as f64);
    match () {
        _ if copies > links && copies > latency => (copies, "copies"),
        _ if links > 2.0 * latency => (links, "bandwidth"),
        _ => (links.max(latency), "latency"),
    }
}

/// Returns true if ntbring promises a time within [`RATIO_MAX`] of the bound, on the default links and hosts, or on hosts
/// whose processors are never the limit.
fn is_promised(kind: Kind, hosts: u64, bytes: u64, is_free: bool) -> bool {
    match kind {
        Kind::Alltoall if hosts > 5 => false,
        _ if bytes <= SHORT => true,
        Kind::Broadcast { .. } | Kind::Reduce { .. } => bytes >= hosts * MIB && (is_free || hosts >= 16),
        Kind::Allreduce => bytes >= hosts * MIB / 16,
        // The block of the opposite host takes one of two equally long ways.
        Kind::Allgather => bytes >= MIB && (!is_free || hosts % 2 == 1 || hosts >= 8),
        Kind::Alltoall => bytes >= MIB && is_free && hosts == 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: CollectivesArgs,
    }

    fn tables(line: &str) -> Result<Vec<Table>> {
        let args = Line::try_parse_from(std::iter::once("x").chain(line.split_whitespace()))?.args;
        run(&Lab { parameters: crate::lab::parameters(crate::lab::PARAMETERS, "x")?, seed: 1 }, &args)
    }

    #[test]
    fn what_is_promised_is_kept() {
        for line in ["--topology ring:4,ring:5 --bytes 8,1M,5M", "--topology ring:16 --bytes 8,1M"] {
            let tables = tables(line).unwrap();
            let promised = |table: &Table| table.rows.iter().filter(|row| row[7] == "as promised").count();
            for table in &tables {
                assert_eq!(table.failed, Vec::<String>::new(), "{}", table.text());
                assert!(promised(table) >= 5, "{}", table.text());
            }
        }
    }

    #[test]
    fn no_time_is_below_its_bound() {
        let tables = tables("--topology ring:4,ring:7 --bytes 8,20K,300K --link pex8733").unwrap();
        for row in tables.iter().flat_map(|table| &table.rows) {
            assert!(row[6].parse::<f64>().unwrap() >= 0.99, "{row:?}");
            assert!(row[7] == "reached" || row[7] == "not promised", "{row:?}");
        }
    }

    #[test]
    fn what_cannot_be_is_an_error() {
        for (line, what) in [
            ("--topology ring:3", "at least 4 hosts"),
            ("--topology line:5", "at least 4 hosts"),
            ("--bytes 4", "at least 8 bytes"),
            ("--link gen9", "gen9"),
        ] {
            let error = format!("{:#}", tables(line).err().expect(line));
            assert!(error.contains(what), "{line}: {error}");
        }
    }
}
