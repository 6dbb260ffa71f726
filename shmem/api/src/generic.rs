//! Names for all types in C11: macros that choose a function by the type that the first pointer points to, and by
//! the number of arguments whether there is a context before the others.

use crate::family::Contexts;
use crate::function::Function;
use crate::types::Set;
use std::fmt::Write;

/// Calls of old programs that have no prototype, because such programs also call variables so.
pub(crate) fn old_calls() -> &'static str {
    "\n/* Old name, also of variables in programs: thus no function (deprecated) */\n\
     #ifndef __cplusplus\n#define num_pes() shmem_n_pes()\n#endif\n"
}

/// All macros; `functions` are those that the header has.
pub(crate) fn macros(functions: &[Function]) -> String {
    let examples = examples(functions);
    let mut text = String::from(
        "\n/* Names for all types in C11 */\n\
         #if !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L\n\n\
         /* What follows as many arguments as the number says */\n",
    );
    let both = |f: &&&Function| f.row.contexts == Contexts::Both;
    let mut counts: Vec<usize> = examples.iter().filter(both).map(|f| f.parameters.len() + 1).collect();
    // `shmem_sync` has up to four arguments.
    counts.push(4);
    counts.sort_unstable();
    counts.dedup();
    for count in counts {
        let list: Vec<String> = (1..=count).map(|n| format!("a{n}")).collect();
        let _ = writeln!(text, "#define SHMEM_IMPL_AFTER_{count}({}, name, ...) name", list.join(", "));
    }

    text.push_str("\n/* Functions of all types of a set; each C type once */\n");
    for &set in Set::ALL {
        if examples.iter().any(|function| function.row.set() == Some(set)) {
            let list: Vec<String> =
                set.distinct().iter().map(|t| format!("{}: before##{}##after", t.base, t.name)).collect();
            let _ = writeln!(
                text,
                "#define SHMEM_IMPL_{}(before, after) \\\n    {}",
                set_name(set),
                list.join(", \\\n    ")
            );
        }
    }

    text.push('\n');
    for example in examples {
        text.push_str(&family_macros(example));
    }
    text.push_str(
        "#define shmem_sync(...) \\\n    SHMEM_IMPL_AFTER_4(__VA_ARGS__, shmem_sync, 0, 0, shmem_team_sync, 0)(__VA_ARGS__)\n\
         \n#endif\n",
    );
    text
}

/// For each family with a name for all types its first function, which has no context.
fn examples(functions: &[Function]) -> Vec<&Function> {
    let first = |f: &Function| f.of.is_some() && f.of == f.row.set().and_then(|set| set.members().first().copied());
    functions.iter().filter(|f| f.row.generic.is_some() && !f.ctx && first(f)).collect()
}

/// Name of the first parameter that points to the type.
fn chooser(function: &Function) -> &str {
    let mut pointers = function.parameters.iter().filter(|p| p.template.trim_start_matches("const ") == "T *");
    pointers.next().map_or("", |p| &p.name)
}

fn set_name(set: Set) -> String {
    format!("{set:?}").to_uppercase()
}

/// The macros of the family of `example`.
fn family_macros(example: &Function) -> String {
    let family = example.row;
    let (Some(generic), Some(set)) = (family.generic, family.set()) else { return String::new() };
    let names: Vec<&str> = example.parameters.iter().map(|p| p.name.as_str()).collect();
    let (list, chooser) = (names.join(", "), chooser(example));
    let one = |name: &str, before: &str, leading: &str| {
        format!(
            "#define {name}({leading}{list}) \\\n    _Generic(*({chooser}), SHMEM_IMPL_{}({before}, _{}{}))({leading}{list})\n",
            set_name(set),
            family.stem,
            family.suffix
        )
    };
    if family.contexts != Contexts::Both {
        return one(generic, "shmem_", "");
    }
    let short = generic.trim_start_matches("shmem_");
    let (plain, ctx) = (format!("SHMEM_IMPL_CALL_{short}"), format!("SHMEM_IMPL_CTX_CALL_{short}"));
    format!(
        "{}{}#define {generic}(...) \\\n    SHMEM_IMPL_AFTER_{}(__VA_ARGS__, {ctx}, {plain}, 0)(__VA_ARGS__)\n",
        one(&plain, "shmem_", ""),
        one(&ctx, "shmem_ctx_", "ctx, "),
        names.len() + 1
    )
}
