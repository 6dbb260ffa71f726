//! Values and their origin: the environment before the tuned file before the built-in default.

use crate::tuned::{self, Found, Place};
use crate::{Setting, SettingError, Table, TunedFile};
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Built in.
    Default,
    /// Measured by `ntbring tune` and read from this file.
    Tuned(PathBuf),
    /// The environment.
    Environment,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => write!(f, "default"),
            Origin::Tuned(path) => write!(f, "tuned file {}", path.display()),
            Origin::Environment => write!(f, "environment"),
        }
    }
}

/// Settings with the origin of every value.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded<S> {
    /// The settings.
    pub settings: S,
    /// A remark on the tuned file, if there is one, for the log.
    pub remark: Option<String>,
    /// Warnings about variables with former names of settings.
    pub warnings: Vec<String>,
    /// The values that differ from their built-in defaults, by name.
    set: HashMap<&'static str, (String, Origin)>,
}

impl<S: Default + 'static> Loaded<S> {
    /// Returns the settings of a process with these variables: environment before tuned file before default. `tuned`
    /// returns the choice of the tuned file, and the link model under which its thresholds must have been measured.
    pub fn from_vars(
        table: &Table<S>,
        vars: impl IntoIterator<Item = (String, String)>,
        tuned: impl Fn(&S) -> (TunedFile, String),
    ) -> Result<Loaded<S>, SettingError> {
        let vars: HashMap<String, String> = vars.into_iter().collect();
        let (given, warnings) = table.given(vars.clone())?;
        let mut settings = table.parse(&given)?;
        let mut set: HashMap<&'static str, (String, Origin)> = given
            .into_iter()
            .map(|(name, given)| (name, (given.value.trim().to_string(), Origin::Environment)))
            .collect();
        let mut remark = None;
        let (file, link_model) = tuned(&settings);
        if let Some(path) = file.path(|name| vars.get(name).map(PathBuf::from)) {
            let named = file != TunedFile::Auto;
            match tuned::find(table, &path, named, || Place::here(link_model))? {
                Found::Nothing => {}
                Found::Unfit(why) => remark = Some(format!("{} is not used: {why}", path.display())),
                Found::Values(values) => {
                    remark = Some(format!("thresholds of {} are used", path.display()));
                    for (name, value) in values {
                        if !set.contains_key(name) {
                            table.set(&mut settings, name, &value)?;
                            set.insert(name, (value, Origin::Tuned(path.clone())));
                        }
                    }
                }
            }
        }
        Ok(Loaded { settings, remark, warnings, set })
    }

    /// Returns the value of a setting in the notation of the environment, and its origin.
    pub fn value(&self, setting: &Setting) -> (&str, &Origin) {
        self.set.get(setting.name).map_or((setting.default, &Origin::Default), |(value, origin)| (value, origin))
    }
}
