//! The ways of the models that the experiments compare: see `settings::PaperModel`.

use super::{Thresholds, LONG_HEADER, SHORT_HEADER};
use ntbring_queue::PaperModel;

impl Thresholds {
    /// Those of a model, given production's and the most that one entry holds.
    pub fn of_model(self, model: PaperModel, packed_limit: usize) -> Thresholds {
        // The same for all models that do not ask, so that they differ in nothing else: one entry
        // (two, if the header is split off) as long as there is room for two, then pieces.
        let (packed_max, eager_max) = match model {
            PaperModel::All => return self,
            // The receiver is asked about everything that has a payload.
            PaperModel::ZeroCopyReceive => (SHORT_HEADER, LONG_HEADER),
            _ => (packed_limit / 2, packed_limit / 2),
        };
        Thresholds { packed_max, eager_max, near_eager_max: eager_max, contested: false, both_min: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn production_is_left_alone_and_the_others_pack_alike() {
        let production = Thresholds {
            packed_max: 8192,
            eager_max: 65536,
            near_eager_max: 4096,
            contested: true,
            both_min: Some(1 << 20),
        };
        assert_eq!(production.of_model(PaperModel::All, 50_000), production);
        let packing = [PaperModel::Plain, PaperModel::PlainPacked, PaperModel::Queue, PaperModel::ZeroCopySend];
        assert!(packing.iter().all(|&model| production.of_model(model, 50_000).packed_max == 25_000));
        assert_eq!(production.of_model(PaperModel::ZeroCopyReceive, 50_000).eager_max, LONG_HEADER);
    }
}
