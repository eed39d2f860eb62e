//! A rank's process: joins, makes the calls, and tells their times if it is rank 0.

use std::{error::Error, hint::black_box, time::Instant};

use collective::{Address, Group, Listener, Membership, Options, ReduceOp, shard_range};

use crate::arguments::Arguments;

pub fn run(arguments: &Arguments, (rank, transport): &(usize, String)) -> Result<(), Box<dyn Error>> {
    let shared_memory = match transport.as_str() {
        "shared_memory" => true,
        "tcp" => false,
        other => return Err(format!("{other} is not a transport").into()),
    };
    let listener = Listener::bind([127, 0, 0, 1].into())?;
    println!("{}", listener.address().socket);
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let addresses = line.split_whitespace().map(str::parse).collect::<Result<Vec<Address>, _>>()?;
    let membership = Membership {
        job_id: "bandwidth".into(),
        generation: 1,
        rank: *rank,
        world_size: addresses.len(),
        secret: [1; 32],
        addresses,
    };
    let mut options = Options { shared_memory, ..Options::default() };
    options.chunk_bytes = arguments.chunk_bytes.unwrap_or(options.chunk_bytes);

    let started = Instant::now();
    let group = listener.join(&options, membership)?;
    tell(&group, "join", 0, 1, &[started.elapsed().as_secs_f64()]);
    for collective in &arguments.collectives {
        // A barrier has no values.
        let sizes = if collective == "barrier" { &[0][..] } else { &arguments.bytes };
        for &bytes in sizes {
            let (num_calls, seconds) = time(&group, arguments, collective, bytes)?;
            tell(&group, collective, bytes, num_calls, &seconds);
        }
    }
    Ok(())
}

fn tell(group: &Group, collective: &str, bytes: usize, num_calls: usize, seconds: &[f64]) {
    if group.rank() == 0 {
        let seconds: Vec<String> = seconds.iter().map(|seconds| format!("{seconds:e}")).collect();
        println!("{collective} {bytes} {num_calls} {}", seconds.join(" "));
    }
}

/// Returns how many calls a sample had, and the seconds a call took in each sample.
fn time(
    group: &Group,
    arguments: &Arguments,
    collective: &str,
    bytes: usize,
) -> Result<(usize, Vec<f64>), Box<dyn Error>> {
    let mut values = vec![1.0_f32; bytes / 4];
    let own = vec![1.0_f32; shard_range(bytes / 4, group.world_size(), group.rank()).len()];
    let mut run = |num_calls: usize| -> Result<f64, Box<dyn Error>> {
        group.barrier()?;
        let started = Instant::now();
        for _ in 0..num_calls {
            match collective {
                "all_reduce" => group.all_reduce(&mut values, ReduceOp::Mean)?,
                "reduce_scatter" => drop(black_box(group.reduce_scatter(&values, ReduceOp::Mean)?)),
                "all_gather" => drop(black_box(group.all_gather(&own)?)),
                "broadcast" => group.broadcast(&mut values, 0)?,
                "barrier" => group.barrier()?,
                other => return Err(format!("{other} is not a collective").into()),
            }
        }
        Ok(started.elapsed().as_secs_f64() / num_calls as f64)
    };
    run(1)?;
    let estimate = run(3)?;
    let wanted = arguments.batch_ms as f64 / 1e3 / estimate.max(1e-9);
    let mut num_calls = [wanted.clamp(1.0, 5000.0) as i64];
    // All ranks make as many calls as rank 0 thinks right.
    group.broadcast(&mut num_calls, 0)?;
    let num_calls = num_calls[0] as usize;
    let seconds = (0..arguments.batches).map(|_| run(num_calls)).collect::<Result<Vec<f64>, _>>()?;
    Ok((num_calls, seconds))
}
