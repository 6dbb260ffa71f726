//! The map of hosts.

use super::{opened, Fake, END};
use crate::{parse_mapping, PmiError, Split};
use proptest::prelude::*;

#[test]
fn blocks_are_repeated_until_all_ranks_have_a_host() {
    let parse = |text, size| parse_mapping(text, size).unwrap();
    assert_eq!(parse("(vector,(0,4,2),(4,1,3))", 13), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 0, 0]);
    assert_eq!(parse(" ( vector , ( 0 , 1 , 2 ) ) ", 3), [0, 0, 0]);
    assert_eq!(parse("(vector,(2,1,1),(0,2,1))", 6), [2, 0, 1, 0, 1, 0]);
    assert_eq!(parse("(vector,(3,2,1))", 3), [3, 4, 3]);
    assert_eq!(parse("(vector,(2,1,2),(0,0,1))", 2), [2, 2]);
    assert_eq!(parse("(vector,(0,2147483647,0),(0,1,1))", 2), [0, 0]);
}

#[test]
fn what_is_no_mapping_is_refused() {
    let texts = [
        "(vector)",
        "(vector,(0,1,1)",
        "(vector,(0,1,1)))",
        "(vector,(0,1))",
        "(vector,(0,0,1))",
        "(matrix,(0,1,1))",
        "(vector,(0,1,-1))",
        "(vector,(0,1,99999999999))",
        "vector",
        "()",
        "(vector,)",
        "(vector,(2147483647,2,1),(0,0,1))",
    ];
    for text in texts {
        assert!(matches!(parse_mapping(text, 4), Err(PmiError::Mapping { .. })), "{text}");
    }
}

#[test]
fn hosts_are_numbered_without_gaps() {
    let question = "cmd=get kvsname=kvs_7 key=PMI_process_mapping";
    for (answer, hosts) in [
        (
            "cmd=get_result rc=0 msg=success value=(vector,(5,1,3),(2,2,1),(9,1,3))\n",
            Some(vec![2, 2, 2, 0, 1, 3, 3, 3]),
        ),
        ("cmd=get_result rc=-1 msg=key_PMI_process_mapping_not_found\n", None),
        ("cmd=get_result rc=0 value=\n", None),
    ] {
        let fake = Fake::after_start(&[(question, answer), END], 4096);
        let session = opened(&fake);
        match (session.hosts(), hosts) {
            (Ok(found), Some(hosts)) => assert_eq!(found, (hosts, 4)),
            (Err(PmiError::NoMapping { .. }), None) => {}
            other => panic!("{other:?}"),
        }
        session.close().unwrap();
        fake.join();
    }
}

#[test]
fn variables_split_hosts_as_in_mpich() {
    let split = |set: &'static [(&str, &str)]| {
        Split::from_environment(&|name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string()))
    };
    assert_eq!(split(&[]), Split::None);
    assert_eq!(split(&[("MPIR_CVAR_NOLOCAL", "0")]), Split::None);
    assert_eq!(split(&[("MPIR_CVAR_NOLOCAL", "1"), ("MPIR_CVAR_NUM_CLIQUES", "2")]), Split::Ranks);
    assert_eq!(split(&[("MPIR_CVAR_NO_LOCAL", "yes")]), Split::Ranks);
    assert_eq!(split(&[("MPIR_CVAR_NUM_CLIQUES", "3")]), Split::InTurn(3));
    assert_eq!(split(&[("MPIR_CVAR_NUM_CLIQUES", "3"), ("MPIR_CVAR_CLIQUES_BY_BLOCK", "1")]), Split::InBlocks(3));
    assert_eq!(split(&[("MPIR_CVAR_ODD_EVEN_CLIQUES", "1")]), Split::InTurn(2));
    assert_eq!(Split::Ranks.apply(vec![7, 7, 7]), (vec![0, 1, 2], 3));
    assert_eq!(Split::InTurn(2).apply(vec![0; 5]), (vec![0, 1, 0, 1, 0], 2));
    assert_eq!(Split::InTurn(9).apply(vec![0; 2]), (vec![0, 1], 2));
    assert_eq!(Split::InBlocks(3).apply(vec![0; 7]), (vec![0, 0, 0, 1, 1, 2, 2], 3));
    assert_eq!(Split::InTurn(2).apply(vec![1, 3, 1]), (vec![0, 1, 0], 2));
}

/// Places rank by rank, as MPICH does.
fn naive(blocks: &[(u32, u32, u32)], size: usize) -> Vec<u32> {
    let (mut host_of, mut wrapped) = (Vec::new(), false);
    loop {
        let skipped = if wrapped { blocks.iter().position(|block| block.0 == 0).unwrap() } else { 0 };
        for &(first, hosts, ranks) in &blocks[skipped..] {
            wrapped |= first == 0;
            for host in first..first + hosts {
                for _ in 0..ranks {
                    host_of.push(host);
                    if host_of.len() == size {
                        return host_of;
                    }
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_parsed_without_panic(text in "[(),vector0-9 -]{0,40}|\\PC{0,40}", size in 1usize..100) {
        if let Ok(host_of) = parse_mapping(&text, size) {
            prop_assert_eq!(host_of.len(), size);
        }
    }

    #[test]
    fn it_agrees_with_placing_rank_by_rank(
        blocks in proptest::collection::vec((0u32..4, 0u32..4, 0u32..4), 1..5), size in 1usize..60,
    ) {
        let text: String = blocks.iter().map(|(first, hosts, ranks)| format!(",({first},{hosts},{ranks})")).collect();
        match parse_mapping(&format!("(vector{text})"), size) {
            Ok(host_of) => prop_assert_eq!(host_of, naive(&blocks, size)),
            Err(_) => {
                let again = blocks.iter().position(|block| block.0 == 0).unwrap_or(0);
                prop_assert!(blocks[again..].iter().all(|block| block.1 * block.2 == 0));
                prop_assert!(blocks.iter().map(|block| block.1 * block.2).sum::<u32>() < size as u32);
            }
        }
    }
}
