//! `cargo xtask setup`: builds and installs MPICH with ntbring, from a fresh system.
//!
//! Each step does nothing if its inputs have not changed since it was last done. All products lie below `target/mpich`:
//!
//! | place | content |
//! |---|---|
//! | `download`, `pristine` | MPICH's source as released |
//! | `src` | the same with `netmod/` and `mpich-patches/` in it, regenerated |
//! | `build-PROFILE` | the directory in which it is configured and compiled |
//! | `PROFILE` | the installation, with `libntbring.so` |
//! | `current` | a link to the profile that was set up last |
//! | `stamps`, `logs`, `lock` | records of completed steps, logs of steps, a lock against concurrent calls |

pub mod apt;
mod build;
mod configure;
pub mod library;
mod overlay;
pub mod packages;
pub mod placement;
mod profile;
mod regenerate;
mod shmem;
mod smoke;
mod source;
pub mod stamp;
mod times;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use anyhow::{bail, Context, Result};
use clap::Args;

use crate::mpi::Mpi;
use crate::{lock, parallel, paths, ui};
pub use profile::Profile;
use stamp::Digest;

/// Command-line options of all commands that need an MPI.
#[derive(Args, Clone, Debug)]
pub struct SetupArgs {
    /// Parts of MPICH to build
    #[arg(long, value_enum, default_value_t = Profile::Full)]
    pub profile: Profile,

    /// A source tree or tarball of MPICH 4.0.2, instead of Debian's source package
    #[arg(long, value_name = "PATH")]
    pub mpich_src: Option<PathBuf>,

    /// Number of compilers to run at once; only `setup` itself has an option for it.
    #[arg(skip)]
    jobs: Option<usize>,
}

/// Command-line options of `cargo xtask setup`.
#[derive(Args, Clone, Debug)]
pub struct SetupCommand {
    #[command(flatten)]
    setup: SetupArgs,

    /// Compilers to run at once [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
}

/// Runs the command.
pub fn run(command: &SetupCommand) -> Result<Installed> {
    let mut args = command.setup.clone();
    args.jobs = command.jobs.map(usize::from);
    ensure(&args)
}

/// The products of set-up.
pub struct Installed {
    /// The MPI to compile and run with.
    pub mpi: Mpi,
    /// The profile that was set up.
    pub profile: Profile,
    /// MPICH's source as released, which contains its test suite.
    pub source: PathBuf,
    /// Identity of that source.
    pub source_id: String,
}

/// Performs the steps that are not up to date, and prints a line for each of them.
pub fn ensure(args: &SetupArgs) -> Result<Installed> {
    let start = Instant::now();
    let profile = args.profile;
    let jobs = args.jobs.unwrap_or_else(parallel::cores);
    let _lock = lock::take(&paths::mpich().join("lock"))?;
    let prefix = paths::mpich().join(profile.to_string());

    packages::ensure(profile)?;
    let header = library::header(&prefix)?;
    let (library, (pristine, overlaid, configured)) = beside_library(&prefix, || {
        let pristine = source::ensure(args.mpich_src.as_deref())?;
        let overlaid = overlay::ensure(&pristine)?;
        let configured = configure::ensure(profile, &overlaid, &prefix)?;
        Ok((pristine, overlaid, configured))
    })?;
    let built = build::ensure(profile, &overlaid, &configured, &header, &prefix, jobs)?;
    link_current(profile)?;
    let mpi = Mpi::of_prefix(&prefix);
    let digest = Digest::of("smoke", 1).text(&profile.to_string()).text(&built).text(&library);
    smoke::ensure(&mpi, &digest.finish())?;

    println!(
        "set-up: MPICH {} with ntbring, profile {profile}, is in {} ({})",
        source::VERSION,
        paths::shown(&prefix),
        ui::seconds(start.elapsed())
    );
    Ok(Installed { mpi, profile, source: pristine.dir, source_id: pristine.id })
}

/// Performs `steps` while the library is built, and then installs it. Returns its digest and the result of the steps.
fn beside_library<T>(prefix: &Path, steps: impl FnOnce() -> Result<T>) -> Result<(String, T)> {
    let (library, steps) = thread::scope(|scope| {
        let building = library::Building::start(scope);
        let steps = steps();
        (building.end(prefix), steps)
    });
    match (library, steps) {
        (Ok(library), Ok(steps)) => Ok((library, steps)),
        // Of two errors neither hides the other.
        (Err(library), Err(steps)) => bail!("{library:#}\n\n{steps:#}"),
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

/// Fetches only MPICH's source, for use with another MPI. Returns its directory and its identity.
pub fn source_only(args: &SetupArgs) -> Result<(PathBuf, String)> {
    let pristine = match source::present() {
        // Nothing is made, so the lock is not needed.
        Some(pristine) if args.mpich_src.is_none() => pristine,
        _ => {
            let _lock = lock::take(&paths::mpich().join("lock"))?;
            source::ensure(args.mpich_src.as_deref())?
        }
    };
    Ok((pristine.dir, pristine.id))
}

fn link_current(profile: Profile) -> Result<()> {
    let link = paths::mpich().join("current");
    let wanted = PathBuf::from(profile.to_string());
    if fs::read_link(&link).is_ok_and(|present| present == wanted) {
        return Ok(());
    }
    let temporary = paths::mpich().join("current.tmp");
    paths::remove(&temporary)?;
    std::os::unix::fs::symlink(wanted, &temporary)?;
    fs::rename(&temporary, &link).with_context(|| format!("cannot make the link {}", link.display()))
}
