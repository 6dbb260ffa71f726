//! Rows of settings, and the table of them all.

use std::fmt;

/// The description of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The environment variable.
    pub name: &'static str,
    /// The default, in the notation of the environment.
    pub default: &'static str,
    /// The unit of its number.
    pub unit: &'static str,
    /// The allowed values.
    pub allowed: &'static str,
    /// True if all hosts must have the same value.
    pub shared: bool,
    /// Its effect.
    pub meaning: &'static str,
    /// True if `ntbring tune` may choose the value.
    pub tunable: bool,
}

/// A setting and the parser that stores its value in a crate's own struct of settings.
pub struct Row<G: 'static> {
    /// Its description.
    pub setting: Setting,
    /// Stores the value, or returns the problem with it in words.
    pub parse: fn(&mut G, &str) -> Result<(), String>,
}

/// A parser for the composite struct.
type Parse<S> = Box<dyn Fn(&mut S, &str) -> Result<(), String> + Send + Sync>;

/// All settings of a composite struct `S`, whose fields are the structs of several crates.
pub struct Table<S> {
    rows: Vec<(Setting, Parse<S>)>,
    removed: &'static [(&'static str, &'static str)],
}

impl<S: Default + 'static> Table<S> {
    /// A table without rows.
    pub fn new() -> Table<S> {
        Table { rows: Vec::new(), removed: &[] }
    }

    /// The same table with the rows of one crate, whose struct is the part of `S` that `part` returns.
    pub fn with<G>(mut self, rows: &'static [Row<G>], part: fn(&mut S) -> &mut G) -> Table<S> {
        for row in rows {
            let parse = row.parse;
            self.rows.push((row.setting, Box::new(move |all: &mut S, value: &str| parse(part(all), value))));
        }
        self
    }

    /// The same table, which knows the names of removed settings and a hint for each.
    pub fn without(self, removed: &'static [(&'static str, &'static str)]) -> Table<S> {
        Table { removed, ..self }
    }

    /// The descriptions, in order.
    pub fn settings(&self) -> impl Iterator<Item = &Setting> {
        self.rows.iter().map(|(setting, _)| setting)
    }

    /// The values of these variables, and the defaults of all others; variables that do not begin with `NTBRING_` are
    /// ignored.
    pub fn from_vars(&self, vars: impl IntoIterator<Item = (String, String)>) -> Result<S, SettingError> {
        let mut all = S::default();
        for (name, value) in vars.into_iter().filter(|(name, _)| name.starts_with("NTBRING_")) {
            if !self.settings().any(|setting| setting.name == name) {
                return Err(SettingError::Unknown { hint: self.hint(&name), name });
            }
            self.set(&mut all, &name, &value)?;
        }
        Ok(all)
    }

    /// Stores the value of one setting. Names that are not in the table are ignored.
    pub fn set(&self, all: &mut S, name: &str, value: &str) -> Result<(), SettingError> {
        let Some((setting, parse)) = self.rows.iter().find(|(setting, _)| setting.name == name) else { return Ok(()) };
        let Setting { name, allowed, .. } = *setting;
        parse(all, value.trim()).map_err(|problem| SettingError::Value { name, value: value.into(), problem, allowed })
    }

    /// Returns the text behind the name of an unknown setting: the hint for one that was removed, or the most similar
    /// name, if any is close.
    /// any is close.
    fn hint(&self, name: &str) -> String {
        if let Some((_, hint)) = self.removed.iter().find(|(removed, _)| *removed == name) {
            return hint.to_string();
        }
        let distances = self.settings().map(|setting| (strsim::levenshtein(setting.name, name), setting.name));
        let nearest = distances.min().filter(|(distance, _)| *distance <= 3);
        nearest.map_or_else(String::new, |(_, nearest)| format!(" (did you mean {nearest}?)"))
    }
}

impl<S: Default + 'static> Default for Table<S> {
    fn default() -> Self {
        Table::new()
    }
}

impl<S> fmt::Debug for Table<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.rows.iter().map(|(setting, _)| setting.name)).finish()
    }
}

/// A setting that cannot be used.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum SettingError {
    /// A value that is not allowed.
    #[error("{name}={value:?}: {problem}; allowed: {allowed}")]
    Value {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// The problem with it.
        problem: String,
        /// The allowed values.
        allowed: &'static str,
    },
    /// A variable that does not exist.
    #[error("{name} is not a setting of ntbring{hint}; `ntbring info --config` lists them all")]
    Unknown {
        /// The variable.
        name: String,
        /// The setting with the most similar name, or the replacement of one that was removed; may be empty.
        hint: String,
    },
    /// The file of tuned thresholds cannot be used.
    #[error("{path}, the file of tuned thresholds (NTBRING_TUNED), {problem}; `ntbring tune` writes it, NTBRING_TUNED=off ignores it")]
    Tuned {
        /// The file.
        path: String,
        /// The problem with it.
        problem: String,
    },
}

/// The variables of this process; those with names that are not text are left out.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())))
}
