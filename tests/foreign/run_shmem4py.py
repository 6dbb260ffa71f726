"""Runs shmem4py's own tests. Arguments, the same on all PEs: the directory of the tests, and the tests to leave out."""

import faulthandler
import io
import sys
import unittest

# Shorter than the time limit of cargo xtask foreign-test, so that its log shows where each PE waits.
HANGS_AFTER = 150


def tests_of(suite):
    """Yields the single tests of a suite."""
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            yield from tests_of(part)
        else:
            yield part


def main(folder, left_out):
    from shmem4py import shmem

    faulthandler.dump_traceback_later(HANGS_AFTER, exit=True)
    found = list(tests_of(unittest.TestLoader().discover(folder)))
    suite = unittest.TestSuite(test for test in found if test.id() not in left_out)
    unknown = set(left_out) - {test.id() for test in found}
    text = io.StringIO()
    result = unittest.TextTestRunner(stream=text, verbosity=0).run(suite)
    # A test counts once, even if several of its subtests fail.
    wrong = {getattr(test, "test_case", test).id() for test, _ in result.errors + result.failures}
    wrong |= {test.id() for test in result.unexpectedSuccesses} | unknown
    skipped = len(result.skipped)
    passed = result.testsRun - skipped - len(wrong)
    said = text.getvalue() if wrong else ""
    if unknown:
        said += f"not among the tests: {', '.join(sorted(unknown))}\n"
    # One call for all, so that the output of the PEs does not get mixed.
    sys.stdout.write(f"{said}\nPE {shmem.my_pe()}: {passed} passed, {len(wrong)} failed, {skipped} skipped\n")
    sys.stdout.flush()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
