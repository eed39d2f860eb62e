//! Gangs of threads and of processes, on one host, on several, and on hosts of several ranks each.

#[cfg(test)]
#[path = "collectives/agreement.rs"]
mod agreement;
#[cfg(test)]
#[path = "collectives/faults.rs"]
mod faults;
#[cfg(test)]
#[path = "collectives/gang.rs"]
mod gang;
#[cfg(test)]
#[path = "collectives/joining.rs"]
mod joining;
#[cfg(test)]
#[path = "collectives/leftovers.rs"]
mod leftovers;
#[cfg(test)]
#[path = "collectives/namespaces.rs"]
mod namespaces;
#[cfg(test)]
#[path = "collectives/process.rs"]
mod process;
