//! `ntbring probe`, `bind` and `unbind`, called as by a user, on a copy of /sys.

use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// Creates a function as the kernel shows it.
fn add(root: &Path, address: &str, (vendor, device): (u16, u16), driver: Option<&str>, group: Option<&str>) {
    let function = root.join("bus/pci/devices").join(address);
    fs::create_dir_all(&function).unwrap();
    let write = |file: &str, text: &str| fs::write(function.join(file), text).unwrap();
    write("vendor", &format!("{vendor:#06x}\n"));
    write("device", &format!("{device:#06x}\n"));
    write("revision", "0x07\n");
    write("class", "0x068000\n");
    write("driver_override", "(null)\n");
    write("resource", "0xf0000000 0xf000ffff 0x14220c\n0x0 0x0 0x0\n0xe0000000 0xe03fffff 0x14220c\n");
    write("resource2_wc", "");
    if let Some(driver) = driver {
        let directory = root.join("bus/pci/drivers").join(driver);
        fs::create_dir_all(&directory).unwrap();
        symlink(&directory, function.join("driver")).unwrap();
    }
    if let Some(group) = group {
        let members = root.join("kernel/iommu_groups").join(group).join("devices");
        fs::create_dir_all(&members).unwrap();
        symlink(&function, members.join(address)).unwrap();
        symlink(root.join("kernel/iommu_groups").join(group), function.join("iommu_group")).unwrap();
    }
}

fn sys() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("bus/pci/devices")).unwrap();
    fs::create_dir_all(root.path().join("kernel/security")).unwrap();
    root
}

fn ntbring(root: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ntbring")).args(args).arg("--sysfs").arg(root).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

const SKX: (u16, u16) = (0x8086, 0x201c);

#[test]
fn an_adapter_that_is_ready_has_no_problem() {
    let root = sys();
    add(root.path(), "0000:05:00.0", SKX, Some("vfio-pci"), Some("7"));
    add(root.path(), "0000:00:1f.0", (0x8086, 0x1234), Some("lpc"), Some("8"));
    let output = ntbring(root.path(), &["probe"]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("BAR 2: 4096 KiB, can be mapped write-combining"), "{}", text(&output));
    let output = ntbring(root.path(), &["probe", "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&found["address"], &found["iommu_group"]), (&"0000:05:00.0".into(), &"7".into()));
    assert_eq!(found["problems"], Value::Array(vec![]));
}

#[test]
fn each_problem_is_named_with_its_remedy() {
    let root = sys();
    assert!(text(&ntbring(root.path(), &["probe"])).contains("this host has no NTB adapter"));
    add(root.path(), "0000:05:00.0", SKX, Some("ntb_hw_intel"), Some("7"));
    add(root.path(), "0000:05:00.1", (0x8086, 0x1234), Some("nvme"), Some("7"));
    add(root.path(), "0000:06:00.0", SKX, None, None);
    add(root.path(), "0000:07:00.0", (0x11f8, 0x8531), None, Some("9"));
    fs::write(root.path().join("kernel/security/lockdown"), "none [integrity] confidentiality\n").unwrap();
    let output = ntbring(root.path(), &["probe"]);
    assert!(!output.status.success());
    for part in [
        "the driver ntb_hw_intel is bound to it",
        "ntbring bind 0000:05:00.0",
        "other drivers use functions of its IOMMU group: 0000:05:00.1 (nvme)",
        "no driver is bound to it",
        "it is in no IOMMU group",
        "Microsemi Switchtec NTB",
        "ntbring has no driver for this chip",
        "locked down (integrity)",
        "3 of 3 adapters cannot be used",
    ] {
        assert!(text(&output).contains(part), "{part}: {}", text(&output));
    }
}

#[test]
fn shared_memory_needs_interrupts_and_some_size() {
    let root = sys();
    let ivshmem = |address: &str, table: &str, last: &str| {
        add(root.path(), address, (0x1af4, 0x1110), Some("vfio-pci"), Some("7"));
        let ranges = format!("0xf0000000 0xf00000ff 0x40200\n{table} 0x40200\n0xe0000000 {last} 0x14220c\n");
        fs::write(root.path().join("bus/pci/devices").join(address).join("resource"), ranges).unwrap();
    };
    ivshmem("0000:00:05.0", "0xf0001000 0xf0001fff", "0xe3ffffff");
    let output = ntbring(root.path(), &["probe"]);
    assert!(output.status.success() && text(&output).contains("ivshmem, memory that two"), "{}", text(&output));
    ivshmem("0000:00:06.0", "0x0 0x0", "0xe000ffff");
    let output = text(&ntbring(root.path(), &["probe"]));
    for part in ["has 65536 bytes", "ivshmem-plain", "1 of 2 adapters cannot be used"] {
        assert!(output.contains(part), "{part}: {output}");
    }
}

#[test]
fn drivers_are_changed_only_of_adapters() {
    let root = sys();
    add(root.path(), "0000:05:00.0", SKX, Some("ntb_hw_intel"), Some("7"));
    add(root.path(), "0000:00:1f.0", (0x8086, 0x1234), Some("nvme"), Some("8"));
    for (args, part) in [
        (["bind", "0000:00:1f.0"], "is no NTB adapter"),
        (["bind", "0000:09:00.0"], "there is no PCI function"),
        (["bind", "nonsense"], "is no address of a PCI function"),
        (["bind", "0000:05:00.0"], "modprobe vfio-pci"),
        (["unbind", "0000:05:00.0"], "vfio-pci is not bound to it"),
    ] {
        assert!(text(&ntbring(root.path(), &args)).contains(part), "{args:?}: {}", text(&ntbring(root.path(), &args)));
    }
    let shown = text(&ntbring(root.path(), &["bind", "--dry-run", "0000:05:00.0"]));
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].starts_with("echo vfio-pci > ") && lines[0].ends_with("0000:05:00.0/driver_override"), "{shown}");
    assert!(lines[1].ends_with("driver/unbind") && lines[2].ends_with("bus/pci/drivers_probe"), "{shown}");
    let override_file = root.path().join("bus/pci/devices/0000:05:00.0/driver_override");
    assert_eq!(fs::read_to_string(&override_file).unwrap(), "(null)\n");
    fs::create_dir_all(root.path().join("bus/pci/drivers/vfio-pci")).unwrap();
    let output = ntbring(root.path(), &["bind", "0000:05:00.0"]);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(fs::read_to_string(&override_file).unwrap(), "vfio-pci\n");
    let written = |file: &str| fs::read_to_string(root.path().join("bus/pci").join(file)).unwrap();
    assert_eq!(
        (written("drivers/ntb_hw_intel/unbind"), written("drivers_probe")),
        ("0000:05:00.0".into(), "0000:05:00.0".into())
    );
}
