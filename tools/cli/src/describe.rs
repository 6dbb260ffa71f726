//! `ntbring describe`: completions for shells and man pages of this tool itself, and pages of the documentation that
//! are made of the tables in the code.

mod reference;

use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::Shell;
use std::error::Error;
use std::path::PathBuf;

#[derive(Args)]
pub struct DescribeArgs {
    /// Kind of output: completions for a shell; `man`: pages, into DIR; `settings` or `counters`: a page of the
    /// documentation, in Markdown
    form: Form,

    /// Directory for man pages
    #[arg(required_if_eq("form", "man"), value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Bash,
    Zsh,
    Fish,
    Man,
    Settings,
    Counters,
}

/// Prints completions or a page, or writes man pages.
pub fn run<C: CommandFactory>(args: &DescribeArgs) -> Result<(), Box<dyn Error>> {
    match args.form {
        Form::Bash => complete::<C>(Shell::Bash),
        Form::Zsh => complete::<C>(Shell::Zsh),
        Form::Fish => complete::<C>(Shell::Fish),
        Form::Man => clap_mangen::generate_to(C::command(), args.dir.as_deref().ok_or("there is no directory")?)?,
        Form::Settings => print!("{}", reference::settings()),
        Form::Counters => print!("{}", reference::counters()),
    }
    Ok(())
}

fn complete<C: CommandFactory>(shell: Shell) {
    clap_complete::generate(shell, &mut C::command(), "ntbring", &mut std::io::stdout());
}
