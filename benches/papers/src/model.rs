//! The models of the experiment.
//!
//! | model | head and tail | sender | receiver |
//! |---|---|---|---|
//! | `1` none | a control write each, for every entry | copies the payload to a buffer; the header is another entry | copies the payload out of the lane |
//! | `1-packed` | as `1` | copies the payload behind its header; one entry | as `1` |
//! | `2` queue management | lazy head, no tail | as `1-packed` | as `1` |
//! | `3` 2 + zero-copy receive | lazy | copies the payload to a buffer | has posted the destination: the payload is written there |
//! | `4` 2 + zero-copy send | lazy | writes the payload from its memory; the header is another entry | as `1` |
//! | `5` all, selected by size | lazy | by size | by size |

/// The largest payload that model 5 copies on both sides, bytes.
pub const SPLIT_COPY_MAX: usize = 8 << 10;
/// The smallest payload that model 5 copies on neither side, bytes.
pub const NO_COPY_MIN: usize = 16 << 10;

/// The mechanisms that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// `1`: none.
    Plain,
    /// `1-packed`: none, but the header is packed with its payload, so that only queue management makes the difference
    /// to `2`.
    PlainPacked,
    /// `2`: queue management.
    Queue,
    /// `3`: queue management and zero-copy receive.
    ZeroCopyReceive,
    /// `4`: queue management and zero-copy send.
    ZeroCopySend,
    /// `5`: all, selected by size.
    All,
}

/// All models, in the order of the table.
pub const MODELS: [Model; 6] =
    [Model::Plain, Model::PlainPacked, Model::Queue, Model::ZeroCopyReceive, Model::ZeroCopySend, Model::All];

/// The path of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Header and payload are one contiguous write.
    pub packed: bool,
    /// The sender copies the payload to a buffer of its own before it is written to the window.
    pub copied: bool,
    /// The payload is written to the destination that the receiver has posted, if it was posted in time.
    pub placed: bool,
}

impl Way {
    /// A copy on both sides.
    const COPIED: Way = Way { packed: true, copied: true, placed: false };
    /// A copy at the sender only.
    const PLACED: Way = Way { packed: false, copied: true, placed: true };
    /// No copy.
    const DIRECT: Way = Way { packed: false, copied: false, placed: true };
}

impl Model {
    /// Returns its name in the table, on the command line and in figures.
    pub fn name(self) -> &'static str {
        match self {
            Model::Plain => "1",
            Model::PlainPacked => "1-packed",
            Model::Queue => "2",
            Model::ZeroCopyReceive => "3",
            Model::ZeroCopySend => "4",
            Model::All => "5",
        }
    }

    /// Returns the model of that name.
    pub fn parse(name: &str) -> Result<Model, String> {
        let names = || MODELS.map(Model::name).join(", ");
        MODELS.into_iter().find(|model| model.name() == name).ok_or_else(|| format!("there are the models {}", names()))
    }

    /// Returns true if head and tail are control writes of their own, for every entry.
    pub fn is_explicit(self) -> bool {
        matches!(self, Model::Plain | Model::PlainPacked)
    }

    /// Returns true if receivers post the destinations of payloads.
    pub fn places(self) -> bool {
        matches!(self, Model::ZeroCopyReceive | Model::All)
    }

    /// Returns the path of a payload of that many bytes.
    pub fn way(self, len: usize) -> Way {
        match self {
            Model::Plain => Way { packed: false, ..Way::COPIED },
            Model::PlainPacked | Model::Queue => Way::COPIED,
            Model::ZeroCopyReceive => Way::PLACED,
            Model::ZeroCopySend => Way { placed: false, ..Way::DIRECT },
            Model::All if len <= SPLIT_COPY_MAX => Way::COPIED,
            Model::All if len < NO_COPY_MIN => Way::PLACED,
            Model::All => Way::DIRECT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for model in MODELS {
            assert_eq!(Model::parse(model.name()), Ok(model));
        }
        assert!(Model::parse("6").unwrap_err().contains("1-packed"));
    }

    #[test]
    fn model_5_is_one_of_the_others_by_size() {
        let sizes = [0, 1, SPLIT_COPY_MAX, SPLIT_COPY_MAX + 1, NO_COPY_MIN - 1, NO_COPY_MIN];
        let ways = sizes.map(|len| Model::All.way(len));
        assert!(ways[..3].iter().all(|way| *way == Model::Queue.way(1)));
        assert!(ways[3..5].iter().all(|way| *way == Model::ZeroCopyReceive.way(1)));
        assert_eq!(ways[5], Way { packed: false, copied: false, placed: true });
    }

    #[test]
    fn neighbours_in_the_table_differ_by_what_they_are_named_for() {
        let [plain, packed, queue, receive, send] =
            [Model::Plain, Model::PlainPacked, Model::Queue, Model::ZeroCopyReceive, Model::ZeroCopySend]
                .map(|model| (model.is_explicit(), model.way(100)));
        assert_eq!((plain.0, plain.1.copied, plain.1.placed), (packed.0, packed.1.copied, packed.1.placed));
        assert_eq!((packed.0, queue.0), (true, false));
        assert_eq!(packed.1, queue.1);
        assert_eq!((queue.1.copied, receive.1.copied, send.1.copied), (true, true, false));
        assert_eq!((queue.1.placed, receive.1.placed, send.1.placed), (false, true, false));
    }
}
