//! A neighbour that sends what it likes to a network manager, while links come and go.

use arbitrary::{Arbitrary, Unstructured};
use ntbring_manager::packet::{Body, Header, Method};
use ntbring_manager::{Action, Event, Hwid, Manager, Path, Rules, Table, PACKET_MAX};
use std::time::Duration;

const METHODS: [Method; 4] = [Method::Ask, Method::Answer, Method::Returned, Method::Table];

/// Runs one input.
pub fn run(data: &[u8]) {
    let Ok(steps) = <Vec<(u8, u8, u8, &[u8])>>::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let mut manager = Manager::new(Hwid(5), Rules::default());
    let mut now = Duration::ZERO;
    for (kind, port, wait, data) in steps {
        now += Duration::from_millis(wait.into());
        if let Ok(table) = Table::parse(data) {
            assert_eq!(table.bytes(), data);
        }
        let method = METHODS[usize::from(wait) % METHODS.len()];
        if let Ok(body) = Body::parse(method, data) {
            assert_eq!(body.bytes(), data);
        }
        // As it is, or with a header that can be understood: then the fuzzer gets further.
        let header = Header::new(method, u32::from(kind) / 8, Path::EMPTY.then(port % 4).expect("one hop"));
        let packet = header.with(&data[..data.len().min(200)]);
        let event = match kind % 8 {
            0 => Event::PortUp { port: port % 5, weight: wait.into() },
            1 => Event::PortDown { port: port % 5 },
            2 => Event::Tick,
            3 => Event::Busy(port % 2 == 0),
            4 => Event::Packet { port: port % 5, bytes: data },
            _ => Event::Packet { port: port / 4 % 5, bytes: &packet },
        };
        let before = manager.table().stamp();
        match manager.step(now, event) {
            Ok(actions) => {
                for action in actions {
                    if let Action::Send { port, bytes } = action {
                        assert!(port < 4 && bytes.len() <= PACKET_MAX);
                        let (header, payload) = Header::parse(&bytes).expect("our own packet");
                        Body::parse(header.method, payload).expect("our own packet");
                    }
                }
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        assert!(manager.table().stamp() >= before);
        assert!(manager.table().host(manager.hwid()).is_some_and(|own| own.path.is_empty()));
    }
}
