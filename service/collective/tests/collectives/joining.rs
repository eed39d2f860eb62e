//! Who may join a gang and who may not.

use std::{
    io::Write,
    net::TcpStream,
    time::{Duration, Instant},
};

use collective::{Error, Group, Listener, Options, ReduceOp};

use crate::gang::{ALL_HOSTS, Hosts, LOOPBACK, memberships, options, try_join};

fn short_options() -> Options {
    Options { connect_timeout: Duration::from_millis(800), ..options() }
}

#[test]
fn a_rank_with_another_secret_cannot_join() {
    for (wrong_rank, other) in [(0, 1), (1, 0)] {
        let mut members = memberships(Hosts::One, 2);
        members[wrong_rank].1.secret = [8; 32];
        let errors = try_join(members, |_| short_options(), Result::<Group, Error>::unwrap_err);
        assert!(matches!(errors[wrong_rank], Error::Authentication { .. }), "{errors:?}");
        assert!(matches!(errors[other], Error::Authentication { .. }), "{errors:?}");
    }
}

#[test]
fn a_rank_of_another_generation_is_told_so_and_the_gang_goes_on_without() {
    let members = memberships(Hosts::One, 2);
    let mut late = members[1].1.clone();
    late.generation = 0;
    std::thread::scope(|scope| {
        let stale = scope.spawn(|| Listener::bind(LOOPBACK).unwrap().join(&short_options(), late).unwrap_err());
        let mut members = members.into_iter();
        let (listener, membership) = members.next().unwrap();
        let first = scope.spawn(move || listener.join(&options(), membership).unwrap());
        let error = stale.join().unwrap();
        assert!(matches!(&error, Error::Mismatch { expected, .. } if expected == "generation: 0"), "{error:?}");
        let (listener, membership) = members.next().unwrap();
        let second = scope.spawn(move || listener.join(&options(), membership).unwrap());
        let groups = [first.join().unwrap(), second.join().unwrap()];
        assert_eq!(groups.map(|group| group.world_size()), [2, 2]);
    });
}

#[test]
fn a_rank_of_another_job_or_world_size_or_with_other_options_is_a_mismatch() {
    let mut members = memberships(Hosts::One, 2);
    members[1].1.job_id.push('x');
    let errors = try_join(members, |_| short_options(), Result::<Group, Error>::unwrap_err);
    assert!(matches!(&errors[1], Error::Mismatch { expected, .. } if expected.starts_with("job")), "{errors:?}");

    let mut members = memberships(Hosts::One, 3);
    members.truncate(2);
    members[1].1.world_size = 2;
    members[1].1.addresses.truncate(2);
    let errors = try_join(members, |_| short_options(), Result::<Group, Error>::unwrap_err);
    assert!(errors.iter().all(|error| matches!(error, Error::Mismatch { .. })), "{errors:?}");

    let other_options = |rank| Options { tree_bytes_max: 1000 + rank, ..options() };
    let errors = try_join(memberships(Hosts::One, 3), other_options, Result::<Group, Error>::unwrap_err);
    assert!(errors.iter().all(|error| !matches!(error, Error::Timeout { .. })), "{errors:?}");
    assert!(errors.iter().any(|error| matches!(error, Error::Mismatch { .. })), "{errors:?}");
}

#[test]
fn a_rank_that_never_comes_is_named() {
    let mut members = memberships(Hosts::One, 3);
    let absent = members.remove(1);
    let errors = try_join(members, |_| short_options(), Result::<Group, Error>::unwrap_err);
    for error in errors {
        assert!(matches!(&error, Error::Timeout { missing, collective: "join", .. } if *missing == [1]), "{error:?}");
    }
    drop(absent);
}

#[test]
fn a_rank_whose_listener_is_gone_is_lost() {
    let mut members = memberships(Hosts::One, 2);
    drop(members.remove(0));
    let errors = try_join(members, |_| options(), Result::<Group, Error>::unwrap_err);
    assert!(matches!(errors[0], Error::PeerLost { rank: 0, .. }), "{errors:?}");
}

#[test]
fn strangers_do_not_hold_up_a_join() {
    for hosts in ALL_HOSTS {
        let members = memberships(hosts, 3);
        let sockets: Vec<_> = members.iter().map(|(listener, _)| listener.address().socket).collect();
        let silent: Vec<TcpStream> = sockets.iter().map(|socket| TcpStream::connect(socket).unwrap()).collect();
        for socket in &sockets {
            TcpStream::connect(socket).unwrap().write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
            TcpStream::connect(socket).unwrap().write_all(&[255; 500]).unwrap();
        }
        let started = Instant::now();
        let sums = try_join(
            members,
            |_| options(),
            |group| {
                let mut value = [1_i64];
                group.unwrap().all_reduce(&mut value, ReduceOp::Sum).unwrap();
                value[0]
            },
        );
        assert_eq!(sums, [3, 3, 3]);
        assert!(started.elapsed() < Duration::from_secs(3));
        drop(silent);
    }
}

#[test]
fn a_membership_or_option_that_cannot_be_is_refused() {
    let change = |change: fn(&mut collective::Membership)| {
        let (listener, mut membership) = memberships(Hosts::One, 2).remove(0);
        change(&mut membership);
        listener.join(&options(), membership).unwrap_err()
    };
    for error in [
        change(|membership| membership.rank = 2),
        change(|membership| membership.world_size = 0),
        change(|membership| membership.world_size = 3),
        change(|membership| membership.world_size = usize::MAX),
    ] {
        assert!(matches!(error, Error::InvalidMembership { .. }), "{error:?}");
    }
    for chunk_bytes in [0, 1, 5000, usize::MAX] {
        let (listener, membership) = memberships(Hosts::One, 1).remove(0);
        let error = listener.join(&Options { chunk_bytes, ..options() }, membership).unwrap_err();
        assert!(matches!(error, Error::InvalidOption { option: "chunk_bytes", .. }), "{error:?}");
    }
    assert!(matches!(Listener::bind([0, 0, 0, 0].into()), Err(Error::InvalidAddress { .. })));
}
