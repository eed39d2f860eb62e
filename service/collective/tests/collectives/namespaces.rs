//! A gang across two network namespaces, as across two machines with a cable between them.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use crate::{gang::Hosts, process::Gang};

/// Two namespaces joined by a pair of virtual devices; gone when dropped.
struct Machines {
    names: [String; 2],
}

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status().unwrap();
    assert!(status.success(), "ip {arguments}");
}

impl Machines {
    fn new() -> Machines {
        let id = std::process::id();
        let machines = Machines { names: [format!("phalanx-a-{id}"), format!("phalanx-b-{id}")] };
        let [a, b] = &machines.names;
        ip(&format!("netns add {a}"));
        ip(&format!("netns add {b}"));
        ip(&format!("-n {a} link add wire type veth peer name wire netns {b}"));
        for (machine, name) in machines.names.iter().enumerate() {
            ip(&format!("-n {name} addr add 10.77.0.{}/24 dev wire", machine + 1));
            ip(&format!("-n {name} link set wire up"));
            ip(&format!("-n {name} link set lo up"));
        }
        machines
    }

    fn start(&self, program: &str, timeout_ms: u64) -> Gang {
        Gang::start_at(Hosts::Pairs, 4, program, timeout_ms, |rank| {
            let machine = Hosts::Pairs.of(rank);
            let words = ["ip", "netns", "exec", &self.names[machine]].map(String::from);
            (words.to_vec(), format!("10.77.0.{}", machine + 1).parse().unwrap())
        })
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

#[test]
#[ignore = "needs root and iproute2"]
fn machines_agree_and_a_cut_cable_is_seen_at_the_deadline() {
    let machines = Machines::new();
    for (rank, report) in machines.start("sums", 20_000).reports() {
        assert_eq!(report, "all right", "rank {rank}");
    }

    let mut gang = machines.start("reduce_until_failure", 1000);
    gang.wait_until_working();
    let cut = Instant::now();
    ip(&format!("-n {} link set wire down", machines.names[0]));
    for (rank, report) in gang.reports() {
        assert!(report.contains("Timeout") || report.contains("PeerLost"), "rank {rank}: {report}");
    }
    assert!(cut.elapsed() < Duration::from_secs(3));
}
