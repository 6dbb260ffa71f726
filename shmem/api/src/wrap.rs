//! Long lines of the headers.

/// Widest line of a prototype.
const WIDTH: usize = 120;

/// Returns a long prototype on several lines, broken after commas.
pub fn wrapped(line: &str) -> String {
    let (mut text, mut width) = (String::new(), 0);
    for (n, part) in line.split_inclusive(", ").enumerate() {
        if n > 0 && width + part.trim_end().len() > WIDTH {
            text.truncate(text.trim_end().len());
            text.push_str("\n    ");
            width = 4;
        }
        text.push_str(part);
        width += part.len();
    }
    text
}
