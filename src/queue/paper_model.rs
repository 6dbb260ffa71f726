//! The five models of MPI-VMMC (KAIST 2000): what its authors left out to measure what each
//! mechanism is worth. Production is the fifth. docs/experiments.md tells the story.
//!
//! | model | head and tail | sender | receiver |
//! |---|---|---|---|
//! | `1` | a control write each, for every entry | copies the payload to a buffer; header and payload are two entries | the default buffer, from there to the user's |
//! | `1-packed` | the same | copies both to a buffer, from which they are one entry | the same |
//! | `2` | lazy | as `1-packed` | the same |
//! | `3` | lazy | copies, into one entry where there is one | names its buffer first (redirection) |
//! | `4` | lazy | header and payload are two entries, the payload from where it lies | as `1` |
//! | `5` | lazy | by size | by size |

/// Which mechanisms are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaperModel {
    /// `1`: none.
    Plain,
    /// `1-packed`: none, but for the header that goes with the payload: differs from `2` by queue
    /// management alone.
    PlainPacked,
    /// `2`: queue management.
    Queue,
    /// `3`: that, and zero-copy receive.
    ZeroCopyReceive,
    /// `4`: that of `2`, and zero-copy send.
    ZeroCopySend,
    /// `5`: all, selected by size.
    All,
}

use PaperModel::*;

/// With their names, by their codes.
const NAMED: [(&str, PaperModel); 6] =
    [("5", All), ("1", Plain), ("1-packed", PlainPacked), ("2", Queue), ("3", ZeroCopyReceive), ("4", ZeroCopySend)];

impl PaperModel {
    /// The model of that name.
    pub fn parse(text: &str) -> Result<PaperModel, String> {
        let found = NAMED.iter().find(|(name, _)| *name == text);
        found.map(|(_, model)| *model).ok_or_else(|| "not a model".into())
    }

    /// A number for each; 0 for production.
    pub fn code(self) -> u8 {
        NAMED.iter().position(|(_, model)| *model == self).unwrap_or(0) as u8
    }

    /// The name of the model with that number.
    pub fn name_of(code: u8) -> String {
        NAMED.get(usize::from(code)).map_or_else(|| format!("unknown ({code})"), |(name, _)| name.to_string())
    }

    /// Whether it is what is used outside experiments.
    pub fn is_production(self) -> bool {
        self == All
    }

    /// Whether heads and tails are control writes of their own.
    pub fn announces(self) -> bool {
        matches!(self, Plain | PlainPacked)
    }

    /// Whether the sender copies the payload before it is written to the window.
    pub fn copies_at_sender(self) -> bool {
        matches!(self, Plain | PlainPacked | Queue | ZeroCopyReceive)
    }

    /// Whether a header never travels with its payload.
    pub fn splits(self) -> bool {
        matches!(self, Plain | ZeroCopySend)
    }

    /// Whether all that arrives stops in the receiver's default buffer.
    pub fn copies_at_receiver(self) -> bool {
        matches!(self, Plain | PlainPacked | Queue | ZeroCopySend)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_have_names_and_codes() {
        for (code, (name, model)) in NAMED.into_iter().enumerate() {
            assert_eq!(PaperModel::parse(name), Ok(model));
            assert_eq!((model.code(), PaperModel::name_of(code as u8).as_str()), (code as u8, name));
        }
        assert!(All.is_production() && All.code() == 0);
        assert!(PaperModel::parse("6").is_err() && PaperModel::name_of(77).contains("77"));
    }

    #[test]
    fn neighbours_in_the_table_differ_in_one_mechanism() {
        let switches = |m: PaperModel| [m.announces(), m.splits(), m.copies_at_sender(), m.copies_at_receiver()];
        assert_eq!(switches(Plain), [true, true, true, true]);
        assert_eq!(switches(PlainPacked), [true, false, true, true]);
        assert_eq!(switches(Queue), [false, false, true, true]);
        assert_eq!(switches(ZeroCopyReceive), [false, false, true, false]);
        assert_eq!(switches(ZeroCopySend), [false, true, false, true]);
        assert_eq!(switches(All), [false; 4]);
    }
}
