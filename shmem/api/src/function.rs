//! Single functions, which the families are expanded to.

use crate::family::{Contexts, Family, Group, Kind};
use crate::functions::GROUPS;
use crate::types::{Type, SIZES};

/// A parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// C type as the family has it, with `T`; `...` for further arguments of any kind.
    pub template: String,
    /// C type.
    pub c: String,
    /// Name; empty for further arguments.
    pub name: String,
}

/// A function of the interface.
#[derive(Debug, Clone)]
pub struct Function {
    /// Public name.
    pub name: String,
    /// Name of the family: what the function does.
    pub family: String,
    /// Name of the type, size in bits, or `mem`, if its name has one.
    pub type_name: Option<String>,
    /// Whole C prototype without a semicolon.
    pub prototype: String,
    /// C type of the result.
    pub result: String,
    /// Parameters, with the context if there is one.
    pub parameters: Vec<Parameter>,
    /// True for the variant with a context.
    pub ctx: bool,
    /// The type of typed functions.
    pub of: Option<&'static Type>,
    /// Rust type that the generic implementation gets.
    pub rust_type: Option<&'static str>,
    /// The family.
    pub row: &'static Family,
    /// The group of the family.
    pub group: &'static Group,
}

impl Function {
    /// Name of the same function for tools that wrap the public one: with a `p` before it.
    pub fn profiling_name(&self) -> String {
        format!("p{}", self.name)
    }

    /// Whole C prototype of the same function for tools.
    pub fn profiling_prototype(&self) -> String {
        prototype(&self.result, &self.profiling_name(), &self.parameters)
    }

    /// Returns true if a `long double` is passed or returned by value, which Rust cannot do.
    pub fn by_value_long_double(&self) -> bool {
        self.result == "long double" || self.parameters.iter().any(|p| p.c == "long double")
    }
}

/// All functions, without their twins for tools.
pub fn functions() -> Vec<Function> {
    let mut all = Vec::new();
    for group in GROUPS {
        for family in group.families {
            expand(group, family, &mut all);
        }
    }
    all
}

/// Adds all functions of `family`: first those without a context, then those with one.
fn expand(group: &'static Group, family: &'static Family, to: &mut Vec<Function>) {
    let variants: &[bool] = if family.contexts == Contexts::Both { &[false, true] } else { &[false] };
    for &ctx in variants {
        for &kind in family.kinds.iter().flatten() {
            let mut add = |of, rust, name: &str| to.push(function(group, family, kind, ctx, of, rust, name));
            match kind {
                Kind::Single => add(None, None, ""),
                Kind::Typed(set) => {
                    set.members().into_iter().for_each(|member| add(Some(member), Some(member.rust), member.name));
                }
                Kind::Sized(sizes) => {
                    for (bits, rust) in SIZES.iter().filter(|(bits, _)| sizes.contains(bits)) {
                        add(None, Some(rust), &bits.to_string());
                    }
                }
                Kind::Mem => add(None, Some("u8"), "mem"),
            }
        }
    }
}

fn function(
    group: &'static Group,
    family: &'static Family,
    kind: Kind,
    ctx: bool,
    of: Option<&'static Type>,
    rust_type: Option<&'static str>,
    type_name: &str,
) -> Function {
    let mut name = family.name(kind, type_name);
    let c = of.map_or("void", |t| t.c);
    let mut parameters = parameters(family.parameters, c);
    if ctx {
        name = name.replacen("shmem_", "shmem_ctx_", 1);
        let c = "shmem_ctx_t".to_string();
        parameters.insert(0, Parameter { template: c.clone(), c, name: "ctx".to_string() });
    }
    let result = substitute(family.result, c);
    let prototype = prototype(&result, &name, &parameters);
    let type_name = (kind != Kind::Single).then(|| type_name.to_string());
    let family_name = format!("{}{}", family.stem, family.suffix);
    Function {
        name,
        family: family_name,
        type_name,
        prototype,
        result,
        parameters,
        ctx,
        of,
        rust_type,
        row: family,
        group,
    }
}

/// The parameters of a list of a family, for this C type.
fn parameters(list: &str, c: &str) -> Vec<Parameter> {
    list.split(',').map(str::trim).filter(|text| !text.is_empty()).map(|text| parameter(text, c)).collect()
}

fn parameter(text: &str, c: &str) -> Parameter {
    if text == "..." {
        return Parameter { template: text.to_string(), c: text.to_string(), name: String::new() };
    }
    let end = text.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(0, |last| last + 1);
    let template = text[..end].trim().to_string();
    Parameter { c: substitute(&template, c), template, name: text[end..].to_string() }
}

/// A C type with `T` replaced.
fn substitute(template: &str, c: &str) -> String {
    let words: Vec<&str> = template.split(' ').map(|word| if word == "T" { c } else { word }).collect();
    words.join(" ")
}

/// A declaration of a type and a name: no space after a star.
pub(crate) fn declare(c: &str, name: &str) -> String {
    if c.ends_with('*') || name.is_empty() {
        format!("{c}{name}")
    } else {
        format!("{c} {name}")
    }
}

/// A whole C prototype.
pub(crate) fn prototype(result: &str, name: &str, parameters: &[Parameter]) -> String {
    let list: Vec<String> = parameters.iter().map(|p| declare(&p.c, &p.name)).collect();
    let list = if list.is_empty() { "void".to_string() } else { list.join(", ") };
    format!("{}({list})", declare(result, name))
}
