//! Measures collectives between processes of this machine: time and bus bandwidth, and memcpy beside them.
//!
//! `cargo run --release -p collective --example bandwidth` prints a table of all-reduce. The flags choose what is measured;
//! `--rows` prints every sample, tab-separated, for the scripts in `tests/bench`.
//!
//! Bus bandwidth is what each rank must at least send and receive, by time: `2 (n - 1) / n * bytes` for an all-reduce.

mod arguments;
mod gang;
mod rank;

use std::{error::Error, hint::black_box, time::Instant};

use arguments::Arguments;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    if let Some(place) = &arguments.place {
        return rank::run(&arguments, place);
    }
    if arguments.rows {
        println!("transport\thosts\tranks\tcollective\tbytes\tcalls\tseconds");
    } else {
        println!(
            "{:<14} {:>5} {:>5} {:<14} {:>10} {:>12} {:>9}",
            TITLES[0], TITLES[1], TITLES[2], TITLES[3], TITLES[4], TITLES[5], TITLES[6]
        );
    }
    for &bytes in &arguments.bytes {
        let seconds = (0..arguments.batches).map(|_| memcpy_seconds(bytes)).collect();
        arguments.print("memcpy", (1, 1), "memcpy", bytes, 1, seconds, 1.0);
    }
    for transport in &arguments.transports {
        for &num_ranks in &arguments.ranks {
            for &num_hosts in arguments.hosts.iter().filter(|&&num_hosts| num_hosts <= num_ranks) {
                gang::measure(&arguments, transport, num_hosts, num_ranks)?;
            }
        }
    }
    Ok(())
}

const TITLES: [&str; 7] = ["transport", "hosts", "ranks", "collective", "bytes", "least us", "bus GB/s"];

fn memcpy_seconds(bytes: usize) -> f64 {
    let (source, mut target) = (vec![1_u8; bytes], vec![0_u8; bytes]);
    let num_copies = ((64 << 20) / bytes.max(1)).clamp(2, 10_000);
    target.copy_from_slice(&source);
    let started = Instant::now();
    for _ in 0..num_copies {
        black_box(&mut target).copy_from_slice(black_box(&source));
    }
    started.elapsed().as_secs_f64() / num_copies as f64
}
