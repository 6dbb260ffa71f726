//! Selection of thresholds from measured times.

use super::plan::Method;
use ntbring_endpoint::Settings;
use ntbring_settings::Setting;
use ntbring_zerocopy::table::{Threshold, DEFAULTS, EAGER_MAX, PACKED_MAX, SINGLE_COPY, SPLIT_COPY};
use ntbring_zerocopy::{SplitCopy, LONG_HEADER};
use serde::{Deserialize, Serialize};

/// Relative gain that another threshold must give for the messages between it and the default to replace the default.
const WORTH: f64 = 0.03;

/// Largest share of disturbed batches; with more, the results mainly show the load by other processes.
const DISTURBED_MOST: f64 = 0.1;

/// Results of a measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Largest size of header and payload in one entry, in bytes.
    pub packed_max: usize,
    /// True if the kernel could copy between the two ranks.
    pub reached: bool,
    /// Share of batches that took more than twice as long as others of the same kind, because another process had one
    /// of the cores.
    pub disturbed: f64,
    /// All measured times.
    pub figures: Vec<Figure>,
}

/// One-way time of messages of one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Payload in bytes.
    pub bytes: usize,
    /// Transfer method.
    pub way: Method,
    /// Half of the round-trip time in microseconds.
    pub us: f64,
}

impl Figures {
    /// Returns true if other processes used the cores so often that the results are not reliable.
    pub fn is_disturbed(&self) -> bool {
        self.disturbed > DISTURBED_MOST
    }

    /// Adds a measured time.
    pub fn add(&mut self, bytes: usize, way: Method, us: f64) {
        self.figures.push(Figure { bytes, way, us });
    }

    /// Returns the time of a message in microseconds.
    pub fn time(&self, bytes: usize, way: Method) -> Option<f64> {
        self.figures.iter().find(|f| f.bytes == bytes && f.way == way).map(|f| f.us)
    }

    /// Returns all sizes in bytes, in ascending order.
    pub fn sizes(&self) -> Vec<usize> {
        let mut sizes: Vec<usize> = self.figures.iter().map(|f| f.bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Returns the mean time for a receiver that waits and one that is late, in microseconds. The sender of a message
    /// does not know which case applies.
    fn mean(&self, bytes: usize, waiting: Method, late: Method) -> Option<f64> {
        Some((self.time(bytes, waiting)? + self.time(bytes, late)?) / 2.0)
    }

    /// Returns the time of an eager message in microseconds: the shorter one of one entry and of chunks.
    pub fn eager(&self, bytes: usize) -> Option<f64> {
        let packed = self.mean(bytes, Method::Packed, Method::PackedLate);
        let chunked = self.mean(bytes, Method::Chunked, Method::ChunkedLate);
        packed.into_iter().chain(chunked).reduce(f64::min)
    }

    /// Returns the fastest method, if there was a choice. For eager methods the mean of waiting and late receivers
    /// counts.
    pub fn winner(&self, bytes: usize) -> Option<Method> {
        let offered = [Method::Streamed, Method::Single, Method::Both];
        let mut all: Vec<(f64, Method)> =
            offered.into_iter().filter_map(|way| Some((self.time(bytes, way)?, way))).collect();
        for (waiting, late) in [(Method::Packed, Method::PackedLate), (Method::Chunked, Method::ChunkedLate)] {
            all.extend(self.mean(bytes, waiting, late).map(|us| (us, waiting)));
        }
        all.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, way)| way)
    }
}

/// Selected value of a threshold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// Name of the setting.
    pub name: &'static str,
    /// Default value.
    pub default: &'static str,
    /// Selected value; None if it could not be measured here.
    pub chosen: Option<String>,
    /// Time saved for the messages that use another method than by default, in per cent.
    pub saved: f64,
}

/// Times that are compared at one size: the size in bytes, the time below the threshold, the time above it.
type Pair = (usize, f64, f64);

/// Selects the values of all thresholds.
pub fn choose(figures: &Figures) -> Vec<Choice> {
    let pairs = |most: usize, first: &dyn Fn(usize) -> Option<f64>, second: &dyn Fn(usize) -> Option<f64>| {
        let sizes = figures.sizes().into_iter().filter(|&bytes| bytes + LONG_HEADER <= most);
        sizes.filter_map(|bytes| Some((bytes, first(bytes)?, second(bytes)?))).collect::<Vec<Pair>>()
    };
    let time = |way| move |bytes| figures.time(bytes, way);
    let eager = |bytes| figures.eager(bytes);
    let up_to = |default: usize| move |bytes: usize| bytes + LONG_HEADER <= default;

    let packed = pairs(figures.packed_max, &time(Method::Packed), &time(Method::Chunked));
    let offered = pairs(EAGER_MAX.most as usize, &eager, &time(Method::Streamed));
    // A message of the largest size that the setting allows has no room for its header.
    let single = pairs(SINGLE_COPY.most as usize, &eager, &time(Method::Single));
    let both = pairs(usize::MAX, &time(Method::Single), &time(Method::Both));

    let default = Settings::default();
    let auto = match DEFAULTS.split_copy {
        SplitCopy::Auto(bytes) | SplitCopy::From(bytes) => bytes as usize,
        SplitCopy::Never => usize::MAX,
    };
    let single_default = default.limits.single_copy.least().unwrap_or(default.limits.eager_max);
    vec![
        of(&PACKED_MAX, &packed, up_to(default.limits.packed_max), size, figures.packed_max),
        of(&EAGER_MAX, &offered, up_to(default.limits.eager_max), size, EAGER_MAX.most as usize),
        of(
            &SINGLE_COPY,
            &single,
            up_to(single_default),
            |bytes| format!("auto:{}", size(bytes)),
            SINGLE_COPY.most as usize,
        ),
        of(
            &SPLIT_COPY,
            &both,
            |bytes| bytes < auto,
            |bytes| if bytes == usize::MAX { "off".into() } else { format!("auto:{}", size(bytes)) },
            usize::MAX,
        ),
    ]
}

/// Selects the value of one threshold. `below` returns true for sizes below the default, `written` formats a size as
/// a value of the setting, and `end` is the size to format if all sizes are below the threshold.
fn of(
    threshold: &'static Threshold,
    pairs: &[Pair],
    below: impl Fn(usize) -> bool,
    written: impl Fn(usize) -> String,
    end: usize,
) -> Choice {
    let Setting { name, default, .. } = threshold.setting;
    if pairs.is_empty() {
        return Choice { name, default, chosen: None, saved: 0.0 };
    }
    let usual = pairs.iter().filter(|pair| below(pair.0)).count();
    let (best, saved) = crossover(pairs, usual);
    let chosen = match best {
        best if best == usual => default.to_string(),
        best if best == pairs.len() => written(end),
        // The middle between the last size of the one method and the first size of the other.
        best => written(best.checked_sub(1).map_or(0, |last| pairs[last].0).midpoint(pairs[best].0)),
    };
    Choice { name, default, chosen: Some(chosen), saved: 100.0 * saved }
}

/// Returns the number of sizes that should use the first method, and the relative time saved for the sizes that
/// change the method. `usual` sizes use the first method by default. All sizes are considered together: a single
/// outlier, by chance or because of a cache effect, decides nothing.
fn crossover(pairs: &[Pair], usual: usize) -> (usize, f64) {
    // Logarithms make a relative gain on a short time count as much as one on a long time.
    let cost = |first: usize| -> f64 {
        pairs.iter().enumerate().map(|(i, pair)| if i < first { pair.1.ln() } else { pair.2.ln() }).sum()
    };
    let costs: Vec<f64> = (0..=pairs.len()).map(cost).collect();
    let best = (0..costs.len()).min_by(|&a, &b| costs[a].total_cmp(&costs[b])).unwrap_or(usual);
    if best == usual {
        return (usual, 0.0);
    }
    let saved = 1.0 - ((costs[best] - costs[usual]) / best.abs_diff(usual) as f64).exp();
    if saved >= WORTH {
        (best, saved)
    } else {
        (usual, 0.0)
    }
}

/// Formats a number of bytes as in a setting.
pub fn size(bytes: usize) -> String {
    match bytes {
        0 => "0".into(),
        n if n % (1 << 20) == 0 => format!("{}M", n >> 20),
        n if n % (1 << 10) == 0 => format!("{}K", n >> 10),
        n => n.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: usize = 1 << 10;

    fn figures(times: impl Fn(usize, Method) -> Option<f64>) -> Figures {
        let mut figures = Figures { packed_max: 50_000, reached: true, ..Figures::default() };
        for bytes in [K, 2 * K, 4 * K, 8 * K, 16 * K, 32 * K, 64 * K, 128 * K, 256 * K] {
            for way in Method::ALL {
                if let Some(us) = times(bytes, way) {
                    figures.add(bytes, way, us);
                }
            }
        }
        figures
    }

    /// Linear cost model of each method: time per message, time per KiB.
    fn lines(way: Method) -> (f64, f64) {
        match way {
            Method::Packed => (0.2, 0.2),
            Method::Chunked => (0.8, 0.1),
            Method::PackedLate => (0.2, 0.3),
            Method::ChunkedLate => (0.8, 0.2),
            Method::Streamed => (3.0, 0.1),
            Method::Single => (2.0, 0.05),
            Method::Both => (5.0, 0.025),
        }
    }

    fn chosen(figures: &Figures) -> Vec<Option<String>> {
        choose(figures).into_iter().map(|choice| choice.chosen).collect()
    }

    #[test]
    fn thresholds_are_where_the_lines_cross() {
        let figures = figures(|bytes, way| {
            let (message, kib) = lines(way);
            Some(message + kib * (bytes / K) as f64)
        });
        // Packed and chunked meet at 6 KiB; eager and streamed at 2.2 / 0.05 = 44 KiB; eager and single at 1.2 / 0.1 =
        // 12 KiB; single and both at 3 / 0.025 = 120 KiB.
        let found: Vec<String> = chosen(&figures).into_iter().flatten().collect();
        assert_eq!(found, ["6K", "48K", "auto:12K", "auto:96K"]);
        assert_eq!(
            [K, 16 * K, 256 * K].map(|b| figures.winner(b).unwrap()),
            [Method::Packed, Method::Single, Method::Both]
        );
        assert!(choose(&figures)[1].saved > 0.0);
    }

    #[test]
    fn a_default_stays_where_nothing_better_was_found() {
        let alike = figures(|bytes, way| {
            // Noise that is smaller than the smallest gain that counts.
            let noise = 1.0 + 0.01 * ((bytes / K + way as usize) % 2) as f64;
            Some(noise * (bytes / K) as f64)
        });
        for choice in choose(&alike) {
            assert_eq!((choice.chosen.as_deref(), choice.saved), (Some(choice.default), 0.0));
        }
    }

    #[test]
    fn a_single_size_out_of_line_decides_nothing() {
        let pairs: Vec<Pair> =
            (0..10).map(|i| (i, if i < 6 { 1.0 } else { 2.0 }, if i == 2 { 0.9 } else { 1.5 })).collect();
        assert_eq!(crossover(&pairs, 3).0, 6);
        assert_eq!(crossover(&pairs, 6), (6, 0.0));
    }

    #[test]
    fn what_always_wins_has_no_end() {
        let figures = figures(|_, way| {
            Some(if way as usize <= Method::ChunkedLate as usize { 1.0 } else { 9.0 + way as usize as f64 })
        });
        let found = chosen(&figures);
        assert_eq!(found[1..], [Some("66K".into()), Some("auto:64K".into()), Some("off".into())]);
    }

    #[test]
    fn what_cannot_be_measured_is_left_alone() {
        let far = figures(|_, way| (!matches!(way, Method::Single | Method::Both)).then_some(1.0));
        let found = chosen(&far);
        assert_eq!(found[2..], [None, None]);
        assert!(found[0].is_some() && found[1].is_some());
        assert_eq!(chosen(&Figures::default()), [None, None, None, None]);
    }

    #[test]
    fn every_choice_is_a_value_of_its_setting() {
        for seed in 0..200 {
            let time = |bytes: usize, way: Method| {
                0.1 + fastrand::Rng::with_seed(seed ^ (bytes << 8 | way as usize) as u64).f64() * bytes as f64
            };
            let figures = figures(|bytes, way| Some(time(bytes, way)));
            for choice in choose(&figures) {
                let (name, value) = (choice.name.to_string(), choice.chosen.unwrap());
                assert!(Settings::from_vars([(name.clone(), value.clone())]).is_ok(), "{name}={value}");
            }
        }
    }
}
