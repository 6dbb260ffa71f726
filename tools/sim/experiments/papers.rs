//! `sim papers`: the papers' experiments, beside the papers' figures. Nothing here was fitted: the parameters are costs
//! that the papers and other sources report, and deviations of the results are left as they are.

use crate::lab::Lab;
use crate::output::{number, size, Plot, Table};
use anyhow::Result;
use ntbring_sim::agenda::{ms, time_for};
use ntbring_sim::net::Form;
use ntbring_sim::parameters::ProtocolFigures;
use ntbring_sim::plan::Faults;
use ntbring_sim::traffic::{Call, Multicast, Pacing, Pattern, Traffic};
use ntbring_sim::{Plan, Report};

const MIB: u64 = 1 << 20;

/// Message sizes in bytes of paper 3's latency experiment.
const SIZES: [u64; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, MIB];
const HOSTS: [usize; 3] = [3, 4, 5];
const THREADS: [usize; 4] = [1, 2, 4, 8];

/// Numbers of puts that each host has in transit in paper 3's latency experiment. The paper is open to either reading,
/// since a put of OpenSHMEM returns before its acknowledgement has arrived.
const OPEN: [usize; 3] = [1, 2, 4];

/// Single messages: size in bytes, and time in ns for which idle threads poll before they sleep: for ever, or not at
/// all.
const SINGLE: [(u64, u64); 4] = [(8, AWAKE), (8192, AWAKE), (MIB, AWAKE), (8, 0)];
const AWAKE: u64 = 1_000_000_000;

/// Largest distance of forwarded streams in hops.
const FAR: usize = 8;

/// Numbers of hosts of the rings on which a message goes to several hosts, and its size: the largest control message of
/// SPAX.
const RINGS: std::ops::RangeInclusive<usize> = 3..=16;
const CONTROL: u64 = 64;

/// Returns all tables.
pub fn run(lab: &Lab) -> Result<Vec<Table>> {
    let mut summary = Table::new("the papers' figures and the simulator's", &["experiment", "paper", "here", "so"]);
    let mut tables = vec![together(lab, &mut summary)?];
    tables.extend(turnaround(lab, &mut summary)?);
    tables.push(relayed(lab, &mut summary)?);
    tables.push(multicast(lab, &mut summary)?);
    tables.insert(0, summary);
    Ok(tables)
}

/// Adds a line to the summary: the paper's figure, the result here, and an assessment. If ntbring promises the result,
/// a deviation is a failure.
fn compare(summary: &mut Table, what: &str, paper: &str, here: String, kept: Result<bool, bool>) {
    let (verdict, failed) = match kept {
        Ok(true) => ("as promised", false),
        Ok(false) => ("NOT AS PROMISED", true),
        Err(true) => ("the same shape", false),
        Err(false) => ("differs, see docs/simulator.md", false),
    };
    summary.failed.extend(failed.then(|| format!("{what}: {here}")));
    summary.rows.push(vec![what.into(), paper.into(), here, verdict.into()]);
}

fn plan(lab: &Lab, form: Form, protocol: ProtocolFigures, traffic: Traffic) -> Result<Plan> {
    let (links, host) = (vec![lab.parameters.link("gen3x8")?], lab.parameters.host("i7-8700k")?);
    Ok(Plan { form, links, host, protocol, threads: 1, traffic, faults: Faults::default(), seed: lab.seed })
}

fn simulate(table: &mut Table, plan: &Plan) -> Result<Report> {
    let report = ntbring_sim::run(plan)?;
    table.simulated.0 += report.seconds * plan.form.hosts() as f64;
    table.simulated.1 += report.events;
    Ok(report)
}

/// Returns puts one after the other, each of which returns when its data has left, for the time that `count` long ones
/// take.
fn puts(pattern: Pattern, bytes: u64, count: u64) -> Traffic {
    let time = ms(1) + count * time_for(bytes, 3_000_000_000);
    Traffic::Made { pattern, pacing: Pacing::Local { time, warm_up: time / 5 }, bytes }
}

/// Returns traffic with that number of messages of each host in transit: a sender sends the next one when it knows that
/// one has arrived.
fn rounds(pattern: Pattern, bytes: u64, open: usize) -> Traffic {
    Traffic::Made { pattern, pacing: Pacing::Window { open, count: 30 }, bytes }
}

/// Formats the range of some percentages.
fn range(values: &[f64]) -> String {
    let (low, high) = values.iter().fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(*v), high.max(*v)));
    format!("{low:+.0} to {high:+.0} %")
}

/// Paper 2: one link alone, and all hosts sending at once.
fn together(lab: &Lab, summary: &mut Table) -> Result<Table> {
    let header = ["size", "PEX8749 alone", "all at once", "drop", "PEX8733 alone", "all at once", "drop"];
    let mut table = Table::new("paper 2: DMA to the right neighbour on a ring of 3, GB/s", &header);
    let [slow, fast] = ["pex8749", "pex8733"].map(|name| lab.parameters.link(name));
    let (slow, fast) = (slow?, fast?);
    let (mut drops, mut lines) = (Vec::new(), vec![Vec::new(); 4]);
    for bytes in (10..=19).map(|bits| 1u64 << bits) {
        let rate = |table: &mut Table, pattern: Pattern| -> Result<Vec<f64>> {
            let protocol = lab.parameters.protocol("ring2019")?;
            let mut plan = plan(lab, Form::Ring(3), protocol, puts(pattern, bytes, 60))?;
            // The link between hosts 2 and 0 is the faster one.
            plan.links = vec![slow.clone(), slow.clone(), fast.clone()];
            Ok(simulate(table, &plan)?.by_sender)
        };
        let all = rate(&mut table, Pattern::Neighbour)?;
        let alone = [rate(&mut table, Pattern::Pair(0, 1))?[0], rate(&mut table, Pattern::Pair(2, 0))?[2]];
        let values = [(alone[0], all[0]), (alone[1], all[2])];
        let cells = values.map(|(alone, all)| {
            let drop = 100.0 * (1.0 - all / alone);
            drops.push(drop);
            [number(alone / 1e9), number(all / 1e9), format!("{drop:.1} %")]
        });
        table.rows.push([vec![size(bytes)], cells.concat()].concat());
        let points = [values[0].0, values[0].1, values[1].0, values[1].1];
        lines.iter_mut().zip(points).for_each(|(line, y)| line.push((bytes as f64 / 1024.0, y / 1e9)));
    }
    let last = table.rows.last().map(|row| (row[1].clone(), row[4].clone())).unwrap_or_default();
    let first = drops[0].max(drops[1]);
    let most = drops[drops.len() - 2].max(drops[drops.len() - 1]);
    let names = ["PEX8749 alone", "PEX8749, all at once", "PEX8733 alone", "PEX8733, all at once"];
    let lines = names.map(String::from).into_iter().zip(lines).collect();
    let (name, title) = ("paper2".into(), "one link alone and all at once, 3 hosts".into());
    table.plots.push(Plot { name, title, x: "size, KiB".into(), y: "GB/s".into(), lines });
    let here = format!("{} and {} GB/s", last.0, last.1);
    compare(summary, "2: links alone, 512 KB", "2.6 and 3.5 GB/s", here, Err(true));
    let shape = most < 20.0 && most > first;
    compare(
        summary,
        "2: all at once",
        "a little lower, more so as size grows",
        format!("{first:.1} % lower at 1 KiB, {most:.1} % at 512 KiB"),
        Err(shape),
    );
    Ok(table)
}

/// Paper 3: all hosts put to their neighbour at once; measured until the acknowledgement has gone round the ring.
fn turnaround(lab: &Lab, summary: &mut Table) -> Result<Vec<Table>> {
    let mut tables = Vec::new();
    for open in OPEN {
        tables.push(turnaround_of(lab, open, summary)?);
    }
    let mut shares =
        Table::new("puts of host 0 alone to its neighbour, share of the raw window", &["size", "openshmem", "ntbring"]);
    for bytes in SIZES {
        let mut row = vec![size(bytes)];
        for name in ["openshmem", "ntbring"] {
            let protocol = lab.parameters.protocol(name)?;
            let plan = plan(lab, Form::Ring(5), protocol, puts(Pattern::Pair(0, 1), bytes, 60))?;
            let share = 100.0 * simulate(&mut shares, &plan)?.throughput / plan.links[0].bandwidth as f64;
            row.push(format!("{share:.1} %"));
            match (name, bytes) {
                ("openshmem", MIB) => {
                    let paper = "80 to 85 % (75 to 83 by its numbers)";
                    let like = (75.0..=85.0).contains(&share);
                    compare(summary, "3: put of 1 MiB, of raw", paper, format!("{share:.1} %"), Err(like));
                }
                ("ntbring", MIB) => {
                    let paper = "ours: at least 95 %";
                    compare(summary, "the same, ntbring", paper, format!("{share:.1} %"), Ok(share >= 95.0));
                }
                _ => {}
            }
        }
        shares.rows.push(row);
    }
    tables.push(shares);
    Ok(tables)
}

/// Paper 3's latency experiment with this number of puts in transit from each host.
fn turnaround_of(lab: &Lab, open: usize, summary: &mut Table) -> Result<Table> {
    let mut header = vec!["size".to_string()];
    header.extend(HOSTS.iter().flat_map(|hosts| THREADS.map(|threads| format!("{hosts}h {threads}t"))));
    let heads: Vec<&str> = header.iter().map(String::as_str).collect();
    let what = format!("{open} put{} of each host under way", if open == 1 { "" } else { "s" });
    let title = format!(
        "paper 3: all hosts put to their neighbour at once, {what}: mean turnaround in us (h hosts, t threads)"
    );
    let mut table = Table::new(&title, &heads);
    let protocol = lab.parameters.protocol("openshmem")?;
    // By size, number of hosts, and number of threads.
    let mut times = Vec::new();
    for bytes in SIZES {
        let mut of_size = Vec::new();
        for hosts in HOSTS {
            let mut of_hosts = Vec::new();
            for threads in THREADS {
                let traffic = rounds(Pattern::Neighbour, bytes, open);
                let mut plan = plan(lab, Form::Ring(hosts), protocol.clone(), traffic)?;
                plan.threads = threads;
                of_hosts.push(simulate(&mut table, &plan)?.latency_us.mean);
            }
            of_size.push(of_hosts);
        }
        let cells = of_size.iter().flatten().map(|time| number(*time));
        table.rows.push(std::iter::once(size(bytes)).chain(cells).collect());
        times.push(of_size);
    }
    let change = |from: f64, to: f64| 100.0 * (to / from - 1.0);
    let hosts = times.iter().flat_map(|of_size| (0..2).map(move |n| change(of_size[n][0], of_size[n + 1][0])));
    let of_threads =
        |n: usize| times.iter().flatten().map(move |of_hosts| change(of_hosts[n], of_hosts[n + 1])).collect();
    let lines: [(&str, &str, Vec<f64>, [f64; 2]); 4] = [
        ("3: a host more, 1 thread", "+22 to +36 %", hosts.collect(), [22.0, 36.0]),
        ("3: 1 to 2 threads", "-38 to -45 %", of_threads(0), [-45.0, -38.0]),
        ("3: 2 to 4 threads", "-12 to -25 %", of_threads(1), [-25.0, -12.0]),
        ("3: 4 to 8 threads", "about the same, or worse", of_threads(2), [-5.0, 25.0]),
    ];
    for (name, paper, mut values, [low, high]) in lines {
        values.sort_by(f64::total_cmp);
        let middle = values[values.len() / 2];
        // A few per cent beyond the paper's own range count as the same shape.
        let like = (low - 8.0..=high + 8.0).contains(&middle);
        let here = format!("{}, median {middle:+.0} %", range(&values));
        compare(summary, &format!("{name}; {what}"), paper, here, Err(like));
    }
    let line = |n: usize, threads: usize| {
        SIZES.iter().zip(&times).map(|(bytes, of)| (*bytes as f64 / 1024.0, of[n][threads])).collect()
    };
    let lines = (0..3).map(|n| (format!("{} hosts, 1 thread", HOSTS[n]), line(n, 0)));
    let more = (1..4).map(|t| (format!("5 hosts, {} threads", THREADS[t]), line(2, t)));
    let (name, title) = (format!("paper3-{open}"), format!("turnaround, all hosts put to a neighbour; {what}"));
    table.plots.push(Plot { name, title, x: "size, KiB".into(), y: "us".into(), lines: lines.chain(more).collect() });
    Ok(table)
}

/// ntbring's protocol over several hops: streams of long messages, and single messages.
fn relayed(lab: &Lab, summary: &mut Table) -> Result<Table> {
    let protocol = lab.parameters.protocol("ntbring")?;
    let header =
        ["hops", "1 MiB, GB/s", "of one hop", "4 MiB, GB/s", "of one hop", "8 B, us", "8 KiB", "1 MiB", "8 B, asleep"];
    let mut table = Table::new(
        "ntbring's protocol on gen3x8: streams from host 0, and messages one at a time, by distance",
        &header,
    );
    let form = Form::Ring(2 * FAR + 1);
    let (mut rates, mut times) = (vec![Vec::new(); 2], vec![Vec::new(); 4]);
    for hops in 1..=FAR {
        let mut row = vec![hops.to_string()];
        for (rates, bytes) in rates.iter_mut().zip([MIB, 4 * MIB]) {
            let traffic = puts(Pattern::Pair(0, hops), bytes, 12);
            let rate = simulate(&mut table, &plan(lab, form, protocol.clone(), traffic)?)?.throughput;
            rates.push(rate);
            row.extend([number(rate / 1e9), format!("{:.1} %", 100.0 * rate / rates[0])]);
        }
        for (times, (bytes, spin)) in times.iter_mut().zip(SINGLE) {
            let traffic = rounds(Pattern::Pair(0, hops), bytes, 1);
            let protocol = ProtocolFigures { spin_ns: spin, ..protocol.clone() };
            let time = simulate(&mut table, &plan(lab, form, protocol, traffic)?)?.latency_us.median;
            times.push(time);
            row.push(number(time));
        }
        table.rows.push(row);
    }
    for (rates, bytes) in rates.iter().zip(["1 MiB", "4 MiB"]) {
        let least = rates.iter().map(|rate| rate / rates[0]).fold(1.0, f64::min);
        compare(
            summary,
            &format!("streams of {bytes} over 2 to 8 hops"),
            "ours: at least 95 % of one hop",
            format!("{:.1} %", 100.0 * least),
            Ok(least >= 0.95),
        );
    }
    for (times, bytes) in times.iter().zip(["8 B", "8 KiB", "1 MiB", "8 B, all asleep,"]) {
        let off = bend(times);
        compare(
            summary,
            &format!("latency of {bytes} over 1 to 8 hops"),
            "ours: linear in hops",
            format!("at most {:.1} % off a line", 100.0 * off),
            Ok(off < 0.05),
        );
    }
    let line = |values: &[f64]| (1..).map(f64::from).zip(values.iter().copied()).collect();
    let names = ["8 B", "8 KiB", "1 MiB", "8 B, all asleep"].map(String::from);
    let lines = names.into_iter().zip(times.iter().map(|times| line(times))).collect();
    table.plots.push(Plot {
        name: "hops".into(),
        title: "latency by distance".into(),
        x: "hops".into(),
        y: "us".into(),
        lines,
    });
    table.remarks.push("single messages: threads are awake, or (asleep) a doorbell must wake one at every hop".into());
    Ok(table)
}

/// SPAX's control messages to a list of nodes: one packet that hosts pass on, compared with one message to each node.
fn multicast(lab: &Lab, summary: &mut Table) -> Result<Table> {
    let header =
        ["hosts", "to", "hops", "writes, each", "multicast", "us, each", "multicast", "us asleep, each", "multicast"];
    let title =
        format!("paper 4: a message of {CONTROL} B from host 0 to several hosts, until the last one has it, gen3x8");
    let mut table = Table::new(&title, &header);
    let protocol = lab.parameters.protocol("ntbring")?;
    let (mut once, mut lines) = (true, vec![Vec::new(); 2]);
    let mut broadcast = Vec::new();
    for hosts in RINGS {
        let distance = |host: usize| host.min(hosts - host);
        let all: Vec<usize> = (1..hosts).collect();
        let second: Vec<usize> = (1..hosts).filter(|host| host % 2 == 0).collect();
        for (name, to) in [("all", all), ("every second", second)] {
            // With one message to each host, those with the longest routes leave first, which is fastest in total.
            let mut order = to.clone();
            order.sort_by_key(|host| std::cmp::Reverse(distance(*host)));
            let call = |dst: &usize| Call { at: 0, src: 0, dst: *dst, bytes: CONTROL };
            let each = Traffic::Trace(order.iter().map(call).collect());
            let one = Traffic::Multicast(vec![Multicast { at: 0, src: 0, to: to.clone(), bytes: CONTROL }]);
            let mut reports = Vec::new();
            for spin_ns in [AWAKE, 0] {
                for traffic in [&each, &one] {
                    let protocol = ProtocolFigures { spin_ns, ..protocol.clone() };
                    let plan = plan(lab, Form::Ring(hosts), protocol, traffic.clone())?;
                    reports.push(simulate(&mut table, &plan)?);
                }
            }
            let hops = to.iter().map(|host| distance(*host)).max().unwrap_or(0);
            let writes = reports.iter().map(|report| report.packets.to_string()).take(2);
            let times: Vec<f64> = reports.iter().map(|report| report.latency_us.max).collect();
            let row = [hosts.to_string(), name.into(), hops.to_string()].into_iter().chain(writes);
            table.rows.push(row.chain(times.iter().map(|time| number(*time))).collect());
            once &= reports[1].packets < hosts as u64;
            if name == "all" {
                lines.iter_mut().zip(&times).for_each(|(line, time)| line.push((hosts as f64, *time)));
                broadcast = vec![reports[0].packets as f64, reports[1].packets as f64, times[0], times[1]];
            }
        }
    }
    let last = RINGS.end();
    let here = format!(
        "{} instead of {} writes, {} instead of {} us",
        broadcast[1],
        broadcast[0],
        number(broadcast[3]),
        number(broadcast[2])
    );
    let paper = "ours: each link carries it once";
    compare(summary, &format!("4: broadcast on {last} hosts"), paper, here, Ok(once));
    let names = ["a message to each", "multicast"].map(String::from);
    let lines = names.into_iter().zip(lines).collect();
    let (name, title) = ("multicast".into(), format!("broadcast of {CONTROL} B, until the last host has it"));
    table.plots.push(Plot { name, title, x: "hosts".into(), y: "us".into(), lines });
    Ok(table)
}

/// Returns the largest relative deviation of the values from the line through the first and the last.
fn bend(values: &[f64]) -> f64 {
    let last = values.len() - 1;
    let at = |n: usize| values[0] + (values[last] - values[0]) * n as f64 / last as f64;
    values.iter().enumerate().map(|(n, value)| (value - at(n)).abs() / value).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lab() -> Lab {
        Lab { parameters: crate::lab::parameters(crate::lab::PARAMETERS, "x").unwrap(), seed: 1 }
    }

    #[test]
    fn what_is_promised_is_kept_and_what_is_said_of_the_papers_is_so() {
        let tables = run(&lab()).unwrap();
        assert!(tables.iter().all(|table| table.failed.is_empty()), "{}", tables[0].text());
        let verdict = |what: &str| {
            let row = tables[0].rows.iter().find(|row| row[0].starts_with(what));
            row.unwrap_or_else(|| panic!("{what}"))[3].clone()
        };
        for what in ["2: links alone", "2: all at once"] {
            assert_eq!(verdict(what), "the same shape", "{}", tables[0].text());
        }
        tables.iter().flat_map(|table| &table.plots).for_each(|plot| assert!(plot.svg().is_ok()));
    }

    #[test]
    fn a_line_has_no_bend() {
        assert_eq!(bend(&[1.0, 2.0, 3.0]), 0.0);
        assert_eq!(bend(&[1.0, 4.0, 3.0]), 0.5);
    }
}
