//! Descriptions of the machine and of the MPIs, without which the figures cannot be interpreted.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::bench::contestants::{on_path, Contestant, Role};
use crate::bench::jobs::Shape;
use crate::{process, ui, version};

/// Load average above which other work is assumed to run on the machine.
const IDLE_LOAD: f64 = 0.5;

/// Prefixes of environment variables that change the behaviour of an MPI.
const KNOBS: &[&str] =
    &["NTBRING_", "MPIR_CVAR_", "MPIR_PARAM_", "UCX_", "OMPI_", "PRTE_MCA_", "PMIX_MCA_", "I_MPI_", "HYDRA_", "FI_"];

/// Names of the lines that say of what processor and of what build of ntbring figures are.
const IDENTITY: &[&str] = &["cpu", "cores", "caches", "commit", "date"];

/// Description of the machine.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Machine {
    /// Properties of the machine, each as name and value.
    pub lines: Vec<(String, String)>,
    /// Properties that make it unsuitable for measurements.
    pub warnings: Vec<String>,
}

impl Machine {
    /// Returns, in one line, the processor, the build of ntbring and the date, which figures must be quoted with.
    pub fn identity(&self) -> String {
        let lines = self.lines.iter().filter(|(name, _)| IDENTITY.contains(&name.as_str()));
        lines.map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("; ")
    }
}

/// Description of one MPI as it was run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Described {
    /// Name of the contestant.
    pub name: String,
    /// Description of the contestant.
    pub what: String,
    /// Version that the library reports.
    pub version: String,
    /// Options with which it was configured.
    pub configure: String,
    /// Command that starts it.
    pub command: String,
    /// Variables that the benchmark sets for it.
    pub env: Vec<String>,
    /// True for the other MPIs.
    pub peer: bool,
}

/// Returns the cores that ranks are bound to, in this order: one hardware thread of every core first.
pub fn cores() -> Vec<usize> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else {
        return Vec::new();
    };
    let allowed: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect();
    let siblings = |core: usize| read(&format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list"));
    spread_out(&allowed, |core| siblings(core).unwrap_or_else(|| core.to_string()))
}

/// Orders cores: the first of each group, then the second of each, and so on.
fn spread_out(cores: &[usize], group: impl Fn(usize) -> String) -> Vec<usize> {
    let groups: Vec<String> = cores.iter().map(|core| group(*core)).collect();
    let place = |index: usize| groups[..index].iter().filter(|other| **other == groups[index]).count();
    let mut order: Vec<(usize, usize)> = cores.iter().enumerate().map(|(index, core)| (place(index), *core)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, core)| core).collect()
}

/// Examines the machine.
pub fn describe(cores: &[usize]) -> Machine {
    let mut lines = Vec::new();
    let mut line = |name: &str, value: Option<String>| lines.extend(value.map(|value| (name.to_string(), value)));
    let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
    line("cpu", Some(processor(&cpuinfo)));
    let list: Vec<String> = cores.iter().map(ToString::to_string).collect();
    line("cores", Some(format!("{} (ranks are bound to them in this order: {})", cores.len(), list.join(" "))));
    line("caches", caches(Path::new("/sys/devices/system/cpu/cpu0/cache")));
    line("hypervisor", cpuinfo.contains(" hypervisor").then(|| "a virtual machine".to_string()));
    line("memory", read("/proc/meminfo").and_then(|text| field(&text, "MemTotal")));
    line("huge pages", read("/sys/kernel/mm/transparent_hugepage/enabled"));
    line("kernel", read("/proc/version").map(|text| text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")));
    line("system", read("/etc/os-release").and_then(|text| setting(&text, "PRETTY_NAME")));
    line("governor", read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
    line("yama ptrace scope", read("/proc/sys/kernel/yama/ptrace_scope"));
    line("load before", read("/proc/loadavg"));
    line("packages", packages());
    line("compiler", process::first_line(Command::new("cc").arg("--version")));
    line("commit", version::commit());
    line("date", process::first_line(Command::new("date").args(["-u", "+%Y-%m-%d %H:%M UTC"])));
    let inherited: Vec<String> = knobs();
    line("variables of the caller", (!inherited.is_empty()).then(|| inherited.join(" ")));
    Machine { lines, warnings: warnings(cores, &inherited) }
}

fn warnings(cores: &[usize], inherited: &[String]) -> Vec<String> {
    let mut warnings = Vec::new();
    let load = read("/proc/loadavg").and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    if let Some(load) = load.filter(|load| *load > IDLE_LOAD) {
        warnings.push(format!("the machine is not idle (load {load}): these figures cannot be trusted"));
    }
    if cores.len() < 2 {
        warnings.push("there is only one core: all figures are those of the scheduler".to_string());
    }
    if !inherited.is_empty() {
        warnings.push(format!("set by the caller, and left so: {}", inherited.join(" ")));
    }
    warnings
}

/// Asks an MPI for its version and configuration. `program` is its start-up benchmark.
pub fn describe_mpi(one: &Contestant, program: &Path) -> Described {
    let mut command = one.command(Shape::Hosts(1), program);
    let said = match one.mpicc {
        Some(_) => process::output(command.arg("--version")).unwrap_or_default(),
        None => "no MPI: two processes over ntbring's windows (benches/papers)".to_string(),
    };
    let of_openmpi = one.mpicc.as_deref().filter(|_| said.starts_with("Open MPI")).and_then(openmpi_configure);
    let configure = field(&said, "MPICH configure").or(of_openmpi).unwrap_or_default();
    let named = ["MPICH Version", "MPICH Device"].map(|name| field(&said, name)).into_iter().flatten();
    let named: Vec<String> = named.collect();
    let version = match named.as_slice() {
        [] => said.lines().next().unwrap_or("unknown").to_string(),
        named => format!("MPICH {}", named.join(", ")),
    };
    Described {
        name: one.name.to_string(),
        what: one.what.clone(),
        version,
        configure,
        command: process::shown(&one.command(Shape::Pair, &PathBuf::from("PROGRAM"))),
        env: one.env.iter().map(|(name, value)| format!("{name}={value}")).collect(),
        peer: one.role == Role::Peer,
    }
}

/// Asks the Open MPI that this compiler wrapper belongs to for its options.
fn openmpi_configure(mpicc: &Path) -> Option<String> {
    let said = process::output(&mut Command::new(mpicc.with_file_name("ompi_info"))).ok()?;
    field(&said, "Configure command line")
}

/// Formats the descriptions for the terminal.
pub fn shown(machine: &Machine, mpis: &[Described]) -> String {
    let rows: Vec<Vec<String>> = machine.lines.iter().map(|(name, value)| vec![name.clone(), value.clone()]).collect();
    let mut text = String::new();
    for row in &rows {
        text.push_str(&format!("{}: {}\n", row[0], row[1]));
    }
    for mpi in mpis {
        text.push_str(&format!("\n{}: {}\n  {}\n", mpi.name, mpi.what, mpi.version));
        let env = if mpi.env.is_empty() { String::new() } else { format!("{} ", mpi.env.join(" ")) };
        text.push_str(&format!("  run as: {env}{}\n", mpi.command));
        if !mpi.configure.is_empty() {
            text.push_str(&format!("  configured with: {}\n", mpi.configure));
        }
    }
    text
}

/// Prints the warnings. They are shown before and after the figures, so that they are not overlooked.
pub fn warn(machine: &Machine) {
    for warning in &machine.warnings {
        println!("WARNING: {warning}");
    }
    ui::flush();
}

fn read(file: &str) -> Option<String> {
    fs::read_to_string(file).ok().map(|text| text.trim().to_string()).filter(|text| !text.is_empty())
}

/// Returns the model of the processor with its vendor and family, since hypervisors often shorten the model's name.
fn processor(cpuinfo: &str) -> String {
    let model = field(cpuinfo, "model name").unwrap_or_else(|| env::consts::ARCH.to_string());
    let named = |name| field(cpuinfo, name).map(|value| format!("{name} {value}"));
    let known = [field(cpuinfo, "vendor_id"), named("cpu family"), named("model")];
    match known.into_iter().flatten().collect::<Vec<_>>().as_slice() {
        [] => model,
        known => format!("{model} ({})", known.join(", ")),
    }
}

/// Returns the value of the first line `name : value`.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim().to_string())
    })
}

/// Returns the value of a line `name="value"`.
fn setting(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
    Some(line.trim_matches('"').to_string())
}

/// Returns the caches of a core: `L1 Data 48K, L2 Unified 2048K, ...`.
fn caches(dir: &Path) -> Option<String> {
    let mut dirs: Vec<PathBuf> = fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path()).collect();
    dirs.sort();
    let one = |dir: &PathBuf| {
        let of = |name: &str| read(&dir.join(name).to_string_lossy());
        let shared = of("shared_cpu_list")?;
        Some(format!("L{} {} {} (cores {shared})", of("level")?, of("type")?, of("size")?))
    };
    let caches: Vec<String> = dirs.iter().filter_map(one).collect();
    (!caches.is_empty()).then(|| caches.join(", "))
}

/// Returns the versions of the Debian packages of which contestants consist, where there is a Debian.
fn packages() -> Option<String> {
    let mut query = Command::new(on_path("dpkg-query")?);
    query.args(["-W", "-f", "${Package} ${Version}, "]);
    query.args(["libmpich12", "libucx0", "libopenmpi3", "libc6"]);
    // dpkg-query fails if one of the packages is not installed, but still prints the others.
    let said = query.output().ok()?.stdout;
    let said = String::from_utf8_lossy(&said).trim_end_matches(", ").to_string();
    (!said.is_empty()).then_some(said)
}

/// Returns the variables of the caller's environment that change the behaviour of an MPI.
fn knobs() -> Vec<String> {
    // This value was set by `environment::ignore_tuned`, not by the caller.
    let ours = |name: &str, value: &str| name == "NTBRING_TUNED" && value == "off";
    let of_mpi = |name: &str| KNOBS.iter().any(|prefix| name.starts_with(prefix));
    let mut knobs: Vec<String> = env::vars()
        .filter(|(name, value)| of_mpi(name) && !ours(name, value))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    knobs.sort();
    knobs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_settings_are_found() {
        let text = "MPICH Version:\t4.0.2\nMPICH Device:    \tch4:ucx\n MemTotal:  5 kB\n";
        assert_eq!(field(text, "MPICH Device").as_deref(), Some("ch4:ucx"));
        assert_eq!(field(text, "MemTotal").as_deref(), Some("5 kB"));
        assert_eq!(field(text, "nothing"), None);
        assert_eq!(setting("A=1\nNAME=\"x y\"\n", "NAME").as_deref(), Some("x y"));
    }

    #[test]
    fn a_processor_has_model_vendor_and_family() {
        let text = "vendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n";
        assert_eq!(processor(text), "AMD EPYC (AuthenticAMD, cpu family 26, model 2)");
        assert_eq!(processor("BogoMIPS : 50\n"), env::consts::ARCH);
    }

    #[test]
    fn figures_are_quoted_with_processor_and_build() {
        let line = |name: &str| (name.to_string(), format!("of {name}"));
        let lines = ["cpu", "memory", "commit", "date"].map(line).to_vec();
        let machine = Machine { lines, warnings: Vec::new() };
        assert_eq!(machine.identity(), "cpu: of cpu; commit: of commit; date: of date");
    }

    #[test]
    fn hardware_threads_come_after_cores() {
        let group = |core: usize| (core / 2).to_string();
        assert_eq!(spread_out(&[0, 1, 2, 3], group), [0, 2, 1, 3]);
        assert_eq!(spread_out(&[3, 5], group), [3, 5]);
    }

    #[test]
    fn a_description_has_the_main_lines() {
        let machine = describe(&[0]);
        assert!(machine.lines.iter().any(|(name, _)| name == "cpu"));
        assert!(machine.warnings.iter().any(|line| line.contains("one core")));
        assert!(shown(&machine, &[]).contains("cores: 1 (ranks"));
    }
}
