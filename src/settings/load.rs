//! Where values come from: the environment before the tuned file before the built-in default.

use super::tuned::{self, Found, Place};
use super::{environment, Setting, SettingError, Settings, TunedFile, TABLE};
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;

/// Who has set a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody: it is built in.
    Default,
    /// `ntbring tune`, by this file.
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

/// Settings, and where they come from.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The settings.
    pub settings: Settings,
    /// A word on the tuned file, if there is one, for the log.
    pub remark: Option<String>,
    /// What is not at its built-in default, by name.
    set: HashMap<&'static str, (String, Origin)>,
}

impl Loaded {
    /// The settings of this process.
    pub fn from_env() -> Result<Loaded, SettingError> {
        Loaded::from_vars(environment())
    }

    /// The settings of a process with these variables.
    pub fn from_vars(vars: impl IntoIterator<Item = (String, String)>) -> Result<Loaded, SettingError> {
        let vars: HashMap<String, String> = vars.into_iter().collect();
        let mut settings = Settings::from_vars(vars.clone())?;
        let mut set: HashMap<&'static str, (String, Origin)> = TABLE
            .iter()
            .filter_map(|s| Some((s.name, (vars.get(s.name)?.trim().to_string(), Origin::Environment))))
            .collect();
        let mut remark = None;
        if let Some(path) = settings.tuned.path(|name| vars.get(name).map(PathBuf::from)) {
            let named = settings.tuned != TunedFile::Auto;
            match tuned::find(&path, named, || Place::here(&settings))? {
                Found::Nothing => {}
                Found::Unfit(why) => remark = Some(format!("{} is not used: {why}", path.display())),
                Found::Values(values) => {
                    remark = Some(format!("thresholds of {} are used", path.display()));
                    for (setting, value) in values {
                        if !set.contains_key(setting.name) {
                            settings.set(setting, &value)?;
                            set.insert(setting.name, (value, Origin::Tuned(path.clone())));
                        }
                    }
                }
            }
        }
        Ok(Loaded { settings, remark, set })
    }

    /// The value of a setting as it is written, and where it comes from.
    pub fn value(&self, setting: &Setting) -> (&str, &Origin) {
        self.set.get(setting.name).map_or((setting.default, &Origin::Default), |(value, origin)| (value, origin))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tuned::{save, Entry};
    use super::super::BothCopy;
    use super::*;
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    fn loaded(vars: &[(&str, &str)]) -> Result<Loaded, SettingError> {
        Loaded::from_vars(vars.iter().map(|(name, value)| (name.to_string(), value.to_string())))
    }

    fn entry(made_for: Place, thresholds: &[(&str, &str)]) -> Entry {
        let thresholds: BTreeMap<_, _> = thresholds.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
        Entry { made_for, ntbring: "0".into(), thresholds }
    }

    fn here() -> Place {
        Place::here(&Settings::default())
    }

    fn value(loaded: &Loaded, name: &str) -> (String, Origin) {
        let setting = TABLE.iter().find(|s| s.name == name).unwrap();
        let (value, origin) = loaded.value(setting);
        (value.into(), origin.clone())
    }

    #[test]
    fn the_environment_comes_before_the_file_and_the_file_before_the_default() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("new/tuned.json");
        save(&file, &entry(here(), &[("NTBRING_EAGER_MAX", "5K"), ("NTBRING_BOTH_COPY", "auto:96K")])).unwrap();
        let at = ("NTBRING_TUNED", file.to_str().unwrap());

        let l = loaded(&[at]).unwrap();
        assert_eq!((l.settings.eager_max, l.settings.both_copy), (5 << 10, BothCopy::Auto(96 << 10)));
        assert_eq!(l.settings.packed_max, Settings::default().packed_max);
        assert_eq!(value(&l, "NTBRING_EAGER_MAX"), ("5K".into(), Origin::Tuned(file.clone())));
        assert_eq!(value(&l, "NTBRING_PACKED_MAX"), ("16K".into(), Origin::Default));
        assert!(l.remark.unwrap().ends_with("are used"));

        let l = loaded(&[at, ("NTBRING_EAGER_MAX", "7K")]).unwrap();
        assert_eq!(l.settings.eager_max, 7 << 10);
        assert_eq!(value(&l, "NTBRING_EAGER_MAX"), ("7K".into(), Origin::Environment));
        // What is set to its default is set.
        let l = loaded(&[at, ("NTBRING_BOTH_COPY", "auto")]).unwrap();
        assert_eq!(l.settings.both_copy, Settings::default().both_copy);

        let l = loaded(&[("NTBRING_TUNED", "off")]).unwrap();
        assert_eq!((l.settings.eager_max, l.remark), (Settings::default().eager_max, None));
    }

    #[test]
    fn the_users_file_need_not_be_there_but_a_named_one_must() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().to_str().unwrap();
        assert_eq!(loaded(&[("HOME", home)]).unwrap().remark, None);
        assert_eq!(loaded(&[]).unwrap().settings, Settings::default());
        save(&dir.path().join(".config/ntbring/tuned.json"), &entry(here(), &[("NTBRING_EAGER_MAX", "1K")])).unwrap();
        assert_eq!(loaded(&[("HOME", home)]).unwrap().settings.eager_max, 1 << 10);
        assert_eq!(loaded(&[("HOME", home), ("XDG_CONFIG_HOME", "relative")]).unwrap().settings.eager_max, 1 << 10);
        let xdg = dir.path().join("xdg");
        save(&xdg.join("ntbring/tuned.json"), &entry(here(), &[("NTBRING_EAGER_MAX", "2K")])).unwrap();
        let vars = [("HOME", home), ("XDG_CONFIG_HOME", xdg.to_str().unwrap())];
        assert_eq!(loaded(&vars).unwrap().settings.eager_max, 2 << 10);

        let text = loaded(&[("NTBRING_TUNED", "/nowhere/t.json")]).unwrap_err().to_string();
        assert!(text.contains("/nowhere/t.json") && text.contains("is not there"), "{text}");
        let text = loaded(&[("NTBRING_TUNED", "")]).unwrap_err().to_string();
        assert!(text.contains("NTBRING_TUNED"), "{text}");
    }

    #[test]
    fn what_was_made_for_something_else_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("tuned.json");
        let at = ("NTBRING_TUNED", file.to_str().unwrap());
        let set: &[(&str, &str)] = &[("NTBRING_EAGER_MAX", "5K")];
        let unused = |vars: &[(&str, &str)]| {
            let l = loaded(vars).unwrap();
            assert_eq!(l.settings.eager_max, Settings::default().eager_max);
            assert_eq!(value(&l, "NTBRING_EAGER_MAX").1, Origin::Default);
            let remark = l.remark.unwrap();
            assert!(remark.contains("tuned.json is not used"), "{remark}");
            remark
        };
        save(&file, &entry(Place { cpu: "another".into(), ..here() }, set)).unwrap();
        assert!(unused(&[at]).contains("made for another"));
        save(&file, &entry(Place { cores: 12345, ..here() }, set)).unwrap();
        assert!(unused(&[at]).contains("12345 cores"));
        // The one that fits, of several; under a link model it does not fit.
        save(&file, &entry(here(), set)).unwrap();
        assert_eq!(loaded(&[at]).unwrap().settings.eager_max, 5 << 10);
        assert!(unused(&[at, ("NTBRING_LINK_MODEL", "gen3x8")]).contains("link model gen3x8"));
        // A new one takes the place of the old one.
        save(&file, &entry(here(), &[("NTBRING_EAGER_MAX", "9K")])).unwrap();
        assert_eq!(loaded(&[at]).unwrap().settings.eager_max, 9 << 10);
        assert_eq!(fs::read_to_string(&file).unwrap().matches("made_for").count(), 3);
        fs::write(&file, r#"{"format": 2, "what": "ever"}"#).unwrap();
        assert!(unused(&[at]).contains("format 2"));
    }

    #[test]
    fn a_malformed_file_is_an_error_that_names_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("tuned.json");
        let fails = |what: &str| {
            let text = loaded(&[("NTBRING_TUNED", file.to_str().unwrap())]).unwrap_err().to_string();
            assert!(text.contains(file.to_str().unwrap()) && text.contains(what), "{text}");
            assert!(text.contains("`ntbring tune` writes it"), "{text}");
        };
        for text in ["", "{", "[]", "{}", r#"{"format":1}"#, r#"{"format":1,"tuned":[{}]}"#, r#"{"tuned":[],"x":1}"#] {
            fs::write(&file, text).unwrap();
            fails("is malformed");
        }
        // What is wrong is wrong, even if it is for another machine.
        let other = Place { cores: 12345, ..here() };
        save(&file, &entry(other.clone(), &[("NTBRING_EAGER_MAX", "1G")])).unwrap();
        fails("NTBRING_EAGER_MAX=\"1G\": too large; allowed: 0 to 66K");
        save(&file, &entry(other.clone(), &[("NTBRING_WINDOW", "1G")])).unwrap();
        fails("sets NTBRING_WINDOW; allowed: NTBRING_PACKED_MAX, ");
        save(&file, &entry(other, &[("NTBRING_BOTH_COPY", "auto:1")])).unwrap();
        fails("too small");
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        fails("cannot be read");
        assert!(save(Path::new("/proc/no/such/tuned.json"), &entry(here(), &[])).is_err());
    }
}
