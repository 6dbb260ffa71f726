//! Rings with other devices, and rings whose hosts use no shortcuts.

use super::*;
use ntbring_host::MEMFD;
use ntbring_ntb::settings::Device;
use ntbring_ntb::Shortcuts;

fn loopback(layout: &Layout) -> Settings {
    tiny(layout).with(|s| {
        s.links.device = Device::Loopback;
        s.host.shm_dir = MEMFD.into();
    })
}

#[test]
fn hosts_may_be_threads_of_one_process() {
    for layout in [Layout::blocks(&[1; 2]), Layout::blocks(&[2, 1, 2]), Layout::blocks(&[1; 5])] {
        everybody_to_everybody(&layout, &loopback(&layout), 200, 20 << 10);
        everybody_to_everybody(&layout, &loopback(&layout).with(|s| s.links.weak = Some(3)), 100, 20 << 10);
    }
}

#[test]
fn hosts_need_no_shortcut() {
    for text in ["none", "segments", "kernel-copies"] {
        for layout in [Layout::blocks(&[1; 2]), Layout::blocks(&[2; 2]), Layout::blocks(&[1; 5])] {
            let withheld = tiny(&layout).with(|s| s.links.shortcuts = Shortcuts::parse(text).unwrap());
            run(&layout, &withheld, |rank| {
                let here = rank.layout.host_of[rank.rank as usize];
                for (other, &host) in rank.layout.host_of.iter().enumerate().filter(|(_, host)| **host != here) {
                    let members = rank.endpoint.members();
                    assert!(
                        text == "kernel-copies" || members.kernel_copy(other as u32).is_none(),
                        "{text}: host {host}"
                    );
                    assert!(text == "segments" || !members.is_mappable(other as u32), "{text}: host {host}");
                }
                Ok(())
            });
            everybody_to_everybody(&layout, &withheld, 100, 200 << 10);
        }
    }
}

#[test]
fn devices_that_are_not_there_are_named() {
    let layout = Layout::blocks(&[1; 2]);
    let settings = tiny(&layout).with(|s| s.links.device = Device::Pci("0000:3b:00.0".into()));
    let text = Candidate::new(layout.topology(), 0, settings).err().unwrap().to_string();
    assert!(text.contains("NTBRING_DEVICE=pci:0000:3b:00.0") && text.contains("emu"), "{text}");
}
