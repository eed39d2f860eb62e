//! Whether a gang goes on, and if not, why, and who must be told what. Pure.

use std::time::{Duration, Instant};

use crate::attempt::{Ending, Gang, Launch, Observation, Preparation, Process, Told, Weight};
use crate::error::RankFailure;
use crate::options::Options;

/// After SIGKILL, how long a process may stay before its job is reported without it. Its slots stay taken.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// A rank that missed this many heartbeats is blamed for its peers' complaints before it counts as stalled by itself.
const SUSPECT_HEARTBEATS: u32 = 4;

#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// All ranks have joined: let them go.
    Begin,
    /// The outcome is known: tell the ranks.
    End {
        verdict: Verdict,
    },
    Terminate {
        rank: usize,
    },
    Kill {
        rank: usize,
    },
    /// A process outlived SIGKILL: report the job, keep its slots.
    GiveUp {
        reason: String,
    },
    /// No process is left: free the slots.
    Release,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    Finished,
    Cancelled {
        reason: String,
    },
    /// `missing` is the first rank that has not joined.
    StartTimeout {
        joined: usize,
        missing: usize,
        after: Duration,
    },
    LaunchFailed,
    PreparationFailed,
    RankFailed {
        rank: usize,
        cause: RankFailure,
    },
}

pub fn decide(now: Instant, gang: &Gang, options: &Options) -> Vec<Action> {
    match &gang.ending {
        Some(ending) => decide_ending(now, gang, ending, options),
        None => match verdict(now, gang, options) {
            Some(verdict) => vec![Action::End { verdict }],
            // a quick rank joins before the launcher has returned: whoever hears of the start may ask for processes
            None if !gang.started && is_ready(gang) => vec![Action::Begin],
            None => Vec::new(),
        },
    }
}

fn is_ready(gang: &Gang) -> bool {
    gang.launch == Launch::Done
        && gang.partitions == Preparation::Done
        && gang.num_joined() == gang.ranks.len()
}

/// Forgives the ranks a time in which nobody listened to them: their silence was the listener's.
pub fn forgive(gang: &mut Gang, away: Duration, now: Instant) {
    for rank in &mut gang.ranks {
        rank.last_seen = (rank.last_seen + away).min(now);
    }
}

fn verdict(now: Instant, gang: &Gang, options: &Options) -> Option<Verdict> {
    if let Some(reason) = &gang.cancel {
        return Some(Verdict::Cancelled { reason: reason.clone() });
    }
    if gang.launch == Launch::Failed {
        return Some(Verdict::LaunchFailed);
    }
    if gang.partitions == Preparation::Failed {
        return Some(Verdict::PreparationFailed);
    }
    let failed =
        |observation: &Observation| Verdict::RankFailed { rank: observation.rank, cause: observation.cause.clone() };
    let primary = gang.observations.iter().filter(|observation| observation.weight == Weight::Primary);
    if let Some(first) = primary.min_by_key(|observation| observation.at) {
        return Some(failed(first));
    }
    if let Some(stalled) = silent_longest(now, gang, options.stall_timeout) {
        return Some(stalled);
    }
    if let Some(echo) = first_echo(gang)
        && now.saturating_duration_since(echo.at) >= options.first_cause_timeout
    {
        let suspect = silent_longest(now, gang, options.heartbeat_interval * SUSPECT_HEARTBEATS);
        return suspect.or_else(|| strongest(gang).map(failed));
    }
    if gang.ranks.iter().all(|rank| rank.finished) {
        return Some(Verdict::Finished);
    }
    let after = now.saturating_duration_since(gang.since);
    let missing = gang.ranks.iter().position(|rank| rank.address.is_none())?;
    (after >= options.start_timeout).then(|| Verdict::StartTimeout { joined: gang.num_joined(), missing, after })
}

/// The joined, unfinished rank that has been silent longest, if that is for as long as `limit`.
fn silent_longest(now: Instant, gang: &Gang, limit: Duration) -> Option<Verdict> {
    let awaited = gang.ranks.iter().enumerate().filter(|(_, rank)| rank.address.is_some() && !rank.reported);
    let (rank, silent) =
        awaited.map(|(rank, state)| (rank, now.saturating_duration_since(state.last_seen))).max_by_key(|it| it.1)?;
    let for_ms = silent.as_millis() as u64;
    (silent >= limit).then_some(Verdict::RankFailed { rank, cause: RankFailure::Stalled { for_ms } })
}

fn first_echo(gang: &Gang) -> Option<&Observation> {
    gang.observations.iter().min_by_key(|observation| observation.at)
}

/// The observation that says most, the earliest of several.
fn strongest(gang: &Gang) -> Option<&Observation> {
    gang.observations.iter().max_by(|a, b| a.weight.cmp(&b.weight).then(b.at.cmp(&a.at)))
}

fn decide_ending(now: Instant, gang: &Gang, ending: &Ending, options: &Options) -> Vec<Action> {
    if gang.is_gone() {
        return vec![Action::Release];
    }
    if gang.launch == Launch::Pending {
        return Vec::new();
    }
    let terminate_after = if ending.peaceful { options.exit_timeout } else { options.cancel_grace };
    let kill_after = terminate_after + options.grace;
    let elapsed = now.saturating_duration_since(ending.since);
    let mut actions = Vec::new();
    for (rank, state) in gang.ranks.iter().enumerate() {
        if state.process != Process::Alive {
            continue;
        }
        if ending.stalled == Some(rank) || elapsed >= kill_after {
            if state.told < Told::Kill {
                actions.push(Action::Kill { rank });
            }
        } else if elapsed >= terminate_after && state.told < Told::Terminate {
            actions.push(Action::Terminate { rank });
        }
    }
    if elapsed >= kill_after + KILL_TIMEOUT {
        let left: Vec<String> = gang
            .ranks
            .iter()
            .enumerate()
            .filter(|(_, state)| state.process == Process::Alive)
            .map(|(rank, state)| format!("rank {rank} (process {})", state.pid.unwrap_or(0)))
            .collect();
        if !left.is_empty() {
            actions.push(Action::GiveUp { reason: format!("still there after SIGKILL: {}", left.join(", ")) });
        }
    }
    actions
}

#[cfg(test)]
mod tests;
