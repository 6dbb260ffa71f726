//! The matrix as text.

use super::traffic::{Matrix, Unit};
use crate::columns::table;
use comfy_table::Table;
use std::cmp::Reverse;

/// Largest number of rows; of larger matrices the pairs with the most traffic are listed.
const ROWS: usize = 16;
/// Number of these pairs.
const PAIRS: usize = 20;

/// Returns the matrix as a table, with sums; or the largest cells, if there would be too many columns.
pub fn show(name: &str, matrix: &Matrix, unit: Unit) -> String {
    let (what, kind) = (unit.name(), matrix.kind());
    let mut text = format!("{name}: {} ranks on {} hosts; {what} sent by row to column\n", matrix.ranks, matrix.hosts);
    if !matrix.missing.is_empty() {
        let missing: Vec<String> = matrix.missing.iter().map(u64::to_string).collect();
        text += &format!("there are no counters of ranks {}\n", missing.join(", "));
    }
    if matrix.len() <= ROWS {
        return text + &format!("\n{}\n", cells(matrix, unit)) + note(matrix);
    }
    let total: u64 = matrix.sent(unit).iter().sum();
    text += &format!("{} {what} in all; the {kind}s with the most, of {}:\n", scaled(total), matrix.len());
    text += &format!("\n{}\n", largest(matrix, unit, total));
    text += "--svg FILE draws all, --json prints all, and --hosts sums by host\n";
    text + note(matrix)
}

/// Returns what the numbers leave out, if there may be something.
fn note(matrix: &Matrix) -> &'static str {
    match matrix.ranks > matrix.hosts {
        true => "messages between ranks of a host go through MPICH's shared memory, and are not counted\n",
        false => "",
    }
}

fn cells(matrix: &Matrix, unit: Unit) -> Table {
    let names: Vec<String> = (0..matrix.len()).map(|i| format!("{} {i}", matrix.kind())).collect();
    let header = [vec![String::new()], names.clone(), vec!["sent".into()]].concat();
    let mut table = table(header, 1);
    let line = |name: &str, numbers: &[u64], sum: u64| {
        let shown = numbers.iter().map(|&number| if number == 0 { ".".into() } else { scaled(number) });
        [name.to_string()].into_iter().chain(shown).chain([scaled(sum)]).collect::<Vec<_>>()
    };
    for ((row, name), sum) in matrix.cells(unit).iter().zip(&names).zip(matrix.sent(unit)) {
        table.add_row(line(name, row, sum));
    }
    let received = matrix.received(unit);
    table.add_row(line("received", &received, received.iter().sum()));
    table
}

fn largest(matrix: &Matrix, unit: Unit, total: u64) -> Table {
    let rows = matrix.cells(unit).iter().enumerate();
    let mut pairs: Vec<(u64, usize, usize)> =
        rows.flat_map(|(from, row)| row.iter().enumerate().map(move |(to, &cell)| (cell, from, to))).collect();
    pairs.retain(|pair| pair.0 > 0);
    pairs.sort_by_key(|&(cell, from, to)| (Reverse(cell), from, to));
    let mut table = table(["from", "to", unit.name(), "share"].map(String::from).into(), 2);
    for (cell, from, to) in pairs.into_iter().take(PAIRS) {
        let share = 100.0 * cell as f64 / total as f64;
        let [from, to] = [from, to].map(|i| format!("{} {i}", matrix.kind()));
        table.add_row([from, to, scaled(cell), format!("{share:.1} %")]);
    }
    table
}

/// Returns a number with at most five digits, and a unit that is a power of 1000.
pub fn scaled(number: u64) -> String {
    if number < 100_000 {
        return number.to_string();
    }
    let (mut scaled, mut units) = (number as f64 / 1e3, ["k", "M", "G", "T", "P", "E"].into_iter());
    let mut unit = units.next();
    while scaled >= 999.95 {
        (scaled, unit) = (scaled / 1e3, units.next());
    }
    format!("{scaled:.1} {}", unit.unwrap_or("?"))
}

#[cfg(test)]
mod tests {
    use super::super::traffic::tests::sender;
    use super::*;

    #[test]
    fn numbers_stay_short() {
        let numbers = [0, 99_999, 100_000, 999_949, 999_950, 12_345_678, u64::MAX].map(scaled);
        assert_eq!(numbers, ["0", "99999", "100.0 k", "999.9 k", "1.0 M", "12.3 M", "18.4 E"]);
    }

    #[test]
    fn a_small_matrix_is_a_table_with_sums() {
        let matrix = Matrix::of(&[sender(0, &[(1, 2, 20), (3, 1, 8)]), sender(2, &[(0, 4, 40)])]).unwrap();
        let text = show("job 7", &matrix, Unit::Bytes);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let has = |line: &[&str]| assert!(lines.iter().any(|found| found == line), "{line:?} in\n{text}");
        has(&["rank", "0", ".", "20", ".", "8", "28"]);
        has(&["received", "40", "20", ".", "8", "68"]);
        assert!(text.contains("no counters of ranks 1, 3") && text.contains("are not counted"));
        let hosts = show("job 7", &matrix.by_host(), Unit::Messages);
        assert!(hosts.contains("host 1") && hosts.contains("messages sent by row to column"), "{hosts}");
    }

    #[test]
    fn of_a_large_matrix_the_largest_cells_are_listed() {
        let mut matrix = Matrix::of(&[sender(0, &[])]).unwrap();
        let n = ROWS + 1;
        (matrix.ranks, matrix.hosts, matrix.host_of) = (n as u64, n as u64, Some(vec![None; n]));
        matrix.bytes =
            (0..n).map(|from| (0..n).map(|to| u64::from(to == (from + 1) % n) * (1 + from as u64)).collect()).collect();
        matrix.msgs = matrix.bytes.clone();
        let text = show("job 7", &matrix, Unit::Bytes);
        let first = text.lines().find(|line| line.contains('%')).unwrap();
        assert_eq!(first.split_whitespace().collect::<Vec<_>>(), ["rank", "16", "rank", "0", "17", "11.1", "%"]);
        assert_eq!(text.lines().filter(|line| line.contains('%')).count(), n);
    }
}
