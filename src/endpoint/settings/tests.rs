//! Tests of the whole table: values, origins and errors.

use super::*;
use ntbring_ntb::Side;
use ntbring_settings::tuned::{save, Entry, Place};
use ntbring_settings::Origin;
use ntbring_zerocopy::SplitCopy;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn with(name: &str, value: &str) -> Result<Settings, SettingError> {
    Settings::from_vars([(name.to_string(), value.to_string())])
}

#[test]
fn the_table_says_the_real_defaults() {
    for setting in TABLE.settings().filter(|s| s.name != "NTBRING_LOG") {
        assert_eq!(with(setting.name, setting.default), Ok(Settings::default()), "{}", setting.name);
    }
}

#[test]
fn sizes_have_suffixes() {
    assert_eq!(with("NTBRING_WINDOW", "2M").unwrap().ring.window, Some(2 << 20));
    assert_eq!(with("NTBRING_WINDOW", "65536").unwrap().ring.window, Some(64 << 10));
    assert_eq!(with("NTBRING_CHUNK", "1k").unwrap().ring.chunk, Some(1024));
    assert_eq!(with("NTBRING_CHUNK", "auto").unwrap().ring.chunk, None);
}

#[test]
fn ports_are_a_left_one_and_a_right_one() {
    let ports = |value| with("NTBRING_PORTS", value).unwrap().ring.ports;
    assert_eq!(Side::BOTH.map(|side| ports("2,3").on(side).get()), [2, 3]);
    assert_eq!(Side::BOTH.map(|side| ports("1,0").on(side).get()), [1, 0]);
    let text = with("NTBRING_PORTS", "1,1").unwrap_err().to_string();
    assert!(text.contains("NTBRING_PORTS") && text.contains("\"1,1\"") && text.contains("0 to 3"), "{text}");
}

#[test]
fn bad_values_name_variable_value_and_what_is_allowed() {
    for (name, value) in [
        ("NTBRING_WINDOW", "huge"),
        ("NTBRING_DEVICE", "cable"),
        ("NTBRING_DEVICE", "pci:"),
        ("NTBRING_SHORTCUTS", "memory"),
        ("NTBRING_WINDOW", "12"),
        ("NTBRING_WINDOW", ""),
        ("NTBRING_WINDOW", "99999999999999999999G"),
        ("NTBRING_CHUNK", "-1"),
        ("NTBRING_DUMP_SIGNAL", "KILL"),
        ("NTBRING_DUMP_SIGNAL", "9"),
        ("NTBRING_STATS", ""),
        ("NTBRING_SPIN", "fast"),
        ("NTBRING_OVERLAP", "yes"),
        ("NTBRING_FORWARDER_THREADS", "0"),
        ("NTBRING_FORWARDER_THREADS", "5"),
        ("NTBRING_FORWARDER_THREADS", "many"),
        ("NTBRING_PORTS", "0"),
        ("NTBRING_PORTS", "1,1"),
        ("NTBRING_PORTS", "0,4"),
        ("NTBRING_PORTS", "left,right"),
        ("NTBRING_LINK_MODEL", "gen9"),
        ("NTBRING_LINK_MODEL", "transfer=100"),
        ("NTBRING_LINK_MODEL", "latency=5"),
        ("NTBRING_RELIABILITY", "maybe"),
        ("NTBRING_FAULT", "drop"),
        ("NTBRING_FAULT", "drop=2"),
        ("NTBRING_FAULT", "down=every:1s"),
        ("NTBRING_FAULT", ""),
    ] {
        let text = with(name, value).unwrap_err().to_string();
        assert!(text.contains(name) && text.contains(&format!("{value:?}")), "{text}");
        assert!(text.contains("allowed: "), "{text}");
    }
}

#[test]
fn unknown_variables_are_errors_with_a_hint() {
    let text = with("NTBRING_WINDOWS", "1M").unwrap_err().to_string();
    assert!(text.contains("did you mean NTBRING_WINDOW?"), "{text}");
    let text = with("NTBRING_COLOUR_OF_THE_CABLE", "red").unwrap_err().to_string();
    assert!(!text.contains("did you mean"), "{text}");
    let text = with("NTBRING_PAPER_MODEL", "2").unwrap_err().to_string();
    assert!(text.contains("not a setting of ntbring any more") && text.contains("bench ablation"), "{text}");
    assert!(with("PATH", "x").is_ok());
}

#[test]
fn former_names_are_of_settings_that_are_there() {
    for (former, present) in RENAMED {
        assert!(TABLE.settings().any(|setting| setting.name == *present), "{present}");
        assert!(TABLE.settings().all(|setting| setting.name != *former), "{former}");
        assert!(REMOVED.iter().all(|(removed, _)| removed != former), "{former}");
    }
}

fn loaded(vars: &[(&str, &str)]) -> Result<Loaded<Settings>, SettingError> {
    Settings::load_from(vars.iter().map(|(name, value)| (name.to_string(), value.to_string())))
}

fn entry(made_for: Place, thresholds: &[(&str, &str)]) -> Entry {
    let thresholds: BTreeMap<_, _> = thresholds.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
    Entry { made_for, ntbring: "0".into(), thresholds }
}

fn here() -> Place {
    Place::here("none".into())
}

fn value(loaded: &Loaded<Settings>, name: &str) -> (String, Origin) {
    let setting = TABLE.settings().find(|s| s.name == name).unwrap();
    let (value, origin) = loaded.value(setting);
    (value.into(), origin.clone())
}

#[test]
fn the_environment_comes_before_the_file_and_the_file_before_the_default() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("new/tuned.json");
    save(&file, &entry(here(), &[("NTBRING_EAGER_MAX", "5K"), ("NTBRING_SPLIT_COPY", "auto:96K")])).unwrap();
    let at = ("NTBRING_TUNED", file.to_str().unwrap());

    let l = loaded(&[at]).unwrap();
    assert_eq!((l.settings.limits.eager_max, l.settings.limits.split_copy), (5 << 10, SplitCopy::Auto(96 << 10)));
    assert_eq!(l.settings.limits.packed_max, Settings::default().limits.packed_max);
    assert_eq!(value(&l, "NTBRING_EAGER_MAX"), ("5K".into(), Origin::Tuned(file.clone())));
    assert_eq!(value(&l, "NTBRING_PACKED_MAX"), ("16K".into(), Origin::Default));
    assert!(l.remark.unwrap().ends_with("are used"));

    let l = loaded(&[at, ("NTBRING_EAGER_MAX", "7K")]).unwrap();
    assert_eq!(l.settings.limits.eager_max, 7 << 10);
    assert_eq!(value(&l, "NTBRING_EAGER_MAX"), ("7K".into(), Origin::Environment));
    // A setting with an explicit value counts as set even if the value is the default.
    let l = loaded(&[at, ("NTBRING_SPLIT_COPY", "auto")]).unwrap();
    assert_eq!(l.settings.limits.split_copy, Settings::default().limits.split_copy);

    let l = loaded(&[("NTBRING_TUNED", "off")]).unwrap();
    assert_eq!((l.settings.limits.eager_max, l.remark), (Settings::default().limits.eager_max, None));
}

#[test]
fn the_users_file_need_not_be_there_but_a_named_one_must() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().to_str().unwrap();
    assert_eq!(loaded(&[("HOME", home)]).unwrap().remark, None);
    assert_eq!(loaded(&[]).unwrap().settings, Settings::default());
    save(&dir.path().join(".config/ntbring/tuned.json"), &entry(here(), &[("NTBRING_EAGER_MAX", "1K")])).unwrap();
    assert_eq!(loaded(&[("HOME", home)]).unwrap().settings.limits.eager_max, 1 << 10);
    assert_eq!(loaded(&[("HOME", home), ("XDG_CONFIG_HOME", "relative")]).unwrap().settings.limits.eager_max, 1 << 10);
    let xdg = dir.path().join("xdg");
    save(&xdg.join("ntbring/tuned.json"), &entry(here(), &[("NTBRING_EAGER_MAX", "2K")])).unwrap();
    let vars = [("HOME", home), ("XDG_CONFIG_HOME", xdg.to_str().unwrap())];
    assert_eq!(loaded(&vars).unwrap().settings.limits.eager_max, 2 << 10);

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
        assert_eq!(l.settings.limits.eager_max, Settings::default().limits.eager_max);
        assert_eq!(value(&l, "NTBRING_EAGER_MAX").1, Origin::Default);
        let remark = l.remark.unwrap();
        assert!(remark.contains("tuned.json is not used"), "{remark}");
        remark
    };
    save(&file, &entry(Place { cpu: "another".into(), ..here() }, set)).unwrap();
    assert!(unused(&[at]).contains("made for another"));
    save(&file, &entry(Place { cores: 12345, ..here() }, set)).unwrap();
    assert!(unused(&[at]).contains("12345 cores"));
    // The section that fits is used, of several; under a link model it does not fit.
    save(&file, &entry(here(), set)).unwrap();
    assert_eq!(loaded(&[at]).unwrap().settings.limits.eager_max, 5 << 10);
    assert!(unused(&[at, ("NTBRING_LINK_MODEL", "gen3x8")]).contains("link model gen3x8"));
    // A new section replaces the old one.
    save(&file, &entry(here(), &[("NTBRING_EAGER_MAX", "9K")])).unwrap();
    assert_eq!(loaded(&[at]).unwrap().settings.limits.eager_max, 9 << 10);
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
    // An invalid value is an error, even in a section for another machine.
    let other = Place { cores: 12345, ..here() };
    save(&file, &entry(other.clone(), &[("NTBRING_EAGER_MAX", "1G")])).unwrap();
    fails("NTBRING_EAGER_MAX=\"1G\": too large; allowed: 0 to 66K");
    save(&file, &entry(other.clone(), &[("NTBRING_WINDOW", "1G")])).unwrap();
    fails("sets NTBRING_WINDOW; allowed: NTBRING_PACKED_MAX, ");
    save(&file, &entry(other, &[("NTBRING_SPLIT_COPY", "auto:1")])).unwrap();
    fails("too small");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    fails("cannot be read");
    assert!(save(Path::new("/proc/no/such/tuned.json"), &entry(here(), &[])).is_err());
}
