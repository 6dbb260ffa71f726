//! `ntbring info`: versions, the device and the settings.

use ntbring_endpoint::settings::{Settings, TABLE};
use ntbring_settings::Loaded;
use ntbring_settings::Origin;
use std::error::Error;

/// Prints versions and the device; with `config` also every setting.
pub fn run(config: bool) -> Result<(), Box<dyn Error>> {
    let loaded = Settings::load()?;
    for warning in &loaded.warnings {
        eprintln!("warning: {warning}");
    }
    if config {
        settings(&loaded);
    } else {
        summary(&loaded);
    }
    Ok(())
}

fn settings(loaded: &Loaded<Settings>) {
    println!("Every setting is an environment variable. Those marked * must be the same on all hosts.");
    println!("Settings that are not set there come from the tuned file (NTBRING_TUNED) or have their defaults.");
    if let Some(remark) = &loaded.remark {
        println!("{remark}");
    }
    println!();
    for s in TABLE.settings() {
        println!("{}{}", s.name, if s.shared { " *" } else { "" });
        let (value, origin) = loaded.value(s);
        match origin {
            Origin::Default => println!("    {value} (default)"),
            _ => println!("    {value} ({origin}); default {}", s.default),
        }
        println!("    {}; allowed: {}", s.unit, s.allowed);
        println!("    {}", s.meaning);
    }
}

fn summary(loaded: &Loaded<Settings>) {
    println!("ntbring {}, protocol version {}", env!("CARGO_PKG_VERSION"), ntbring_ring::PROTOCOL_VERSION);
    println!("device: emulated NTB in shared memory (up to {} hosts)", ntbring_ring::topology::HOSTS_MAX);
    let from = |wanted: fn(&Origin) -> bool| TABLE.settings().filter(|s| wanted(loaded.value(s).1)).count();
    let set = [
        (from(|o| *o == Origin::Environment), "set by the environment"),
        (from(|o| matches!(o, Origin::Tuned(_))), "tuned"),
    ];
    let set: Vec<String> = set.iter().filter(|(n, _)| *n > 0).map(|(n, by)| format!("{n} {by}")).collect();
    println!("settings: {}", if set.is_empty() { "all at their defaults".into() } else { set.join(", ") });
    if let Some(remark) = &loaded.remark {
        println!("tuned: {remark}");
    }
    let settings = &loaded.settings;
    let window = settings
        .ring
        .window
        .map_or("1 MiB or more, by hosts, ranks, the memory file system and the link model".into(), |w| {
            format!("{w} bytes")
        });
    println!("windows: {window} in each direction of a link, in {}", settings.host.shm_dir.display());
    if let Some(model) = settings.links.model {
        println!("links: {model}");
    }
}
