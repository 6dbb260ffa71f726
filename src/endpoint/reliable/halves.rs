//! The two halves of a connection, each with its lane.

use super::receiver::Receiver;
use super::sender::Sender;
use ntbring_memory::{InWindow, OutWindow, Region};
use ntbring_queue::{Consumer, Producer, LINE};

/// Size in bytes of a connection's lane in one direction. A route round the ring consists of several lanes of that
/// size.
const LANE: usize = 128 << 10;

/// Creates the sending half of a connection, and the producer that fills its lane.
pub fn sending_half() -> (Producer, Sender) {
    let (lane, credit) = (Region::anonymous(LANE), Region::anonymous(LINE));
    let producer = Producer::new(OutWindow::new(lane.clone()), InWindow::new(credit.clone()));
    (producer, Sender::new(InWindow::new(lane), OutWindow::new(credit)))
}

/// Creates the receiving half of a connection, and the consumer that empties its lane.
pub fn receiving_half() -> (Consumer, Receiver) {
    let (lane, credit) = (Region::anonymous(LANE), Region::anonymous(LINE));
    let consumer = Consumer::new(InWindow::new(lane.clone()), OutWindow::new(credit.clone()));
    (consumer, Receiver::new(OutWindow::new(lane), InWindow::new(credit)))
}
