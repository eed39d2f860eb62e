//! What a gang leaves behind: nothing.

use std::{fs, time::Duration};

use crate::{
    gang::{ALL_HOSTS, Hosts, memberships, options, run, small_options, try_join},
    process::Gang,
};

fn shared_memory_of(job_id: &str) -> Vec<String> {
    let names = fs::read_dir("/dev/shm").unwrap().flatten();
    names.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| name.contains(job_id)).collect()
}

#[test]
fn shared_memory_has_no_name_once_a_rank_has_joined() {
    let members = memberships(Hosts::One, 4);
    let job_id = members[0].1.job_id.clone();
    let left = try_join(
        members,
        |_| options(),
        |group| {
            let _group = group.unwrap();
            shared_memory_of(&job_id)
        },
    );
    assert_eq!(left.concat(), Vec::<String>::new());
}

#[test]
fn a_gang_killed_at_any_moment_leaves_no_shared_memory() {
    for delay_ms in [0, 1, 2, 5, 10, 20] {
        let gang = Gang::start(Hosts::One, 3, "reduce_until_failure", 20_000);
        std::thread::sleep(Duration::from_millis(delay_ms));
        gang.signal(0, libc::SIGKILL);
        // The others see it and remove what the first may have left.
        let job_id = gang.job_id.clone();
        let mut gang = gang;
        gang.reports();
        assert_eq!(shared_memory_of(&job_id), Vec::<String>::new(), "after {delay_ms} ms");
    }
}

#[test]
fn a_failed_join_leaves_no_shared_memory() {
    let mut members = memberships(Hosts::One, 3);
    let job_id = members[0].1.job_id.clone();
    members.remove(2);
    let short = collective::Options { connect_timeout: Duration::from_millis(300), ..options() };
    try_join(members, |_| short.clone(), |group| assert!(group.is_err()));
    assert_eq!(shared_memory_of(&job_id), Vec::<String>::new());
}

/// In a process of its own: other tests open and close descriptors at the same time.
#[test]
fn descriptors_and_mappings_go_back_to_where_they_were() {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "leftovers::counts_its_descriptors", "--ignored"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
#[ignore = "run by descriptors_and_mappings_go_back_to_where_they_were"]
fn counts_its_descriptors() {
    let count = || {
        let mappings = fs::read_to_string("/proc/self/maps").unwrap();
        (fs::read_dir("/proc/self/fd").unwrap().count(), mappings.matches("/dev/shm").count())
    };
    let gangs = || {
        for hosts in ALL_HOSTS {
            run(hosts, 4, &small_options(), |group| group.barrier().unwrap());
            try_join(memberships(hosts, 4), |_| small_options(), |group| group.map(|group| group.abort("over")).ok());
        }
    };
    gangs();
    let before = count();
    gangs();
    assert_eq!(count(), before);
    assert_eq!(before.1, 0);
}
