//! Starts the ranks of one gang, lets them know each other, and prints what rank 0 measured.

use std::{
    error::Error,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdout, Command, Stdio},
};

use crate::arguments::Arguments;

pub fn measure(
    arguments: &Arguments,
    transport: &str,
    num_hosts: usize,
    num_ranks: usize,
) -> Result<(), Box<dyn Error>> {
    let mut ranks: Vec<(Child, BufReader<ChildStdout>)> = Vec::new();
    for rank in 0..num_ranks {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments.of_rank(rank, transport))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("no output")?;
        ranks.push((child, BufReader::new(stdout)));
    }
    let mut addresses = Vec::new();
    for (rank, (_, stdout)) in ranks.iter_mut().enumerate() {
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        // Several hosts are played by giving the ranks of one machine different ones.
        addresses.push(format!("host-{}@{}", rank * num_hosts / num_ranks, line.trim()));
    }
    for (child, _) in &mut ranks {
        writeln!(child.stdin.as_mut().ok_or("no input")?, "{}", addresses.join(" "))?;
    }
    for line in (&mut ranks[0].1).lines() {
        print(arguments, transport, (num_hosts, num_ranks), &line?)?;
    }
    for (mut child, _) in ranks {
        if !child.wait()?.success() {
            return Err(format!("a rank of {num_ranks} over {transport} failed").into());
        }
    }
    Ok(())
}

/// `line` is a point: the collective, bytes, calls, and the seconds of each sample.
fn print(arguments: &Arguments, transport: &str, place: (usize, usize), line: &str) -> Result<(), Box<dyn Error>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [collective, bytes, num_calls, samples @ ..] = words.as_slice() else { return Err("a short line".into()) };
    let seconds = samples.iter().map(|word| word.parse()).collect::<Result<Vec<f64>, _>>()?;
    let num_ranks = place.1 as f64;
    let bus_share = match *collective {
        "all_reduce" => 2.0 * (num_ranks - 1.0) / num_ranks,
        "reduce_scatter" | "all_gather" => (num_ranks - 1.0) / num_ranks,
        "broadcast" => 1.0,
        _ => 0.0,
    };
    arguments.print(transport, place, collective, bytes.parse()?, num_calls.parse()?, seconds, bus_share);
    Ok(())
}
