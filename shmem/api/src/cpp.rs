//! Names for all types in C++: overloads.

use crate::function::{prototype, Function};
use crate::wrap::wrapped;
use std::fmt::Write;

/// All overloads; `functions` are those that the header has.
pub(crate) fn overloads(functions: &[Function]) -> String {
    let mut text = String::from(
        "\n/* Names for all types in C++, also if this header is included in extern \"C\" */\n\
         #ifdef __cplusplus\nextern \"C++\" {\n",
    );
    for function in functions {
        let (Some(generic), Some(of), Some(set)) = (function.row.generic, function.of, function.row.set()) else {
            continue;
        };
        if !set.distinct().contains(&of) || is_function(functions, generic, function) {
            continue;
        }
        overload(&mut text, generic, function);
    }
    if let Some(sync) = functions.iter().find(|function| function.name == "shmem_team_sync") {
        overload(&mut text, "shmem_sync", sync);
    }
    text.push_str("}\n#endif\n");
    text
}

/// Returns true if there is a C function of this name with the same parameters.
fn is_function(functions: &[Function], name: &str, overload: &Function) -> bool {
    let types = |f: &Function| f.parameters.iter().map(|p| p.c.clone()).collect::<Vec<String>>();
    functions.iter().any(|f| f.name == name && types(f) == types(overload))
}

fn overload(text: &mut String, name: &str, function: &Function) {
    let arguments: Vec<&str> = function.parameters.iter().map(|p| p.name.as_str()).collect();
    let head = wrapped(&format!("inline {}", prototype(&function.result, name, &function.parameters)));
    let back = if function.result == "void" { "" } else { "return " };
    // Writing to a string does not fail.
    let _ = writeln!(text, "{head}\n{{\n    {back}{}({});\n}}", function.name, arguments.join(", "));
}
