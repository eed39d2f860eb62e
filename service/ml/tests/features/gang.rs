//! A gang of threads in this process, and what its rank 0 returns.

use std::net::{IpAddr, Ipv4Addr};

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use collective::{Group, Listener, Membership, Options};
use train::checkpoint::Never;
use train::progress::Silent;
use train::{Partition, RankContext, RankProgram};

fn groups(world_size: usize) -> Vec<Group> {
    if world_size == 1 {
        return vec![Group::single()];
    }
    let localhost = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let listeners: Vec<Listener> = (0..world_size).map(|_| Listener::bind(localhost).unwrap()).collect();
    let addresses: Vec<_> = listeners.iter().map(|listener| listener.address().clone()).collect();
    let join = |(rank, listener): (usize, Listener)| {
        let (job_id, addresses) = ("test".into(), addresses.clone());
        let membership = Membership { job_id, generation: 1, rank, world_size, secret: [7; 32], addresses };
        std::thread::spawn(move || listener.join(&Options::default(), membership).unwrap())
    };
    let joins: Vec<_> = listeners.into_iter().enumerate().map(join).collect();
    joins.into_iter().map(|join| join.join().unwrap()).collect()
}

/// Runs a program with a rank for every part.
pub fn run(program: &RankProgram, spec: &[u8], schema: &SchemaRef, parts: Vec<Vec<RecordBatch>>) -> train::Result<Vec<u8>> {
    let outcomes: Vec<train::Result<Vec<u8>>> = std::thread::scope(|scope| {
        let rank = |(group, batches): (Group, Vec<RecordBatch>)| {
            let schema = schema.clone();
            scope.spawn(move || {
                let mut record_batches = batches.into_iter().map(Ok);
                let partition = Partition { schema, record_batches: &mut record_batches };
                (program.run)(spec, &mut RankContext { group: &group, partition, progress: &Silent, checkpoints: &Never })
            })
        };
        let ranks: Vec<_> = groups(parts.len()).into_iter().zip(parts).map(rank).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    });
    let returned = outcomes.into_iter().collect::<train::Result<Vec<Vec<u8>>>>()?;
    Ok(returned.into_iter().next().unwrap())
}
