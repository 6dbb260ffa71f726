//! Waiting for memory, and testing it.

use crate::family::{Family, Group};
use crate::types::Set;

const ONE: &str = "T *ivar, int cmp, T cmp_value";
const MANY: &str = "T *ivars, size_t nelems, const int *status, int cmp, T cmp_value";
const MANY_VECTOR: &str = "T *ivars, size_t nelems, const int *status, int cmp, const T *cmp_values";
const SOME: &str = "T *ivars, size_t nelems, size_t *indices, const int *status, int cmp, T cmp_value";
const SOME_VECTOR: &str = "T *ivars, size_t nelems, size_t *indices, const int *status, int cmp, const T *cmp_values";

const fn many(r: &'static str, stem: &'static str, p: &'static str, rust: &'static str, name: &'static str) -> Family {
    Family::new(stem, r, p, rust).typed(Set::Standard).generic(name)
}

#[rustfmt::skip]
pub(super) const UNTIL: Group = Group::new(
    "Waiting",
    &[
        Family::new("wait_until", "void", ONE, "waiting::wait_until").typed(Set::Wait).generic("shmem_wait_until"),
        many("void", "wait_until_all", MANY, "waiting::wait_until_all", "shmem_wait_until_all"),
        many("size_t", "wait_until_any", MANY, "waiting::wait_until_any", "shmem_wait_until_any"),
        many("size_t", "wait_until_some", SOME, "waiting::wait_until_some", "shmem_wait_until_some"),
        many("void", "wait_until_all_vector", MANY_VECTOR, "waiting::wait_until_all_vector", "shmem_wait_until_all_vector"),
        many("size_t", "wait_until_any_vector", MANY_VECTOR, "waiting::wait_until_any_vector", "shmem_wait_until_any_vector"),
        many("size_t", "wait_until_some_vector", SOME_VECTOR, "waiting::wait_until_some_vector", "shmem_wait_until_some_vector"),
    ],
);

#[rustfmt::skip]
pub(super) const TEST: Group = Group::new(
    "Testing",
    &[
        Family::new("test", "int", ONE, "waiting::test").typed(Set::Wait).generic("shmem_test"),
        many("int", "test_all", MANY, "waiting::test_all", "shmem_test_all"),
        many("size_t", "test_any", MANY, "waiting::test_any", "shmem_test_any"),
        many("size_t", "test_some", SOME, "waiting::test_some", "shmem_test_some"),
        many("int", "test_all_vector", MANY_VECTOR, "waiting::test_all_vector", "shmem_test_all_vector"),
        many("size_t", "test_any_vector", MANY_VECTOR, "waiting::test_any_vector", "shmem_test_any_vector"),
        many("size_t", "test_some_vector", SOME_VECTOR, "waiting::test_some_vector", "shmem_test_some_vector"),
    ],
);

pub(super) const OLD: Group = Group::new(
    "Old names of waiting",
    &[
        Family::new("wait", "void", "T *ivar, T cmp_value", "waiting::wait")
            .typed(Set::OldWait)
            .generic("shmem_wait")
            .deprecated(),
        Family::single("shmem_wait", "void", "long *ivar, long cmp_value", "waiting::wait::<c_long>").deprecated(),
        Family::single(
            "shmem_wait_until",
            "void",
            "long *ivar, int cmp, long cmp_value",
            "waiting::wait_until::<c_long>",
        )
        .deprecated(),
    ],
);
