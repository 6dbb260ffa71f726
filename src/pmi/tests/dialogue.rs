//! Questions and answers, also wrong ones.

use super::{opened, Fake, END, START};
use crate::{Limits, PmiError, Session};
use std::io::{Read, Write};

#[test]
fn questions_and_answers_of_a_whole_session() {
    for piece in [1, 7, 4096] {
        let dialogue = [
            ("cmd=put kvsname=kvs_7 key=k value=v=1", "cmd=put_result rc=0 msg=success\n"),
            ("cmd=barrier_in", "cmd=barrier_out\n"),
            ("cmd=get kvsname=kvs_7 key=k", "cmd=get_result rc=0 msg=success value=v=1\n"),
            ("cmd=get kvsname=kvs_7 key=none", "cmd=get_result rc=-1 msg=key_none_not_found value=unknown\n"),
            END,
        ];
        let fake = Fake::after_start(&dialogue, piece);
        let session = Session::new();
        let job = session.open_with(&fake.lookup()).unwrap();
        assert_eq!((job.rank, job.size, job.spawned, job.fd), (3, 8, false, Some(fake.fd)));
        assert_eq!(job.limits, Limits { kvsname: 256, key: 64, value: 674 });
        session.put("k", "v=1").unwrap();
        session.barrier().unwrap();
        assert_eq!(session.get("k").unwrap(), "v=1");
        let error = session.get("none").unwrap_err();
        assert!(matches!(&error, PmiError::NoKey { key, .. } if key == "none"), "{error}");
        session.close().unwrap();
        fake.join();
    }
}

#[test]
fn a_wrong_answer_is_an_error_and_ends_the_dialogue() {
    let long = format!("cmd={}\n", "x".repeat((1 << 20) + 5000));
    let wrong = [
        "cmd=put_result rc=0\n",
        "barrier_out\n",
        "=barrier_out\n",
        "\n",
        "cmd=barrier_out\ncmd=barrier_out\n",
        "cmd=barrier_out",
        "     7cmd=x;",
        &long,
    ];
    for answer in wrong {
        let fake = Fake::after_start(&[("cmd=barrier_in", answer)], 4096);
        let session = opened(&fake);
        let error = session.barrier().unwrap_err();
        assert!(matches!(&error, PmiError::Malformed { question, .. } if question == "cmd=barrier_in"), "{error}");
        assert!(error.to_string().len() < 1000);
        assert!(matches!(session.barrier(), Err(PmiError::Broken)));
        assert!(matches!(session.close(), Err(PmiError::Broken)));
        drop(fake.thread.join());
    }
}

#[test]
fn wrong_answers_to_the_first_questions_are_errors() {
    let first = START[0].0;
    let refused = Fake::new(&[(first, "cmd=response_to_init rc=-1 pmi_version=2\n")], 4096);
    let error = Session::new().open_with(&refused.lookup()).unwrap_err();
    assert!(matches!(error, PmiError::Refused { .. }), "{error}");
    refused.join();
    for maxes in [
        "kvsname_max=256 keylen_max=64",
        "kvsname_max=256 keylen_max=64 vallen_max=x",
        "kvsname_max=999 keylen_max=64 vallen_max=64",
        "kvsname_max=0 keylen_max=0 vallen_max=0",
        "kvsname_max=18446744073709551615 keylen_max=64 vallen_max=64",
        "kvsname_max=-1 keylen_max=64 vallen_max=64",
    ] {
        let fake = Fake::new(&[START[0], (START[1].0, &format!("cmd=maxes {maxes}\n"))], 4096);
        let error = Session::new().open_with(&fake.lookup()).unwrap_err();
        assert!(matches!(error, PmiError::Malformed { .. }), "{error}");
        fake.join();
    }
}

#[test]
fn a_connection_that_ends_is_an_error() {
    let fake = Fake::after_start(&[], 4096);
    let session = opened(&fake);
    let error = session.get("k").unwrap_err();
    assert!(matches!(error, PmiError::Closed { .. }), "{error}");
    drop(fake);
    let mut fake = Fake::after_start(&[], 4096);
    let session = opened(&fake);
    nix::sys::socket::shutdown(fake.fd, nix::sys::socket::Shutdown::Both).unwrap();
    fake.thread = std::thread::spawn(|| ());
    let error = session.barrier().unwrap_err();
    assert!(matches!(error, PmiError::Closed { .. }), "{error}");
}

#[test]
fn keys_and_values_that_a_line_cannot_carry_are_refused_before_they_are_sent() {
    let longest = "x".repeat(673);
    let put = format!("cmd=put kvsname=kvs_7 key=k value={longest}");
    let fake = Fake::after_start(&[(&put, "cmd=put_result rc=0\n"), END], 4096);
    let session = opened(&fake);
    for (key, value) in [("", "v"), ("a b", "v"), ("a=b", "v"), ("k", ""), ("k", "a\nb"), ("k", "a b"), ("k", "ä")] {
        assert!(matches!(session.put(key, value), Err(PmiError::Word { .. })), "{key:?} {value:?}");
    }
    for (key, value) in [(&*"k".repeat(64), "v"), ("k", &*"x".repeat(674))] {
        assert!(matches!(session.put(key, value), Err(PmiError::TooLong { .. })));
    }
    session.put("k", &longest).unwrap();
    session.close().unwrap();
    fake.join();
}

#[test]
fn a_bad_environment_is_explained() {
    for (name, value) in [("PMI_FD", "x"), ("PMI_FD", "99999"), ("PMI_FD", "-1"), ("PMI_PORT", "nowhere")] {
        let error = Session::new().open_with(&|asked| (asked == name).then(|| value.to_string())).unwrap_err();
        assert!(error.to_string().starts_with(name) || error.to_string().contains("PMI_PORT=nowhere"), "{error}");
    }
    let fake = Fake::new(&[], 4096);
    let inner = fake.lookup();
    let error = Session::new().open_with(&|name| if name == "PMI_SIZE" { Some("3".into()) } else { inner(name) });
    assert!(matches!(error, Err(PmiError::Variable { name: "PMI_RANK", .. })), "{error:?}");
    fake.join();
}

#[test]
fn a_process_manager_is_reached_by_its_port() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let manager = std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let answers = [
            "cmd=initack\ncmd=set size=4\ncmd=set rank=2\ncmd=set debug=0\n",
            START[0].1,
            START[1].1,
            START[2].1,
            END.1,
        ];
        let mut questions = Vec::new();
        for answer in answers {
            let mut question = Vec::new();
            while question.last() != Some(&b'\n') {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                question.push(byte[0]);
            }
            questions.push(String::from_utf8(question).unwrap());
            stream.write_all(answer.as_bytes()).unwrap();
        }
        questions
    });
    let session = Session::new();
    let lookup = |name: &str| match name {
        "PMI_PORT" => Some(format!("localhost:{port}")),
        "PMI_ID" => Some("2".into()),
        "PMI_SPAWNED" => Some("1".into()),
        _ => None,
    };
    let job = session.open_with(&lookup).unwrap();
    assert_eq!((job.rank, job.size, job.spawned), (2, 4, true));
    session.close().unwrap();
    let questions = manager.join().unwrap();
    assert_eq!((questions[0].as_str(), questions[4].as_str()), ("cmd=initack pmiid=2\n", "cmd=finalize\n"));
}
