//! `ntbring describe`: completions for shells and man pages of this tool itself, and pages of the documentation that
//! are made of the tables in the code.

mod reference;

use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::Shell;
use std::error::Error;
use std::path::PathBuf;

#[derive(Args)]
pub struct DescribeArgs {
    /// What to print: completions for a shell; `man`: pages, into DIR; `settings` or `counters`: a page of the
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
    let shell = match args.form {
        Form::Bash => Shell::Bash,
        Form::Zsh => Shell::Zsh,
        Form::Fish => Shell::Fish,
        Form::Man => {
            let dir = args.dir.as_deref().ok_or("there is no directory")?;
            return Ok(clap_mangen::generate_to(C::command(), dir)?);
        }
        Form::Settings => return Ok(print!("{}", reference::settings())),
        Form::Counters => return Ok(print!("{}", reference::counters())),
    };
    clap_complete::generate(shell, &mut C::command(), "ntbring", &mut std::io::stdout());
    Ok(())
}
