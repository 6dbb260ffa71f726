//! The two examples in the paper on PEARL's network manager (Tsukuba 2012).

use super::{host, settled};
use crate::shape::Shape;
use crate::{Hwid, Lid, Rules};

struct Example {
    links: &'static str,
    master: u64,
    lids: &'static [(u64, u8)],
    /// Source, destination, ports.
    routes: &'static [(u64, u64, &'static str)],
}

/// Figures 2 and 3: hosts A to F are 1 to 6. The paper gives the ports of one end of each link; the opposite ports
/// follow if port 0 leads east, 1 north, 2 west and 3 south.
const FIGURES: Example = Example {
    links: "1.0 2.2\n1.3 4.1\n2.0 3.2\n2.3 5.1\n3.3 6.1",
    master: 1,
    lids: &[(1, 1), (2, 2), (4, 3), (3, 4), (5, 5), (6, 6)],
    routes: &[(1, 2, "0"), (1, 4, "3"), (1, 3, "0,0"), (1, 5, "0,3"), (1, 6, "0,0,3")],
};

/// Three boards in a line.
const BOARDS: Example = Example {
    links: "3.2 2.2\n2.0 4.2",
    master: 2,
    lids: &[(2, 1), (4, 2), (3, 3)],
    routes: &[(2, 3, "2"), (2, 4, "0"), (3, 2, "2"), (3, 4, "2,0"), (4, 2, "2"), (4, 3, "2,2")],
};

#[test]
fn the_papers_examples_come_out_as_there() {
    for example in [FIGURES, BOARDS] {
        let network = settled(Shape::from_links(example.links, super::weigh).unwrap(), Rules::default());
        for i in 0..network.shape().hosts.len() {
            let manager = network.manager(i).unwrap();
            assert_eq!(manager.master(), Hwid(example.master), "every host decides alone");
            for &(hwid, lid) in example.lids {
                assert_eq!(manager.table().host(Hwid(hwid)).unwrap().lid, Lid(lid), "host {hwid}");
            }
        }
        for &(from, to, ports) in example.routes {
            let table = network.manager(host(&network, from)).unwrap().table();
            assert_eq!(table.host(Hwid(to)).unwrap().path.to_string(), ports, "{from} -> {to}");
        }
    }
}
