//! The context of a barrier stage: where its tasks meet.
//!
//! Each task has a seat: a port on loopback and a secret. For every `barrier()` and `allGather()` a task opens a
//! connection, proves itself, says its message and waits; when all tasks wait, all get all messages, in the order of
//! partitions.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A message of `allGather` is not longer.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
const BARRIER: i32 = 1;
const ALL_GATHER: i32 = 2;

/// What a task needs to reach its stage.
#[derive(Debug, Clone)]
pub struct BarrierSeat {
    port: u16,
    secret: String,
}

impl BarrierSeat {
    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn secret(&self) -> &str {
        &self.secret
    }
}

/// The stage's side. Dropping it breaks the connections of tasks that wait.
#[derive(Debug)]
pub struct BarrierStage {
    seats: Vec<BarrierSeat>,
    _servers: JoinSet<()>,
}

impl BarrierStage {
    /// # Errors
    /// No port can be listened on.
    pub async fn open(num_tasks: usize) -> io::Result<BarrierStage> {
        let round = Arc::new(Round::new(num_tasks));
        let mut seats = Vec::with_capacity(num_tasks);
        let mut servers = JoinSet::new();
        for partition in 0..num_tasks {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
            let secret = uuid::Uuid::new_v4().simple().to_string();
            seats.push(BarrierSeat { port: listener.local_addr()?.port(), secret: secret.clone() });
            servers.spawn(serve(listener, secret, partition, Arc::clone(&round)));
        }
        Ok(BarrierStage { seats, _servers: servers })
    }

    /// The seat of each task, by partition.
    pub fn seats(&self) -> &[BarrierSeat] {
        &self.seats
    }
}

/// Serves one task, one call after the other, as the task makes them.
async fn serve(listener: TcpListener, secret: String, partition: usize, round: Arc<Round>) {
    loop {
        match listener.accept().await {
            Ok((connection, _)) => {
                // A task that hangs up in the middle of a call has failed, which its own connection tells.
                if let Err(error) = answer(connection, &secret, partition, &round).await {
                    tracing::debug!(%error, partition, "a call of a barrier task broke");
                }
            }
            Err(error) => {
                tracing::warn!(%error, "a barrier stage cannot accept connections");
                return;
            }
        }
    }
}

async fn answer(mut connection: TcpStream, secret: &str, partition: usize, round: &Round) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let presented = read_text(&mut connection, secret.len()).await?;
    if !is_same(presented.as_bytes(), secret.as_bytes()) {
        return write_texts(&mut connection, None, &["err".to_owned()]).await;
    }
    write_texts(&mut connection, None, &["ok".to_owned()]).await?;
    let call = connection.read_i32().await?;
    let message = match call {
        BARRIER => String::new(),
        ALL_GATHER => read_text(&mut connection, MESSAGE_BYTES_MAX).await?,
        other => return Err(io::Error::new(io::ErrorKind::InvalidData, format!("no call is numbered {other}"))),
    };
    match round.meet(partition, call, message).await {
        Ok(messages) if call == ALL_GATHER => write_texts(&mut connection, Some(messages.len()), &messages).await,
        Ok(_) => write_texts(&mut connection, Some(1), &["success".to_owned()]).await,
        // The worker takes any other answer for an error, and shows it.
        Err(refusal) => write_texts(&mut connection, None, &[refusal]).await,
    }
}

/// Where calls of all tasks come together.
#[derive(Debug)]
struct Round {
    num_tasks: usize,
    state: Mutex<State>,
    /// The number of the last round that was completed, with its messages or why it failed.
    completed: watch::Sender<(u64, Outcome)>,
}

type Outcome = Arc<Result<Vec<String>, String>>;

#[derive(Debug, Default)]
struct State {
    number: u64,
    /// What each task called and said in this round.
    calls: Vec<Option<(i32, String)>>,
}

impl Round {
    fn new(num_tasks: usize) -> Round {
        let state = Mutex::new(State { number: 1, calls: vec![None; num_tasks] });
        Round { num_tasks, state, completed: watch::Sender::new((0, Arc::new(Ok(Vec::new())))) }
    }

    /// Waits for the calls of the other tasks, and gives all messages.
    async fn meet(&self, partition: usize, call: i32, message: String) -> Result<Vec<String>, String> {
        let mut completed = self.completed.subscribe();
        let number = {
            let mut state = self.state.lock();
            state.calls[partition] = Some((call, message));
            let number = state.number;
            if state.calls.iter().all(Option::is_some) {
                let calls = std::mem::replace(&mut state.calls, vec![None; self.num_tasks]);
                state.number += 1;
                let calls: Vec<(i32, String)> = calls.into_iter().flatten().collect();
                let outcome = if calls.iter().all(|(other, _)| *other == call) {
                    Ok(calls.into_iter().map(|(_, message)| message).collect())
                } else {
                    Err("some tasks called barrier() and some allGather()".to_owned())
                };
                self.completed.send_replace((number, Arc::new(outcome)));
            }
            number
        };
        // A later round cannot complete before every task has been answered in this one.
        match completed.wait_for(|(last, _)| *last >= number).await {
            Ok(outcome) => outcome.1.as_ref().clone(),
            Err(_) => Err("the stage has ended".to_owned()),
        }
    }
}

async fn read_text(connection: &mut TcpStream, bytes_max: usize) -> io::Result<String> {
    let invalid = |detail: String| io::Error::new(io::ErrorKind::InvalidData, detail);
    let length = connection.read_i32().await?;
    let length = usize::try_from(length)
        .ok()
        .filter(|length| *length <= bytes_max)
        .ok_or_else(|| invalid(format!("a text of {length} bytes")))?;
    let mut bytes = vec![0_u8; length];
    connection.read_exact(&mut bytes).await?;
    String::from_utf8(bytes).map_err(|error| invalid(error.to_string()))
}

async fn write_texts(connection: &mut TcpStream, count: Option<usize>, texts: &[String]) -> io::Result<()> {
    let mut bytes = Vec::new();
    if let Some(count) = count {
        bytes.extend_from_slice(&(count as i32).to_be_bytes());
    }
    for text in texts {
        bytes.extend_from_slice(&(text.len() as i32).to_be_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    connection.write_all(&bytes).await
}

/// Compares in a time that depends on the lengths only.
fn is_same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len() && left.iter().zip(right).fold(0, |difference, (l, r)| difference | (l ^ r)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn call(seat: &BarrierSeat, secret: &str, call: i32, message: Option<&str>) -> io::Result<Vec<String>> {
        let mut connection = TcpStream::connect(("127.0.0.1", seat.port())).await?;
        write_texts(&mut connection, None, &[secret.to_owned()]).await?;
        let answer = read_text(&mut connection, 100).await?;
        if answer != "ok" {
            return Ok(vec![answer]);
        }
        connection.write_i32(call).await?;
        if let Some(message) = message {
            write_texts(&mut connection, None, &[message.to_owned()]).await?;
        }
        let count = connection.read_i32().await?;
        let mut texts = Vec::new();
        for _ in 0..count {
            texts.push(read_text(&mut connection, 100).await?);
        }
        Ok(texts)
    }

    #[tokio::test]
    async fn all_tasks_get_all_messages_round_after_round() {
        let stage = BarrierStage::open(3).await.unwrap();
        let mut tasks = JoinSet::new();
        for (partition, seat) in stage.seats().iter().cloned().enumerate() {
            tasks.spawn(async move {
                for round in 0..5 {
                    let message = format!("{round}-{partition}");
                    let gathered = call(&seat, seat.secret(), ALL_GATHER, Some(&message)).await.unwrap();
                    assert_eq!(gathered, [0, 1, 2].map(|partition| format!("{round}-{partition}")));
                    assert_eq!(call(&seat, seat.secret(), BARRIER, None).await.unwrap(), ["success"]);
                }
            });
        }
        while let Some(task) = tasks.join_next().await {
            task.unwrap();
        }
    }

    #[tokio::test]
    async fn a_stranger_is_turned_away() {
        let stage = BarrierStage::open(1).await.unwrap();
        let seat = &stage.seats()[0];
        let wrong = "x".repeat(seat.secret().len());
        assert_eq!(call(seat, &wrong, BARRIER, None).await.unwrap(), ["err"]);
        assert_eq!(call(seat, seat.secret(), BARRIER, None).await.unwrap(), ["success"]);
    }
}
