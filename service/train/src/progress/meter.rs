//! Where a rank's time goes: how long its steps take, and how much of that it spends in collectives.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use collective::{CallObserver, CallRecord};

use super::Step;
use super::timeline::Timeline;

/// Watches a rank's calls and steps, and optionally keeps a timeline of them.
pub struct Meter {
    timeline: Option<Timeline>,
    state: Mutex<State>,
}

struct State {
    /// Whether a step was reported before.
    has_stepped: bool,
    step_started: Instant,
    /// As the last step told them.
    rows: u64,
    /// In collectives, within the step that goes on.
    step_collective: Duration,
    collective: Duration,
    collective_calls: u64,
    collective_bytes: u64,
}

/// What one step cost this rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepCost {
    /// Since the step before; of the first one, since the rank program began.
    pub step_s: f64,
    pub rows_per_s: f64,
    /// The share of the step's time spent in collectives, waiting for other ranks included.
    pub communication_share: f64,
    /// Over all steps so far, as the next two.
    pub collective_s: f64,
    pub collective_calls: u64,
    pub collective_bytes: u64,
}

impl StepCost {
    /// The same by name.
    pub fn metrics(&self) -> [(&'static str, f64); 6] {
        [
            ("step_s", self.step_s),
            ("rows_per_s", self.rows_per_s),
            ("communication_share", self.communication_share),
            ("collective_s", self.collective_s),
            ("collective_calls", self.collective_calls as f64),
            ("collective_bytes", self.collective_bytes as f64),
        ]
    }
}

impl Meter {
    /// Starts the clock of the first step.
    pub fn new(timeline: Option<Timeline>) -> Meter {
        let state = State {
            has_stepped: false,
            step_started: Instant::now(),
            rows: 0,
            step_collective: Duration::ZERO,
            collective: Duration::ZERO,
            collective_calls: 0,
            collective_bytes: 0,
        };
        Meter { timeline, state: Mutex::new(state) }
    }

    /// Ends a step, and begins the next.
    pub fn step_done(&self, step: &Step) -> StepCost {
        let now = Instant::now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (started, is_first) = (state.step_started, !state.has_stepped);
        let elapsed = now.saturating_duration_since(started);
        let share = state.step_collective.as_secs_f64() / elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        let rows = step.rows.saturating_sub(state.rows);
        let cost = StepCost {
            step_s: elapsed.as_secs_f64(),
            rows_per_s: rows as f64 / elapsed.as_secs_f64().max(1e-9),
            communication_share: share.clamp(0.0, 1.0),
            collective_s: state.collective.as_secs_f64(),
            collective_calls: state.collective_calls,
            collective_bytes: state.collective_bytes,
        };
        state.has_stepped = true;
        state.step_started = now;
        state.rows = step.rows;
        state.step_collective = Duration::ZERO;
        drop(state);
        if let Some(timeline) = &self.timeline {
            timeline.step(step, &cost, is_first, started, elapsed);
        }
        cost
    }

    /// Time in collectives so far, and time since `began` in all.
    pub fn shares(&self, began: Instant) -> (Duration, Duration) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.collective, began.elapsed())
    }
}

impl CallObserver for Meter {
    fn call_returned(&self, record: CallRecord) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.step_collective += record.elapsed;
        state.collective += record.elapsed;
        state.collective_calls += 1;
        state.collective_bytes += record.bytes;
        drop(state);
        if let Some(timeline) = &self.timeline {
            timeline.call(&record);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn step(step: u64, rows: u64) -> Step {
        Step { step, steps_max: 10, rows, loss: Some(0.5), metrics: Vec::new() }
    }

    fn call(milliseconds: u64) -> CallRecord {
        let elapsed = Duration::from_millis(milliseconds);
        CallRecord { collective: "all_reduce", sequence: 1, bytes: 80, started: Instant::now(), elapsed }
    }

    #[test]
    fn a_step_knows_its_own_rows_and_its_own_calls() {
        let meter = Meter::new(None);
        meter.call_returned(call(1));
        std::thread::sleep(Duration::from_millis(20));
        let first = meter.step_done(&step(0, 100));
        assert!(first.communication_share > 0.0 && first.communication_share < 0.1, "{first:?}");
        std::thread::sleep(Duration::from_millis(10));
        let second = meter.step_done(&step(1, 300));
        assert_eq!(second.communication_share, 0.0);
        assert!((second.rows_per_s * second.step_s - 200.0).abs() < 1e-6, "{second:?}");
        assert_eq!((second.collective_calls, second.collective_bytes), (1, 80));
    }

    #[test]
    fn the_timeline_is_lines_of_chrome_trace_events() {
        let lines = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&lines);
        let timeline = Timeline::new(3, 1, move |text| kept.lock().unwrap().push_str(&text));
        let meter = Meter::new(Some(timeline));
        meter.call_returned(call(2));
        meter.step_done(&step(0, 100));
        meter.step_done(&Step { loss: Some(f64::NAN), ..step(1, 200) });
        drop(meter);
        let text = lines.lock().unwrap().clone();
        let events: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(events.iter().all(|event| event["pid"] == 3));
        assert_eq!(events[0]["args"]["name"], "rank 3");
        let spans: Vec<&serde_json::Value> = events.iter().filter(|event| event["ph"] == "X").collect();
        assert_eq!(spans[0]["name"], "all_reduce");
        assert_eq!(spans[0]["args"]["bytes"], 80);
        assert_eq!((&spans[1]["name"], &spans[2]["name"]), (&"start".into(), &"step 1".into()));
        assert_eq!(spans[2]["args"]["loss"], serde_json::Value::Null);
    }
}
