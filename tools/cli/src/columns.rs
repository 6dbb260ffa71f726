//! Tables in columns without lines, for text that is printed.

use comfy_table::{presets::NOTHING, CellAlignment, Table};

/// Returns an empty table in which all columns but the first `left` are aligned to the right.
pub fn table(header: Vec<String>, left: usize) -> Table {
    let columns = header.len();
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(header);
    for column in left..columns {
        table.column_mut(column).into_iter().for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    }
    table
}
