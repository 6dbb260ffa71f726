//! The tables of `bench shmem-paper`, and the figures of the paper beside ours.

use super::rows::Group;
use super::sizes::{opposite, pair, ring, HOSTS, OF_THREADS, RAW, SCALED, SIZES, TURNS, UNDER_MODEL};
use crate::bench::figures::{number, Figures};
use crate::bench::papers::efficiency::GEN3X8;
use crate::bench::tables::Table;

/// Size in bytes from which a put is long.
const LONG: u64 = 512 << 10;

/// Shortest time that a put of the turn-around occupies a link, microseconds: far above what a core spends on it.
const OCCUPIED_US: u64 = 200;

/// The links of an experiment with many busy ones.
pub struct Scaled {
    /// Rate at which one core copies into a window while another one copies out of it, MB/s.
    pub copied: f64,
    /// Bandwidth of one link in MB/s.
    pub link: u64,
}

impl Scaled {
    /// Scales links so that the largest ring carries a quarter of this bandwidth.
    pub fn of(copied: f64) -> Self {
        let most = HOSTS.iter().max().copied().unwrap_or(1);
        let link = (copied / 4.0 / most as f64).clamp(10.0, GEN3X8);
        Self { copied, link: link as u64 }
    }

    /// Returns the bandwidth of links for puts of so many bytes, MB/s.
    pub fn bandwidth(&self, bytes: u64) -> u64 {
        self.link.min(bytes / OCCUPIED_US)
    }

    /// Returns the value of `NTBRING_LINK_MODEL` for puts of so many bytes.
    pub fn model(&self, bytes: u64) -> String {
        format!("gen3x8,bandwidth={}M", self.bandwidth(bytes))
    }
}

/// A smallest and a largest value.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range(f64, f64);

impl Range {
    fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        values.into_iter().fold(None, |range, value| match range {
            None => Some(Self(value, value)),
            Some(Self(low, high)) => Some(Self(low.min(value), high.max(value))),
        })
    }

    /// Formats a range of changes.
    fn changes(range: Option<Self>) -> String {
        Self::shown(range, |value| format!("{value:+.0}"))
    }

    /// Formats a range of shares.
    fn shares(range: Option<Self>) -> String {
        Self::shown(range, |value| format!("{value:.0}"))
    }

    fn shown(range: Option<Self>, format: impl Fn(f64) -> String) -> String {
        let Some(Self(low, high)) = range else {
            return "-".to_string();
        };
        match [low, high].map(format) {
            [low, high] if low == high => format!("{low} %"),
            [low, high] => format!("{low} to {high} %"),
        }
    }
}

/// Returns the change from one value to another in per cent.
fn change(from: Option<f64>, to: Option<f64>) -> Option<f64> {
    from.zip(to).map(|(from, to)| 100.0 * (to / from - 1.0))
}

fn shown(value: Option<f64>) -> String {
    value.map_or("-".to_string(), number)
}

fn shown_change(value: Option<f64>) -> String {
    value.map_or("-".to_string(), |value| format!("{value:+.0} %"))
}

fn head(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

fn throughput(figures: &Figures, operation: &str, size: &str) -> Option<f64> {
    figures.median(&pair().shown(&format!("{operation}_bw_{size}")), 2, 0, UNDER_MODEL)
}

fn turn(figures: &Figures, whose: &str, group: &Group, row: &str) -> Option<f64> {
    figures.median(&group.shown(row), group.placement.pes(), 0, whose)
}

/// Returns the growth of the turn-around by a host, in per cent: from each number of hosts to the next.
fn growth(figures: &Figures, row: &str) -> Vec<Option<f64>> {
    let time = |hosts: usize| turn(figures, SCALED, &ring(hosts), row);
    HOSTS.windows(2).map(|pair| change(time(pair[0]), time(pair[1]))).collect()
}

/// Returns the change of the turn-around with each step to more threads, in per cent.
fn gain(figures: &Figures, group: &Group, row: &str) -> Vec<Option<f64>> {
    let time = |name: &str| turn(figures, name, group, row);
    OF_THREADS.windows(2).map(|pair| change(time(pair[0].1), time(pair[1].1))).collect()
}

fn of_link(value: Option<f64>) -> Option<f64> {
    value.map(|value| 100.0 * value / GEN3X8)
}

fn puts_and_gets(figures: &Figures) -> Table {
    let share = |value: Option<f64>| of_link(value).map_or("-".to_string(), |share| format!("{share:.1} %"));
    let row = |(name, bytes): &(&str, u64)| {
        let raw = figures.median("bandwidth", 2, *bytes, RAW);
        let [put, get] = ["put", "get"].map(|operation| throughput(figures, operation, name));
        vec![name.to_string(), shown(raw), share(raw), shown(put), share(put), shown(get), share(get)]
    };
    Table {
        title: format!("(a) throughput under gen3x8, MB/s; 100 % is the link's {GEN3X8:.0} MB/s"),
        header: head(&["size", "raw link", "", "put", "", "get", ""]),
        rows: SIZES.iter().map(row).collect(),
    }
}

fn turn_arounds(figures: &Figures, scaled: &Scaled) -> Table {
    let row = |(row, bytes): &(&str, u64)| {
        let mut cells = vec![row.trim_start_matches("turn_").to_string(), scaled.bandwidth(*bytes).to_string()];
        cells.extend(HOSTS.iter().map(|hosts| shown(turn(figures, SCALED, &ring(*hosts), row))));
        cells.extend(growth(figures, row).into_iter().map(shown_change));
        cells
    };
    let title = "(b) turn-around when all hosts put to a neighbour at once, us".to_string();
    let header = head(&["size", "link MB/s", "3 hosts", "4 hosts", "5 hosts", "3 to 4", "4 to 5"]);
    Table { title, header, rows: TURNS.iter().map(row).collect() }
}

fn threads(figures: &Figures, scaled: &Scaled, group: &Group, what: &str) -> Table {
    let row = |(row, bytes): &(&str, u64)| {
        let mut cells = vec![row.trim_start_matches("turn_").to_string(), scaled.bandwidth(*bytes).to_string()];
        cells.extend(OF_THREADS.iter().map(|(_, name)| shown(turn(figures, name, group, row))));
        cells.extend(gain(figures, group, row).into_iter().map(shown_change));
        cells
    };
    let title = format!("(c) turn-around by transfer threads of a host, {what}, us");
    let header = head(&["size", "link MB/s", "1 thread", "2 threads", "4 threads", "1 to 2", "2 to 4"]);
    Table { title, header, rows: TURNS.iter().map(row).collect() }
}

fn summary(figures: &Figures) -> Table {
    let long = |operation: &'static str| {
        let sizes = SIZES.iter().filter(|(_, bytes)| *bytes >= LONG);
        Range::shares(Range::of(sizes.filter_map(|(name, _)| of_link(throughput(figures, operation, name)))))
    };
    let growths = TURNS.iter().flat_map(|(row, _)| growth(figures, row)).flatten();
    let gains = |step: usize| {
        let of = |group: &Group| Range::of(TURNS.iter().filter_map(|(row, _)| gain(figures, group, row)[step]));
        [ring(HOSTS[0]), opposite()].map(|group| Range::changes(of(&group))).join("; forwarded ")
    };
    let line = |what: &str, paper: &str, ours: String| vec![what.to_string(), paper.to_string(), ours];
    let rows = vec![
        line("put of 512 KiB and more, of the raw link", "75 to 83 %", long("put")),
        line("get of 512 KiB and more, of the raw link", "not in its text", long("get")),
        line("turn-around, each host more", "+22 to +36 %", Range::changes(Range::of(growths))),
        line("1 to 2 threads", "-45 to -38 %", gains(0)),
        line("2 to 4 threads", "-25 to -12 %", gains(1)),
        line("4 to 8 threads", "sometimes worse", "at most 4 (a packet is urgent or bulk, left or right)".to_string()),
    ];
    Table { title: "(d) the paper and ntbring".to_string(), header: head(&["", "paper", "ours"]), rows }
}

/// Returns all tables and what they mean.
pub fn text(figures: &Figures, scaled: &Scaled, rounds: usize) -> String {
    let tables = [
        puts_and_gets(figures),
        turn_arounds(figures, scaled),
        threads(figures, scaled, &ring(HOSTS[0]), "3 hosts that put to a neighbour"),
        threads(figures, scaled, &opposite(), "4 hosts that put to the opposite one"),
        summary(figures),
    ];
    let mut text: String = tables.iter().map(|table| format!("{}\n\n", table.text())).collect();
    text.push_str(&format!(
        "medians of {rounds} rounds. raw link: messages through the window without a library (benches/papers, model 5). put \
         and get: 64 of a size (at most 32 MiB), then quiet. turn-around: a put and the quiet that waits for its reply, of \
         the slowest PE. (b) and (c): two cores copy {:.0} MB/s through a window; all links of 5 hosts together have at \
         most a quarter of that, and a put occupies a link for at least {OCCUPIED_US} us. (c): PEs write their own puts, so to a neighbour threads have little to do; between opposite \
         hosts they forward.\n",
        scaled.copied
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_scaled_to_what_cores_can_copy() {
        let scaled = Scaled::of(20000.0);
        assert_eq!((scaled.link, scaled.model(1 << 20).as_str()), (1000, "gen3x8,bandwidth=1000M"));
        assert_eq!(scaled.bandwidth(4 << 10), 20, "4 KiB in 200 us");
        assert_eq!(Scaled::of(1e6).link, 6000, "never faster than the model");
    }

    #[test]
    fn the_summary_has_ranges_over_the_sizes() {
        let mut figures = Figures::default();
        figures.push(UNDER_MODEL, 2, "near_put_bw_512KiB", 5700.0, "MB/s");
        figures.push(UNDER_MODEL, 2, "near_put_bw_4MiB", 5940.0, "MB/s");
        figures.push(UNDER_MODEL, 2, "near_put_bw_1KiB", 60.0, "MB/s");
        for (hosts, value) in [(3, 100.0), (4, 110.0), (5, 132.0)] {
            figures.push(SCALED, hosts, &format!("turn_4KiB_{hosts}pes"), value, "us");
        }
        for (name, value) in [("shmem-1-thread", 100.0), ("shmem-2-threads", 80.0)] {
            figures.push(name, 3, "turn_1MiB_3pes", value, "us");
        }
        let rows = summary(&figures).rows;
        assert_eq!(rows[0][2], "95 to 99 %");
        assert_eq!((rows[1][2].as_str(), rows[2][2].as_str()), ("-", "+10 to +20 %"));
        assert_eq!((rows[3][2].as_str(), rows[4][2].as_str()), ("-20 %; forwarded -", "-; forwarded -"));
        assert!(text(&figures, &Scaled::of(20000.0), 3).contains("at least 200 us"));
    }
}
