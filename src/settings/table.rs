//! Rows of settings, and the table of them all.

use std::collections::HashMap;
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
    /// Former and present names of renamed settings.
    former: Vec<(&'static str, &'static str)>,
    removed: &'static [(&'static str, &'static str)],
}

/// The value of a setting as the user gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    /// The name that the user used: the present one or a former one.
    pub name: &'static str,
    /// The value.
    pub value: String,
}

/// The values that the user gave, by present name.
pub(crate) type AllGiven = HashMap<&'static str, Given>;

impl<S: Default + 'static> Table<S> {
    /// Returns a table without rows.
    pub fn new() -> Table<S> {
        Table { rows: Vec::new(), former: Vec::new(), removed: &[] }
    }

    /// Returns the same table with the rows of one crate, whose struct is the part of `S` that `part` returns.
    pub fn with<G>(mut self, rows: &'static [Row<G>], part: fn(&mut S) -> &mut G) -> Table<S> {
        for row in rows {
            let parse = row.parse;
            self.rows.push((row.setting, Box::new(move |all: &mut S, value: &str| parse(part(all), value))));
        }
        self
    }

    /// Returns the same table, which also accepts former names of settings: pairs of a former and the present name. A
    /// setting may have several former names; an earlier pair takes precedence.
    pub fn renamed(mut self, former: &'static [(&'static str, &'static str)]) -> Table<S> {
        self.former.extend(former);
        self
    }

    /// Returns the same table, which knows the names of removed settings and a hint for each.
    pub fn without(self, removed: &'static [(&'static str, &'static str)]) -> Table<S> {
        Table { removed, ..self }
    }

    /// Returns the descriptions, in order.
    pub fn settings(&self) -> impl Iterator<Item = &Setting> {
        self.rows.iter().map(|(setting, _)| setting)
    }

    /// Returns the values of these variables, and the defaults of all other settings; variables that do not begin with
    /// `NTBRING_` are ignored.
    pub fn from_vars(&self, vars: impl IntoIterator<Item = (String, String)>) -> Result<S, SettingError> {
        self.parse(&self.given(vars)?.0)
    }

    /// Returns one warning for each of these variables that is a former name of a setting.
    pub fn warnings(&self, vars: impl IntoIterator<Item = (String, String)>) -> Vec<String> {
        self.given(vars).map_or_else(|_| Vec::new(), |(_, warnings)| warnings)
    }

    /// Parses the given values; settings without one have their defaults.
    pub(crate) fn parse(&self, given: &AllGiven) -> Result<S, SettingError> {
        let mut all = S::default();
        for Given { name, value } in self.settings().filter_map(|setting| given.get(setting.name)) {
            self.set(&mut all, name, value)?;
        }
        Ok(all)
    }

    /// Assigns these variables to settings, also those with former names. Returns warnings about the latter. A value
    /// under the present name has precedence over one under a former name.
    pub(crate) fn given(
        &self,
        vars: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(AllGiven, Vec<String>), SettingError> {
        let mut vars: HashMap<_, _> = vars.into_iter().filter(|(name, _)| name.starts_with("NTBRING_")).collect();
        let mut given = AllGiven::new();
        for name in self.settings().map(|setting| setting.name) {
            if let Some(value) = vars.remove(name) {
                given.insert(name, Given { name, value });
            }
        }
        let mut warnings = Vec::new();
        for &(former, present) in &self.former {
            let Some(value) = vars.remove(former) else { continue };
            match given.get(present) {
                Some(other) => warnings
                    .push(format!("{former} is ignored: it is a former name of {present}, and {} is set", other.name)),
                None => {
                    warnings.push(format!("{former} is now called {present}; please use the new name"));
                    given.insert(present, Given { name: former, value });
                }
            }
        }
        match vars.into_keys().min() {
            Some(name) => Err(SettingError::Unknown { hint: self.hint(&name), name }),
            None => Ok((given, warnings)),
        }
    }

    /// Returns the setting with this present or former name.
    pub(crate) fn find(&self, name: &str) -> Option<&Setting> {
        self.row(name).map(|(setting, ..)| setting)
    }

    /// Returns the row with this present or former name, and the name as a static string.
    fn row(&self, name: &str) -> Option<(&Setting, &Parse<S>, &'static str)> {
        let former = self.former.iter().find(|(former, _)| *former == name);
        let present = former.map_or(name, |(_, present)| present);
        let (setting, parse) = self.rows.iter().find(|(setting, _)| setting.name == present)?;
        Some((setting, parse, former.map_or(setting.name, |(former, _)| former)))
    }

    /// Stores the value of one setting, by its present or a former name. Names that are not in the table are ignored.
    pub fn set(&self, all: &mut S, name: &str, value: &str) -> Result<(), SettingError> {
        let Some((setting, parse, name)) = self.row(name) else { return Ok(()) };
        let allowed = setting.allowed;
        parse(all, value.trim()).map_err(|problem| SettingError::Value { name, value: value.into(), problem, allowed })
    }

    /// Returns the text behind the name of an unknown setting: the hint for one that was removed, or the present name
    /// of the setting with the most similar present or former name, if any is close.
    fn hint(&self, name: &str) -> String {
        if let Some((_, hint)) = self.removed.iter().find(|(removed, _)| *removed == name) {
            return hint.to_string();
        }
        let present = self.settings().map(|setting| (setting.name, setting.name));
        let distances = present
            .chain(self.former.iter().copied())
            .map(|(known, present)| (strsim::levenshtein(known, name), present));
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
        /// The variable, by the name that the user used.
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
    #[error(
        "{path}, the file of tuned thresholds (NTBRING_TUNED), {problem}; `ntbring tune` writes it, NTBRING_TUNED=off \
         ignores it"
    )]
    Tuned {
        /// The file.
        path: String,
        /// The problem with it.
        problem: String,
    },
}

/// Returns the variables of this process; those with names that are not text are left out.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())))
}
