//! `ntbring tune`, called as by a user, and the file that it writes for jobs.

use serde_json::Value;
use std::process::{Command, Output};

fn ntbring(args: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ntbring"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("NTBRING_")) {
        command.env_remove(name);
    }
    command.args(args).envs(env.iter().copied()).output().unwrap()
}

fn succeeds(args: &[&str], env: &[(&str, &str)]) -> String {
    let output = ntbring(args, env);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn fails(args: &[&str], env: &[(&str, &str)]) -> String {
    let output = ntbring(args, env);
    assert!(!output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

/// Returns the line with the value of a setting.
fn value<'a>(listed: &'a str, name: &str) -> &'a str {
    let mut lines = listed.lines().skip_while(|line| line.split(' ').next() != Some(name));
    lines.nth(1).unwrap_or_else(|| panic!("{name} is not listed:\n{listed}")).trim()
}

/// Returns true if there are at least two cores, which a measurement needs.
fn can_measure() -> bool {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    if cores < 2 {
        let said = fails(&["tune", "--quick", "--dry-run"], &[]);
        assert!(said.contains("two cores are needed"), "{said}");
    }
    cores >= 2
}

#[test]
fn what_is_tuned_is_used() {
    if !can_measure() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let config = [("XDG_CONFIG_HOME", home.path().to_str().unwrap())];
    let file = home.path().join("ntbring/tuned.json");
    let before = succeeds(&["info", "--config"], &config);
    assert_eq!(value(&before, "NTBRING_EAGER_MAX"), "66K (default)");

    let said = succeeds(&["tune", "--quick", "--force"], &config);
    for part in ["payload", "chunked, late", "streamed", "512K", "NTBRING_PACKED_MAX", "saved in"] {
        assert!(said.contains(part), "{part}:\n{said}");
    }
    let saved: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let thresholds = saved["tuned"][0]["thresholds"].as_object().unwrap();
    assert!(thresholds.contains_key("NTBRING_PACKED_MAX") && thresholds.contains_key("NTBRING_EAGER_MAX"), "{saved}");

    let after = succeeds(&["info", "--config"], &config);
    for (name, chosen) in thresholds {
        let line = value(&after, name);
        assert!(line.starts_with(&format!("{} (tuned file {}", chosen.as_str().unwrap(), file.display())), "{line}");
    }
    let under = |env: (&str, &str)| succeeds(&["info", "--config"], &[config[0], env]);
    assert_eq!(value(&under(("NTBRING_EAGER_MAX", "5K")), "NTBRING_EAGER_MAX"), "5K (environment); default 66K");
    assert_eq!(value(&under(("NTBRING_TUNED", "off")), "NTBRING_EAGER_MAX"), "66K (default)");
    let other = under(("NTBRING_LINK_MODEL", "gen3x8"));
    assert_eq!(value(&other, "NTBRING_EAGER_MAX"), "66K (default)");
    assert!(other.contains("tuned.json is not used: it was made for"), "{other}");
}

#[test]
fn links_are_measured_too_and_json_has_everything() {
    if !can_measure() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("links.json");
    let link = ("NTBRING_LINK_MODEL", "gen3x8");
    let said = succeeds(&["tune", "--quick", "--json", "--force", "--file", file.to_str().unwrap()], &[link]);
    let report: Value = serde_json::from_str(&said).unwrap();
    assert!(report["made_for"]["link_model"].as_str().unwrap().starts_with("gen3x8"), "{report}");
    let figures = report["figures"].as_array().unwrap();
    assert!(figures.iter().all(|f| f["us"].as_f64().unwrap() > 0.0), "{report}");
    // The memory behind a link can only be accessed by writes.
    assert_eq!(report["reached"], false);
    assert!(figures.iter().all(|f| f["way"] != "single" && f["way"] != "both"), "{report}");
    let chosen = |name: &str| {
        let all = report["thresholds"].as_array().unwrap();
        all.iter().find(|t| t["name"] == name).unwrap()["chosen"].clone()
    };
    assert!(chosen("NTBRING_SINGLE_COPY").is_null() && chosen("NTBRING_EAGER_MAX").is_string(), "{report}");
    let listed = succeeds(&["info", "--config"], &[link, ("NTBRING_TUNED", file.to_str().unwrap())]);
    assert!(value(&listed, "NTBRING_PACKED_MAX").contains("tuned file"), "{listed}");
}

#[test]
fn what_cannot_be_is_refused() {
    let said = fails(&["tune", "--quick"], &[("NTBRING_TUNED", "off")]);
    assert!(said.contains("NTBRING_TUNED=off") && said.contains("--file"), "{said}");
    let said = fails(&["tune", "--quick", "--dry-run"], &[("NTBRING_CHUNK", "lots")]);
    assert!(said.contains("NTBRING_CHUNK=\"lots\""), "{said}");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bad.json");
    std::fs::write(&file, "{").unwrap();
    let said = fails(&["info"], &[("NTBRING_TUNED", file.to_str().unwrap())]);
    assert!(said.contains("bad.json") && said.contains("is malformed"), "{said}");
}
