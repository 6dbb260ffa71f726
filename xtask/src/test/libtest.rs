//! Parses the output of `cargo test`.

use crate::ui::Tally;

/// Sums up the counts of the lines `test result: ok. N passed; M failed; ...` of all test binaries.
pub fn count(output: &str) -> Tally {
    let mut tally = Tally::default();
    for line in output.lines() {
        let Some(result) = line.trim().strip_prefix("test result: ") else {
            continue;
        };
        let number = |what: &str| {
            let words: Vec<&str> = result.split([' ', ';']).filter(|word| !word.is_empty()).collect();
            words.windows(2).find(|pair| pair[1] == what).and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
        };
        tally += Tally { passed: number("passed"), failed: number("failed") };
    }
    tally
}

/// Returns the names of the tests that failed, from lines `test NAME ... FAILED`.
pub fn failures(output: &str) -> impl Iterator<Item = &str> {
    output.lines().filter_map(|line| line.trim().strip_prefix("test ")?.strip_suffix(" ... FAILED"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_binaries_are_counted() {
        let output = "running 2 tests\ntest a ... ok\n\
            test result: ok. 14 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 3.32s\n\
            noise\ntest result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0s\n";
        assert_eq!(count(output), Tally { passed: 17, failed: 2 });
        let named = "test a::b ... ok\ntest a::c - should panic ... FAILED\ntest result: FAILED. 1 passed; 1 failed;\n";
        assert_eq!(failures(named).collect::<Vec<_>>(), ["a::c - should panic"]);
        assert_eq!(count("error: could not compile"), Tally::default());
    }
}
