//! What is measured, as the command line says it, and how it is printed.

use std::{error::Error, str::FromStr};

#[derive(Debug, Clone)]
pub struct Arguments {
    /// `shared_memory`, `tcp`.
    pub transports: Vec<String>,
    pub ranks: Vec<usize>,
    /// Hosts that the ranks are dealt out to; they share memory within, and use TCP between these.
    pub hosts: Vec<usize>,
    pub collectives: Vec<String>,
    /// Of the f32 values of one rank; for an all-gather, of the result.
    pub bytes: Vec<usize>,
    /// Samples of each point.
    pub batches: usize,
    /// A sample takes about this long.
    pub batch_ms: u64,
    pub chunk_bytes: Option<usize>,
    /// Prints every sample instead of a table.
    pub rows: bool,
    /// Set for a rank's process: its rank, and its transport.
    pub place: Option<(usize, String)>,
}

impl Arguments {
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, Box<dyn Error>> {
        let mut arguments = Arguments {
            transports: list("shared_memory,tcp")?,
            ranks: vec![2, 4],
            hosts: vec![1],
            collectives: list("all_reduce")?,
            bytes: [10, 14, 18, 20, 24, 26, 28].map(|power| 1 << power).to_vec(),
            batches: 5,
            batch_ms: 100,
            chunk_bytes: None,
            rows: false,
            place: None,
        };
        while let Some(flag) = words.next() {
            if flag == "--rows" {
                arguments.rows = true;
                continue;
            }
            let value = words.next().ok_or_else(|| format!("{flag} needs a value"))?;
            match flag.as_str() {
                "--transports" => arguments.transports = list(&value)?,
                "--ranks" => arguments.ranks = list(&value)?,
                "--hosts" => arguments.hosts = list(&value)?,
                "--collectives" => arguments.collectives = list(&value)?,
                "--bytes" => arguments.bytes = list(&value)?,
                "--batches" => arguments.batches = value.parse()?,
                "--batch-ms" => arguments.batch_ms = value.parse()?,
                "--chunk-bytes" => arguments.chunk_bytes = Some(value.parse()?),
                "--place" => {
                    let (rank, transport) = value.split_once(',').ok_or("a place is a rank and a transport")?;
                    arguments.place = Some((rank.parse()?, transport.to_string()));
                }
                _ => return Err(format!("{flag} is not a flag of this program").into()),
            }
        }
        Ok(arguments)
    }

    /// The command line of a rank's process.
    pub fn of_rank(&self, rank: usize, transport: &str) -> Vec<String> {
        let numbers = |numbers: &[usize]| numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let mut words = vec![
            ("--place", format!("{rank},{transport}")),
            ("--collectives", self.collectives.join(",")),
            ("--bytes", numbers(&self.bytes)),
            ("--batches", self.batches.to_string()),
            ("--batch-ms", self.batch_ms.to_string()),
        ];
        words.extend(self.chunk_bytes.map(|bytes| ("--chunk-bytes", bytes.to_string())));
        words.into_iter().flat_map(|(flag, value)| [flag.to_string(), value]).collect()
    }

    /// Prints one point: every sample, or the least of them. `bus_share` is the part of `bytes` each rank must move.
    #[expect(clippy::too_many_arguments, reason = "the columns of a table")]
    pub fn print(
        &self,
        transport: &str,
        (num_hosts, num_ranks): (usize, usize),
        collective: &str,
        bytes: usize,
        num_calls: usize,
        seconds: Vec<f64>,
        bus_share: f64,
    ) {
        if self.rows {
            for seconds in seconds {
                println!("{transport}\t{num_hosts}\t{num_ranks}\t{collective}\t{bytes}\t{num_calls}\t{seconds:e}");
            }
            return;
        }
        let least = seconds.into_iter().fold(f64::INFINITY, f64::min);
        let (latency_us, bus) = (least * 1e6, bus_share * bytes as f64 / least / 1e9);
        println!(
            "{transport:<14} {num_hosts:>5} {num_ranks:>5} {collective:<14} {bytes:>10} {latency_us:>12.1} {bus:>9.2}"
        );
    }
}

fn list<T: FromStr>(text: &str) -> Result<Vec<T>, Box<dyn Error>>
where
    T::Err: Error + 'static,
{
    Ok(text.split(',').map(str::parse).collect::<Result<Vec<T>, T::Err>>()?)
}
