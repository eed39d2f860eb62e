//! A rank's steps and collective calls as events of Chrome's trace format, which `chrome://tracing` and Perfetto show.
//!
//! A rank is a process of the trace, with one lane of steps and one of calls. Times are those of the wall clock, so that
//! ranks of one machine stand side by side.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use collective::CallRecord;
use serde_json::{Value, json};

use super::Step;
use super::meter::StepCost;

/// Events are handed on in texts of about this size.
const TEXT_BYTES: usize = 32 << 10;

const STEPS_LANE: u32 = 1;
const CALLS_LANE: u32 = 2;

type Sink = Box<dyn Fn(String) + Send + Sync>;

pub struct Timeline {
    rank: usize,
    generation: u32,
    /// One moment on both clocks.
    origin: Instant,
    origin_us: f64,
    /// Takes whole lines, one event each.
    sink: Sink,
    pending: Mutex<String>,
}

impl Timeline {
    pub fn new(rank: usize, generation: u32, sink: impl Fn(String) + Send + Sync + 'static) -> Timeline {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let timeline = Timeline {
            rank,
            generation,
            origin: Instant::now(),
            origin_us: since_epoch.as_secs_f64() * 1e6,
            sink: Box::new(sink),
            pending: Mutex::default(),
        };
        timeline.name("process_name", 0, &format!("rank {rank}"));
        timeline.name("thread_name", STEPS_LANE, "steps");
        timeline.name("thread_name", CALLS_LANE, "collectives");
        timeline
    }

    fn name(&self, what: &str, lane: u32, name: &str) {
        self.push(&json!({"name": what, "ph": "M", "pid": self.rank, "tid": lane, "args": {"name": name}}));
    }

    pub fn call(&self, record: &CallRecord) {
        let args = json!({"bytes": record.bytes, "call": record.sequence, "generation": self.generation});
        self.span(record.collective, "collective", CALLS_LANE, (record.started, record.elapsed), &args);
    }

    pub fn step(&self, step: &Step, cost: &StepCost, is_first: bool, started: Instant, elapsed: Duration) {
        // before the first report a program reads its rows and agrees on sizes and statistics
        let name = if is_first { "start".to_string() } else { format!("step {}", step.step) };
        let args = json!({
            "step": step.step,
            "loss": step.loss,
            "rows_per_s": cost.rows_per_s,
            "communication_share": cost.communication_share,
            "generation": self.generation,
        });
        self.span(&name, "step", STEPS_LANE, (started, elapsed), &args);
    }

    fn span(&self, name: &str, category: &str, lane: u32, (started, elapsed): (Instant, Duration), args: &Value) {
        let offset = match started.checked_duration_since(self.origin) {
            Some(after) => after.as_secs_f64(),
            None => -self.origin.saturating_duration_since(started).as_secs_f64(),
        };
        self.push(&json!({
            "name": name,
            "cat": category,
            "ph": "X",
            "ts": self.origin_us + offset * 1e6,
            "dur": elapsed.as_secs_f64() * 1e6,
            "pid": self.rank,
            "tid": lane,
            "args": args,
        }));
    }

    fn push(&self, event: &Value) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.push_str(&event.to_string());
        pending.push('\n');
        if pending.len() >= TEXT_BYTES {
            (self.sink)(std::mem::take(&mut pending));
        }
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        let pending = std::mem::take(self.pending.get_mut().unwrap_or_else(PoisonError::into_inner));
        if !pending.is_empty() {
            (self.sink)(pending);
        }
    }
}
