//! Starts gangs of real processes: this test binary again, told by its environment to be a rank.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    net::IpAddr,
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use collective::{Address, Group, Listener, Membership, Options, ReduceOp};

use crate::gang::{Hosts, LOOPBACK, SECRET, job_id, small_options};

const PROGRAM: &str = "COLLECTIVE_TEST_PROGRAM";

pub struct Gang {
    ranks: Vec<(Child, BufReader<ChildStdout>)>,
    pub job_id: String,
}

impl Gang {
    pub fn start(hosts: Hosts, world_size: usize, program: &str, timeout_ms: u64) -> Gang {
        Gang::start_at(hosts, world_size, program, timeout_ms, |_| (Vec::new(), LOOPBACK))
    }

    /// `place` gives by rank the command that starts the process, if any, and the address to listen on.
    pub fn start_at(
        hosts: Hosts,
        world_size: usize,
        program: &str,
        timeout_ms: u64,
        place: impl Fn(usize) -> (Vec<String>, IpAddr),
    ) -> Gang {
        let job_id = job_id();
        let start = |rank: usize| {
            let (mut words, ip) = place(rank);
            words.push(std::env::current_exe().unwrap().to_str().unwrap().to_string());
            let mut child = Command::new(&words[0])
                .args(&words[1..])
                .args(["--exact", "process::is_a_rank_if_the_environment_says_so", "--nocapture"])
                .env(PROGRAM, program)
                .env("COLLECTIVE_TEST_PLACE", format!("{job_id} {rank} {timeout_ms} host-{} {ip}", hosts.of(rank)))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let stdout = BufReader::new(child.stdout.take().unwrap());
            (child, stdout)
        };
        let mut gang = Gang { ranks: (0..world_size).map(start).collect(), job_id: job_id.clone() };
        let addresses: Vec<String> = (0..world_size).map(|rank| gang.line(rank, "ADDRESS ").unwrap()).collect();
        for (child, _) in &mut gang.ranks {
            writeln!(child.stdin.as_mut().unwrap(), "{}", addresses.join(" ")).unwrap();
        }
        gang
    }

    /// The rest of the next line of `rank` that contains `start`.
    fn line(&mut self, rank: usize, start: &str) -> Option<String> {
        let mut line = String::new();
        while self.ranks[rank].1.read_line(&mut line).unwrap() > 0 {
            // The test harness prints the name of the test without ending the line.
            if let Some((_, rest)) = line.split_once(start) {
                return Some(rest.trim().to_string());
            }
            line.clear();
        }
        None
    }

    pub fn wait_until_working(&mut self) {
        for rank in 0..self.ranks.len() {
            self.line(rank, "WORKING").unwrap();
        }
        std::thread::sleep(Duration::from_millis(30));
    }

    pub fn signal(&self, rank: usize, signal: i32) {
        // SAFETY: kill takes two numbers; the process is a child that was not waited for.
        assert_eq!(unsafe { libc::kill(self.ranks[rank].0.id() as i32, signal) }, 0);
    }

    pub fn reports(&mut self) -> BTreeMap<usize, String> {
        (0..self.ranks.len()).map(|rank| (rank, self.line(rank, "REPORT ").unwrap_or_default())).collect()
    }

    pub fn reports_without(&mut self, stopped: usize) -> BTreeMap<usize, String> {
        let ranks = (0..self.ranks.len()).filter(|&rank| rank != stopped);
        ranks.map(|rank| (rank, self.line(rank, "REPORT ").unwrap_or_default())).collect()
    }
}

impl Drop for Gang {
    fn drop(&mut self) {
        for (child, _) in &mut self.ranks {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn is_a_rank_if_the_environment_says_so() {
    let Ok(program) = std::env::var(PROGRAM) else { return };
    let place = std::env::var("COLLECTIVE_TEST_PLACE").unwrap();
    let [job_id, rank, timeout_ms, host_id, ip] = place.split(' ').collect::<Vec<_>>().try_into().unwrap();
    let listener = Listener::bind(ip.parse().unwrap()).unwrap();
    println!("\nADDRESS {host_id}@{}", listener.address().socket);

    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let addresses: Vec<Address> = line.split_whitespace().map(|text| text.parse().unwrap()).collect();
    let world_size = addresses.len();
    let (job_id, rank) = (job_id.to_string(), rank.parse().unwrap());
    let membership = Membership { job_id, generation: 4, rank, world_size, secret: SECRET, addresses };
    let options = Options { timeout: Duration::from_millis(timeout_ms.parse().unwrap()), ..small_options() };
    let group = listener.join(&options, membership).unwrap();
    println!("\nWORKING");
    let report = match program.as_str() {
        "reduce_until_failure" => reduce_until_failure(&group),
        "sums" => sums(&group),
        other => format!("no program {other}"),
    };
    println!("\nREPORT {report}");
}

/// Calls of all kinds, so that a signal meets any of them.
fn reduce_until_failure(group: &Group) -> String {
    let mut values = vec![1.0_f32; 20_000];
    loop {
        let outcome = group
            .all_reduce(&mut values, ReduceOp::Mean)
            .and_then(|()| group.all_reduce(&mut [1_i64], ReduceOp::Sum))
            .and_then(|()| group.reduce_scatter(&values, ReduceOp::Sum).map(|_| ()))
            .and_then(|()| group.all_gather(&values).map(|_| ()))
            .and_then(|()| group.broadcast(&mut values, 1));
        if let Err(error) = outcome {
            return format!("{error:?}");
        }
    }
}

fn sums(group: &Group) -> String {
    for len in [0_usize, 1, 3, 1000, 4097, 300_001] {
        let world_size = group.world_size() as i64;
        let mut values: Vec<i64> = (0..len as i64).map(|index| index + group.rank() as i64).collect();
        if let Err(error) = group.all_reduce(&mut values, ReduceOp::Sum) {
            return format!("{error:?}");
        }
        let expected = |index: i64| index * world_size + world_size * (world_size - 1) / 2;
        if let Some(wrong) = (0..len).find(|&index| values[index] != expected(index as i64)) {
            return format!("{} at {wrong} of {len}", values[wrong]);
        }
    }
    "all right".into()
}
