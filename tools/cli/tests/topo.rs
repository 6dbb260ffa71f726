//! `ntbring topo`, called as by a user.

use serde_json::Value;
use std::process::{Command, Output};

fn topo(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ntbring")).arg("topo").args(args).output().unwrap()
}

fn succeeds(args: &[&str]) -> String {
    let output = topo(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn fails(args: &[&str]) -> String {
    let output = topo(args);
    assert!(!output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&succeeds(&[args, &["--json"]].concat())).unwrap()
}

fn route(survey: &Value, from: u64, to: u64) -> Vec<u64> {
    let mut routes = survey["routes"].as_array().unwrap().iter();
    let route = routes.find(|route| route["from"] == from && route["to"] == to);
    route.unwrap()["ports"].as_array().unwrap().iter().map(|port| port.as_u64().unwrap()).collect()
}

#[test]
fn rings_lines_and_a_torus_have_the_tables_they_should() {
    for network in ["ring:3", "ring:4", "ring:5", "ring:8", "ring:16", "line:5", "broken-ring:6", "torus:4x4"] {
        let survey = json(&[network]);
        let hosts = survey["hosts"].as_array().unwrap().len() as u64;
        assert_eq!(survey["detours"], 0, "{network}");
        assert_eq!(survey["cycle"], Value::Null, "{network}");
        assert_eq!(survey["routes"].as_array().unwrap().len() as u64, hosts * (hosts - 1), "{network}");
        let mut lids: Vec<u64> = Vec::new();
        for host in survey["hosts"].as_array().unwrap() {
            assert_eq!(host["master"], 101, "{network}");
            lids.push(host["lid"].as_u64().unwrap());
        }
        lids.sort();
        assert_eq!(lids, (1..=hosts).collect::<Vec<_>>(), "{network}");
        if network.starts_with("ring") {
            for (from, to) in (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to))).filter(|(a, b)| a != b) {
                let right = (to + hosts - from) % hosts;
                let ports = route(&survey, from, to);
                assert_eq!(ports.len() as u64, right.min(hosts - right), "{network}: {from} -> {to}");
                assert!(ports.iter().all(|port| *port == ports[0]), "{network}: {from} -> {to} turns round");
            }
        }
    }
}

#[test]
fn what_is_printed_names_everything() {
    let said = succeeds(&["ring:4", "--model", "gen3x8"]);
    for part in ["master: HWID 101", "[1*]", "0.1-1.0", "gen3x8", "routes there", "none can wait in a circle"] {
        assert!(said.contains(part), "{part}:\n{said}");
    }
    assert_eq!(said.lines().find(|line| line.contains("[1*]")), Some("--[1*]----[3]-----[4]-----[2]--"), "{said}");
    assert_eq!(succeeds(&["--hosts", "4"]), succeeds(&["ring:4"]));
    assert!(succeeds(&["torus:8x8"]).contains("64 hosts, 128 links"));
    assert!(succeeds(&["ring:1"]).contains("1 hosts, 0 links"));
}

#[test]
fn links_and_hosts_can_fail() {
    let cut = json(&["ring:5", "--cut", "0.1"]);
    assert_eq!(route(&cut, 0, 1), [0, 0, 0, 0]);
    assert_eq!(cut["links"][0]["up"], false);
    let off = json(&["ring:5", "--off", "0"]);
    assert!(off["hosts"].as_array().unwrap().iter().all(|host| host["master"] == 102));
    assert_eq!(off["hosts"].as_array().unwrap().len(), 4);
    // Two networks, each with its own master.
    let said = succeeds(&["line:4", "--cut", "1.1"]);
    assert!(said.contains("master: HWID 101") && said.contains("master: HWID 103"), "{said}");
}

#[test]
fn networks_can_be_described_by_their_links() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("boards.txt");
    let svg = dir.path().join("boards.svg");
    let (name, drawing) = (file.to_str().unwrap(), svg.to_str().unwrap());
    std::fs::write(&file, "# three boards in a line\n3.2 2.2\n2.0 4.2 model=pex8749\n").unwrap();
    let survey = json(&["--file", name, "--svg", drawing]);
    assert_eq!(route(&survey, 0, 2), [2, 0]);
    assert!(survey["hosts"].as_array().unwrap().iter().all(|host| host["master"] == 2));
    let svg = std::fs::read_to_string(&svg).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    for part in ["LID 1", "LID 3", "pex8749", "boards.txt"] {
        assert!(svg.contains(part), "{part}");
    }
    for (text, wrong) in [
        ("1.0 2", "line 1: \"2\" is no HWID.PORT"),
        ("1.0 2.0\n1.0 3.0", "line 2: port 0 of host 1 has a cable already"),
        ("1.0 2.0 slow", "line 1: \"slow\" is none of down, weight=N, model=NAME"),
        ("1.0 2.0 weight=0", "\"0\" is no weight"),
        ("1.0 2.0 model=none-such", "none-such"),
        ("", "1 to 64 hosts, not 0"),
    ] {
        std::fs::write(&file, text).unwrap();
        let said = fails(&["--file", name]);
        assert!(said.contains(wrong), "{wrong}: {said}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    for (args, wrong) in [
        (&["ring"][..], "allowed: ring:N, line:N, broken-ring:N, torus:WxH"),
        (&["ring:0"], "1 to 64 hosts, not 0"),
        (&["torus:9x9"], "not 81"),
        (&["ring:3", "--hwids", "1,2"], "3 different hardware ids"),
        (&["ring:3", "--cut", "0.3"], "there is no cable"),
        (&["ring:3", "--off", "7"], "there are hosts 0 to 2"),
        (&["ring:3", "--classes", "9"], "--classes"),
        (&["ring:3", "--model", "fast"], "link model"),
        (&[], "required"),
    ] {
        let said = fails(args);
        assert!(said.contains(wrong), "{args:?}: {said}");
    }
}
