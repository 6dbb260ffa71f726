//! `ntbring run`: runs programs on a ring of emulated hosts, or on hosts by name.

use clap::{Args, Parser};
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Largest number of hosts of a ring.
const HOSTS_MAX: usize = ntbring_ring::topology::HOSTS_MAX;

/// The word between two programs of a job.
const NEXT: &str = ":";

#[derive(Args)]
#[command(after_help = "Examples:\n  ntbring run -H 4 -n 8 ./prog ARGS         4 emulated hosts of 2 ranks\n  \
                        ntbring run -H 2 -n 1 ./a : -n 3 ./b      two programs, 4 ranks on 2 hosts\n  \
                        ntbring run -H node1,node2 --launcher ssh -n 4 ./prog")]
pub struct RunArgs {
    /// Hosts: a number of emulated ones (1 to 64), or names, say `h0:2,h1:1` for 2 ranks and 1 [default: one for each
    /// rank]
    #[arg(short = 'H', long, value_name = "HOSTS", value_parser = Hosts::parse)]
    hosts: Option<Hosts>,

    /// Binding of ranks: none, core, hwthread, socket, numa, or whatever mpiexec's `-bind-to` knows
    #[arg(long, value_name = "WHERE")]
    bind: Option<String>,

    /// Launcher of hosts: fork (they are emulated, on this machine), ssh, slurm, or whatever mpiexec's `-launcher`
    /// knows
    #[arg(long, value_name = "LAUNCHER", default_value = "fork")]
    launcher: String,

    /// Print the call of mpiexec instead of making it
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    first: Part,
}

/// The ranks that run one program.
#[derive(Args, Clone)]
struct Part {
    /// Ranks [default: one on each host]
    #[arg(short = 'n', long = "ranks", value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    ranks: Option<u16>,

    /// Environment variable of these ranks
    #[arg(short = 'e', long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,

    /// The program and its arguments; after a `:` further ranks with a program of their own
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROG")]
    program: Vec<OsString>,
}

/// Words after a `:`.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Following {
    #[command(flatten)]
    part: Part,
}

/// Hosts, as the user gives them.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    /// So many emulated ones.
    Count(usize),
    /// These, each with or without a number of ranks.
    Named(String),
}

impl Hosts {
    fn parse(text: &str) -> Result<Hosts, String> {
        match text.parse() {
            Ok(count) if (1..=HOSTS_MAX).contains(&count) => Ok(Hosts::Count(count)),
            Ok(_) => Err(format!("a ring has 1 to {HOSTS_MAX} hosts")),
            Err(_) if text.split(',').any(str::is_empty) => Err("a name is empty".to_string()),
            Err(_) => Ok(Hosts::Named(text.to_string())),
        }
    }
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_string(), value.to_string())),
        _ => Err("it is not of the form NAME=VALUE".to_string()),
    }
}

/// Replaces this process by mpiexec.
pub fn run(args: &RunArgs) -> Result<(), Box<dyn Error>> {
    let prefix = crate::exec::prefix(&std::env::current_exe()?)?;
    let mut command = Command::new(prefix.join("bin/mpiexec"));
    command.args(arguments(args)?);
    if args.dry_run {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        println!("{}", words.map(quoted).collect::<Vec<_>>().join(" "));
        return Ok(());
    }
    let error = command.exec();
    Err(format!("cannot run {}: {error}", command.get_program().to_string_lossy()).into())
}

/// Returns mpiexec's arguments.
fn arguments(args: &RunArgs) -> Result<Vec<OsString>, Box<dyn Error>> {
    let parts = parts(&args.first)?;
    let ranks = ranks(&args.hosts, &parts)?;
    let all: usize = ranks.iter().sum();
    let mut words: Vec<OsString> = vec!["-launcher".into(), (&args.launcher).into()];
    words.extend(["-hosts".into(), hosts(&args.hosts, all)?.into()]);
    if let Some(bind) = &args.bind {
        words.extend(["-bind-to".into(), bind.into()]);
    }
    for (i, (part, ranks)) in parts.iter().zip(ranks).enumerate() {
        if i > 0 {
            words.push(NEXT.into());
        }
        words.extend(["-n".into(), ranks.to_string().into()]);
        for (name, value) in &part.env {
            words.extend(["-env".into(), name.into(), value.into()]);
        }
        words.extend(part.program.iter().cloned());
    }
    Ok(words)
}

/// Divides what the user has given at each `:`.
fn parts(first: &Part) -> Result<Vec<Part>, Box<dyn Error>> {
    let mut pieces = first.program.split(|word| word == NEXT);
    let program = pieces.next().unwrap_or_default().to_vec();
    let mut parts = vec![Part { program, ..first.clone() }];
    for words in pieces {
        parts.push(Following::try_parse_from(words)?.part);
    }
    match parts.iter().any(|part| part.program.is_empty()) {
        true => Err(format!("there is no program before a {NEXT:?}").into()),
        false => Ok(parts),
    }
}

/// Returns the number of ranks of each part.
fn ranks(hosts: &Option<Hosts>, parts: &[Part]) -> Result<Vec<usize>, Box<dyn Error>> {
    let of_hosts = match hosts {
        Some(Hosts::Count(count)) => Some(*count),
        Some(Hosts::Named(names)) => Some(names.split(',').map(named_ranks).sum::<Result<usize, _>>()?),
        None => None,
    };
    match parts {
        [only] => {
            let ranks = only.ranks.map(usize::from).or(of_hosts);
            Ok(vec![ranks.ok_or("give the number of ranks (-n) or of hosts (-H)")?])
        }
        several => {
            let ranks = several.iter().map(|part| part.ranks.map(usize::from));
            Ok(ranks.collect::<Option<_>>().ok_or("with several programs each needs its number of ranks (-n)")?)
        }
    }
}

/// Returns the ranks of a host that is given as `name` or `name:ranks`.
fn named_ranks(host: &str) -> Result<usize, Box<dyn Error>> {
    match host.split_once(':') {
        None => Ok(1),
        Some((_, ranks)) => ranks.parse().map_err(|_| format!("{host:?} is not of the form NAME:RANKS").into()),
    }
}

/// Returns the value of mpiexec's `-hosts`: ranks are numbered in blocks, the first host has the first ones.
fn hosts(hosts: &Option<Hosts>, ranks: usize) -> Result<String, Box<dyn Error>> {
    let count = match hosts {
        Some(Hosts::Named(names)) => return Ok(names.clone()),
        Some(Hosts::Count(count)) if *count > ranks => {
            return Err(format!("{ranks} rank(s) on {count} hosts: each host needs one").into());
        }
        Some(Hosts::Count(count)) => *count,
        None => ranks.min(HOSTS_MAX),
    };
    let of = |host: usize| ranks / count + usize::from(host < ranks % count);
    Ok((0..count).map(|host| format!("h{host}:{}", of(host))).collect::<Vec<_>>().join(","))
}

/// Returns a word as a shell takes it.
fn quoted(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:,=+@%".contains(letter);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.into_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Parser)]
    #[command(no_binary_name = true)]
    struct Call {
        #[command(flatten)]
        args: RunArgs,
    }

    fn call(text: &str) -> Result<String, String> {
        let call = Call::try_parse_from(text.split(' ')).map_err(|error| error.to_string())?;
        let words = arguments(&call.args).map_err(|error| error.to_string())?;
        Ok(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn hosts_and_ranks_follow_from_each_other() {
        let hosts = "-launcher fork -hosts";
        assert_eq!(call("-H 2 ./a").unwrap(), format!("{hosts} h0:1,h1:1 -n 2 ./a"));
        assert_eq!(call("-n 3 ./a").unwrap(), format!("{hosts} h0:1,h1:1,h2:1 -n 3 ./a"));
        assert_eq!(call("-H 2 -n 5 ./a -n 7").unwrap(), format!("{hosts} h0:3,h1:2 -n 5 ./a -n 7"));
        assert_eq!(call("-H a:2,b ./a").unwrap(), format!("{hosts} a:2,b -n 3 ./a"));
        assert!(call("-H 3 -n 2 ./a").unwrap_err().contains("each host needs one"));
        assert!(call("-H 65 ./a").unwrap_err().contains("1 to 64"));
        assert!(call("-H a:x ./a").unwrap_err().contains("NAME:RANKS"));
        assert!(call("./a").unwrap_err().contains("give the number"));
    }

    #[test]
    fn programs_have_ranks_and_variables_of_their_own() {
        let text = "-H 2 --bind core -n 1 -e A=1 ./a x : -n 2 -e B=2 ./b -e";
        let expected = "-launcher fork -hosts h0:2,h1:1 -bind-to core -n 1 -env A 1 ./a x : -n 2 -env B 2 ./b -e";
        assert_eq!(call(text).unwrap(), expected);
        assert!(call("-n 1 ./a : ./b").unwrap_err().contains("each needs its number"));
        assert!(call("-n 1 ./a :").is_err());
        assert!(call("-n 1 -e A ./a").unwrap_err().contains("NAME=VALUE"));
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(
            ["a-b", "", "a b", "it's"].map(|word| quoted(OsStr::new(word))),
            ["a-b", "''", "'a b'", r"'it'\''s'"]
        );
    }
}
