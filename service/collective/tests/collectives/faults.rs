//! What happens when ranks disagree, stop, or die.

use std::time::{Duration, Instant};

use collective::{Error, ReduceOp};

use crate::{
    gang::{ALL_HOSTS, Hosts, options, run, run_to_failure, small_options},
    process::Gang,
};

fn with_timeout(timeout_ms: u64) -> collective::Options {
    collective::Options { timeout: Duration::from_millis(timeout_ms), ..small_options() }
}

#[test]
fn other_lengths_types_operations_or_calls_are_a_mismatch_on_all_ranks() {
    type Wrong = fn(&collective::Group) -> Result<(), Error>;
    let wrongs: [(&str, Wrong); 6] = [
        ("1001", |group| group.all_reduce(&mut [1.0_f32; 1001], ReduceOp::Sum)),
        ("long", |group| group.all_reduce(&mut vec![1.0_f32; 100_000], ReduceOp::Sum)),
        ("f64", |group| group.all_reduce(&mut [1.0_f64; 1000], ReduceOp::Sum)),
        ("max", |group| group.all_reduce(&mut [1.0_f32; 1000], ReduceOp::Max)),
        ("barrier", |group| group.barrier()),
        ("broadcast", |group| group.broadcast(&mut [1.0_f32; 1000], 2)),
    ];
    for hosts in ALL_HOSTS {
        for odd_one in [0, 2, 3] {
            for (name, wrong) in wrongs {
                let started = Instant::now();
                let errors = run_to_failure(hosts, 4, &options(), |group| {
                    // A rank that is late may learn of the failure while it is in the call before.
                    let outcome = group.barrier().and_then(|()| match group.rank() {
                        rank if rank == odd_one => wrong(&group),
                        _ => group.all_reduce(&mut [1.0_f32; 1000], ReduceOp::Sum),
                    });
                    // A second call must fail with the first cause, and the peers must not wait for it.
                    let again = group.barrier().unwrap_err();
                    assert_eq!(again.to_string(), outcome.as_ref().unwrap_err().to_string());
                    outcome.unwrap_err()
                });
                for error in &errors {
                    assert!(matches!(error, Error::Mismatch { .. }), "{name} of {odd_one} on {hosts:?}: {error:?}");
                }
                assert!(started.elapsed() < Duration::from_secs(5), "{name} of {odd_one} on {hosts:?} took too long");
            }
        }
    }
}

#[test]
fn another_root_is_a_mismatch() {
    for hosts in ALL_HOSTS {
        let errors = run_to_failure(hosts, 3, &options(), |group| {
            let root = usize::from(group.rank() == 2);
            group.broadcast(&mut [0_u8; 10], root).unwrap_err()
        });
        assert!(errors.iter().all(|error| matches!(error, Error::Mismatch { .. })), "{errors:?}");
    }
}

#[test]
fn a_root_out_of_range_ends_the_gang() {
    let errors = run_to_failure(Hosts::Each, 2, &options(), |group| group.broadcast(&mut [0_u8; 10], 2).unwrap_err());
    assert!(errors.iter().any(|error| matches!(error, Error::RootOutOfRange { root: 2, world_size: 2 })), "{errors:?}");
}

#[test]
fn a_rank_that_does_not_come_is_named_at_the_deadline() {
    for hosts in ALL_HOSTS {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let receiver = std::sync::Mutex::new(receiver);
        let started = Instant::now();
        let sender = std::sync::Mutex::new(Some(sender));
        let num_failed = std::sync::atomic::AtomicUsize::new(0);
        let errors = run_to_failure(hosts, 5, &with_timeout(1000), |group| {
            if group.rank() == 3 {
                // Alive, with its group, until the others have given up.
                let _ = receiver.lock().unwrap().recv();
                return group.barrier().unwrap_err();
            }
            let error = group.all_reduce(&mut [0.0_f32; 2000], ReduceOp::Sum).unwrap_err();
            if num_failed.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 3 {
                sender.lock().unwrap().take();
            }
            error
        });
        for error in errors {
            assert!(matches!(&error, Error::Timeout { missing, .. } if *missing == [3]), "{hosts:?}: {error:?}");
        }
        assert!((1000..4000).contains(&started.elapsed().as_millis()));
    }
}

#[test]
fn an_abort_wakes_blocked_calls_on_all_ranks() {
    for hosts in ALL_HOSTS {
        let errors = run_to_failure(hosts, 4, &options(), |group| {
            if group.rank() != 1 {
                return group.all_reduce(&mut [0.0_f32; 2000], ReduceOp::Sum).unwrap_err();
            }
            std::thread::scope(|scope| {
                // This rank's own call, a wrong one for nobody: it comes too late.
                scope.spawn(|| group.abort("told to"));
            });
            group.barrier().unwrap_err()
        });
        for error in errors {
            assert!(matches!(&error, Error::Aborted { reason } if reason == "told to"), "{error:?}");
        }
    }
}

#[test]
fn an_abort_wakes_a_blocked_call_of_the_same_rank() {
    for hosts in [Hosts::One, Hosts::Each] {
        let outcomes = run(hosts, 2, &options(), |group| {
            if group.rank() == 1 {
                std::thread::sleep(Duration::from_millis(1500));
                return (group.barrier().unwrap_err(), Duration::ZERO);
            }
            std::thread::scope(|scope| {
                let blocked = scope.spawn(|| group.barrier().unwrap_err());
                std::thread::sleep(Duration::from_millis(50));
                let aborted = Instant::now();
                group.abort("enough");
                (blocked.join().unwrap(), aborted.elapsed())
            })
        });
        assert!(outcomes.iter().all(|(error, _)| matches!(error, Error::Aborted { .. })), "{outcomes:?}");
        assert!(outcomes[0].1 < Duration::from_millis(1000), "{outcomes:?}");
    }
}

#[test]
fn a_rank_that_left_in_good_order_is_not_lost_to_the_call_it_made() {
    for hosts in ALL_HOSTS {
        for _ in 0..20 {
            run(hosts, 4, &small_options(), |group| {
                group.all_reduce(&mut [1.0_f32; 3000], ReduceOp::Sum).unwrap();
                group.broadcast(&mut [1.0_f32; 3000], 0).unwrap();
            });
        }
    }
}

#[test]
fn a_rank_that_left_in_good_order_is_lost_to_later_calls() {
    for hosts in ALL_HOSTS {
        let started = Instant::now();
        let errors = run(hosts, 4, &options(), |group| {
            group.broadcast(&mut [1.0_f32; 3000], 0).and_then(|()| match group.rank() {
                2 => Ok(()),
                _ => group.barrier(),
            })
        });
        for error in errors.into_iter().filter_map(Result::err) {
            assert!(matches!(error, Error::PeerLost { rank: 2, .. }), "{error:?}");
        }
        assert!(started.elapsed() < Duration::from_secs(2));
    }
}

#[test]
fn a_panic_between_calls_ends_the_gang() {
    let outcomes = run(Hosts::One, 2, &options(), |group| {
        if group.rank() == 1 {
            let panicked = std::thread::scope(|scope| {
                scope
                    .spawn(move || {
                        let _group = group;
                        panic!("a rank program went wrong");
                    })
                    .join()
                    .is_err()
            });
            return (panicked, None);
        }
        (true, group.barrier().err())
    });
    assert!(outcomes[1].0);
    assert!(matches!(outcomes[0].1, Some(Error::PeerLost { rank: 1, .. })), "{outcomes:?}");
}

#[test]
fn a_killed_process_is_named_by_all_others_within_a_second() {
    for hosts in ALL_HOSTS {
        let mut gang = Gang::start(hosts, 4, "reduce_until_failure", 20_000);
        gang.wait_until_working();
        let killed = Instant::now();
        gang.signal(2, libc::SIGKILL);
        for (rank, report) in gang.reports() {
            assert!(rank == 2 || report.contains("PeerLost { rank: 2"), "{hosts:?} rank {rank}: {report}");
        }
        assert!(killed.elapsed() < Duration::from_secs(1), "{hosts:?} took {:?}", killed.elapsed());
    }
}

#[test]
fn a_stopped_process_is_named_at_the_deadline() {
    for hosts in ALL_HOSTS {
        let mut gang = Gang::start(hosts, 4, "reduce_until_failure", 1500);
        gang.wait_until_working();
        let stopped = Instant::now();
        gang.signal(1, libc::SIGSTOP);
        for (rank, report) in gang.reports_without(1) {
            assert!(report.contains("Timeout") && report.contains("missing: [1]"), "{hosts:?} rank {rank}: {report}");
        }
        let waited = stopped.elapsed();
        assert!(waited > Duration::from_millis(1400) && waited < Duration::from_secs(5), "{hosts:?}: {waited:?}");
    }
}

#[test]
fn processes_agree_with_the_serial_sum() {
    for hosts in ALL_HOSTS {
        let mut gang = Gang::start(hosts, 4, "sums", 20_000);
        for (rank, report) in gang.reports() {
            assert_eq!(report, "all right", "{hosts:?} rank {rank}");
        }
    }
}
