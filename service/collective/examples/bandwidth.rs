//! Measures f32 all-reduce between processes: latency, bus bandwidth, and this machine's memcpy beside it.
//!
//! `cargo run --release -p collective --example bandwidth`
//!
//! Bus bandwidth is `2 (n - 1) / n * bytes / time`, what each rank must at least send and receive.

use std::{
    error::Error,
    hint::black_box,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use collective::{Address, Group, Listener, Membership, Options, ReduceOp};

const SIZES: [usize; 7] = [1 << 10, 16 << 10, 256 << 10, 1 << 20, 16 << 20, 64 << 20, 256 << 20];
const PLACE: &str = "COLLECTIVE_BANDWIDTH_PLACE";

fn main() -> Result<(), Box<dyn Error>> {
    if let Ok(place) = std::env::var(PLACE) {
        return run_rank(&place);
    }
    println!("{:>10} {:>12}", "bytes", "memcpy GB/s");
    for bytes in SIZES {
        println!("{bytes:>10} {:>12.2}", memcpy_gb_per_s(bytes));
    }
    println!(
        "\n{:<14} {:>5} {:>10} {:>8} {:>12} {:>9}",
        "transport", "ranks", "bytes", "calls", "latency us", "bus GB/s"
    );
    for (transport, shared_memory) in [("shared memory", true), ("tcp", false)] {
        for world_size in [2, 4] {
            measure(transport, shared_memory, world_size)?;
        }
    }
    Ok(())
}

fn memcpy_gb_per_s(bytes: usize) -> f64 {
    let (source, mut target) = (vec![1_u8; bytes], vec![0_u8; bytes]);
    let num_copies = ((256 << 20) / bytes).clamp(3, 100_000);
    target.copy_from_slice(&source);
    let started = Instant::now();
    for _ in 0..num_copies {
        black_box(&mut target).copy_from_slice(black_box(&source));
    }
    (bytes * num_copies) as f64 / started.elapsed().as_secs_f64() / 1e9
}

/// Starts the ranks and prints what rank 0 prints.
fn measure(transport: &str, shared_memory: bool, world_size: usize) -> Result<(), Box<dyn Error>> {
    let mut ranks: Vec<(Child, BufReader<ChildStdout>)> = Vec::new();
    for rank in 0..world_size {
        let mut child = Command::new(std::env::current_exe()?)
            .env(PLACE, format!("{rank} {shared_memory}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("no output")?;
        ranks.push((child, BufReader::new(stdout)));
    }
    let mut addresses = Vec::new();
    for (_, stdout) in &mut ranks {
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        addresses.push(line.trim().to_string());
    }
    for (child, _) in &mut ranks {
        writeln!(child.stdin.as_mut().ok_or("no input")?, "{}", addresses.join(" "))?;
    }
    for line in (&mut ranks[0].1).lines() {
        println!("{transport:<14} {world_size:>5} {}", line?);
    }
    for (mut child, _) in ranks {
        child.wait()?;
    }
    Ok(())
}

fn run_rank(place: &str) -> Result<(), Box<dyn Error>> {
    let (rank, shared_memory) = place.split_once(' ').ok_or("no place")?;
    let listener = Listener::bind([127, 0, 0, 1].into())?;
    println!("{}", listener.address());
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let addresses = line.split_whitespace().map(str::parse).collect::<Result<Vec<Address>, _>>()?;
    let membership = Membership {
        job_id: "bandwidth".into(),
        generation: 1,
        rank: rank.parse()?,
        world_size: addresses.len(),
        secret: [1; 32],
        addresses,
    };
    let mut options = Options { shared_memory: shared_memory.parse()?, ..Options::default() };
    if let Ok(chunk_bytes) = std::env::var("CHUNK_BYTES") {
        options.chunk_bytes = chunk_bytes.parse()?;
    }
    let group = listener.join(&options, membership)?;
    for bytes in SIZES {
        let (num_calls, time) = time_all_reduce(&group, bytes)?;
        if group.rank() == 0 {
            let latency = time.as_secs_f64() / num_calls as f64;
            let world_size = group.world_size() as f64;
            let bus = 2.0 * (world_size - 1.0) / world_size * bytes as f64 / latency / 1e9;
            println!("{bytes:>10} {num_calls:>8} {:>12.1} {bus:>9.2}", latency * 1e6);
        }
    }
    Ok(())
}

fn time_all_reduce(group: &Group, bytes: usize) -> Result<(usize, Duration), collective::Error> {
    let mut values = vec![1.0_f32; bytes / 4];
    let num_calls = ((512 << 20) / bytes).clamp(4, 3000);
    for _ in 0..(num_calls / 10).max(1) {
        group.all_reduce(&mut values, ReduceOp::Mean)?;
    }
    group.barrier()?;
    let started = Instant::now();
    for _ in 0..num_calls {
        group.all_reduce(&mut values, ReduceOp::Mean)?;
    }
    Ok((num_calls, started.elapsed()))
}
