//! Tests of renamed settings, on a small table.

use crate::parse::number;
use crate::tuned::{save, Entry, Place};
use crate::*;
use std::collections::BTreeMap;

#[derive(Debug, Default, PartialEq)]
struct Numbers {
    speed: u64,
    length: u64,
    file: TunedFile,
}

const fn setting(name: &'static str) -> Setting {
    let (default, unit, allowed) = ("0", "units", "a number");
    Setting { name, default, unit, allowed, shared: false, meaning: "a number", tunable: true }
}

const ROWS: &[Row<Numbers>] = &[
    Row {
        setting: setting("NTBRING_SPEED"),
        parse: |s, v| {
            s.speed = number(v)?;
            Ok(())
        },
    },
    Row {
        setting: setting("NTBRING_LENGTH"),
        parse: |s, v| {
            s.length = number(v)?;
            Ok(())
        },
    },
];

fn table() -> Table<Numbers> {
    Table::new()
        .with(ROWS, |s| s)
        .with(tuned::ROWS, |s: &mut Numbers| &mut s.file)
        .renamed(&[("NTBRING_TEMPO", "NTBRING_SPEED"), ("NTBRING_PACE", "NTBRING_SPEED")])
        .without(&[("NTBRING_COLOUR", " any more")])
}

fn here() -> Place {
    Place::here("none".into())
}

fn load(vars: &[(&str, &str)]) -> Result<Loaded<Numbers>, SettingError> {
    let vars = vars.iter().map(|(name, value)| (name.to_string(), value.to_string()));
    Loaded::from_vars(&table(), vars, |s: &Numbers| (s.file.clone(), "none".into()))
}

fn speed(loaded: &Loaded<Numbers>) -> (&str, &Origin) {
    loaded.value(table().settings().find(|setting| setting.name == "NTBRING_SPEED").unwrap())
}

const OFF: (&str, &str) = ("NTBRING_TUNED", "off");

#[test]
fn a_present_name_gives_no_warning() {
    let loaded = load(&[OFF, ("NTBRING_SPEED", "7")]).unwrap();
    assert_eq!((loaded.settings.speed, loaded.warnings.len()), (7, 0));
}

#[test]
fn a_former_name_is_accepted_with_one_warning_that_names_the_present_one() {
    for former in ["NTBRING_TEMPO", "NTBRING_PACE"] {
        let loaded = load(&[OFF, (former, " 7 ")]).unwrap();
        assert_eq!((loaded.settings.speed, speed(&loaded)), (7, ("7", &Origin::Environment)));
        assert_eq!(loaded.warnings, [format!("{former} is now called NTBRING_SPEED; please use the new name")]);
        let vars = [(former.to_string(), "7".to_string())];
        assert_eq!(table().from_vars(vars.clone()).unwrap().speed, 7);
        assert_eq!(table().warnings(vars), loaded.warnings);
    }
}

#[test]
fn the_present_name_has_precedence_over_a_former_one_and_the_first_former_one_over_others() {
    let loaded = load(&[OFF, ("NTBRING_PACE", "broken"), ("NTBRING_SPEED", "7")]).unwrap();
    assert_eq!(loaded.settings.speed, 7);
    assert_eq!(
        loaded.warnings,
        ["NTBRING_PACE is ignored: it is a former name of NTBRING_SPEED, and NTBRING_SPEED is set"]
    );
    let loaded = load(&[OFF, ("NTBRING_PACE", "3"), ("NTBRING_TEMPO", "4")]).unwrap();
    assert_eq!(loaded.settings.speed, 4);
    assert_eq!(
        loaded.warnings,
        [
            "NTBRING_TEMPO is now called NTBRING_SPEED; please use the new name",
            "NTBRING_PACE is ignored: it is a former name of NTBRING_SPEED, and NTBRING_TEMPO is set"
        ]
    );
}

#[test]
fn errors_name_the_variable_that_the_user_set() {
    let text = |vars: &[(&str, &str)]| load(vars).unwrap_err().to_string();
    let allowed = "not a whole number; allowed: a number";
    assert_eq!(text(&[("NTBRING_PACE", "fast")]), format!("NTBRING_PACE=\"fast\": {allowed}"));
    assert_eq!(text(&[("NTBRING_PACE", "1"), ("NTBRING_SPEED", "fast")]), format!("NTBRING_SPEED=\"fast\": {allowed}"));
}

#[test]
fn only_present_names_are_listed_and_hinted_at() {
    let names: Vec<&str> = table().settings().map(|setting| setting.name).collect();
    assert_eq!(names, ["NTBRING_SPEED", "NTBRING_LENGTH", "NTBRING_TUNED"]);
    let text = |name: &str| load(&[(name, "1")]).unwrap_err().to_string();
    assert!(text("NTBRING_SPEEDS").contains("(did you mean NTBRING_SPEED?)"));
    assert!(text("NTBRING_TEMPOS").contains("(did you mean NTBRING_SPEED?)"));
    assert!(text("NTBRING_LENGHT").contains("(did you mean NTBRING_LENGTH?)"));
    assert!(text("NTBRING_COLOUR").contains("is not a setting of ntbring any more"));
    assert!(!text("NTBRING_SOMETHING_ELSE").contains("did you mean"));
}

#[test]
fn a_tuned_file_may_use_former_names() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tuned.json");
    let keep = |thresholds: &[(&str, &str)]| {
        let thresholds: BTreeMap<_, _> = thresholds.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
        save(&path, &Entry { made_for: here(), ntbring: "0".into(), thresholds }).unwrap();
    };
    let file = ("NTBRING_TUNED", path.to_str().unwrap());
    keep(&[("NTBRING_PACE", "5"), ("NTBRING_LENGTH", "6")]);
    let loaded = load(&[file]).unwrap();
    assert_eq!((loaded.settings.speed, loaded.settings.length), (5, 6));
    assert_eq!(speed(&loaded), ("5", &Origin::Tuned(path.clone())));
    let loaded = load(&[file, ("NTBRING_TEMPO", "9")]).unwrap();
    assert_eq!((loaded.settings.speed, speed(&loaded)), (9, ("9", &Origin::Environment)));
    keep(&[("NTBRING_PACE", "fast")]);
    assert!(load(&[file]).unwrap_err().to_string().contains("NTBRING_PACE=\"fast\": not a whole number"));
}
