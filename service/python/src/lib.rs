//! Python worker processes: started, bounded, spoken to in Spark's own protocol, and killed with their task.
//!
//! A [`Task`] is what one worker does to one partition: a function that a client has pickled, and the rows it is applied
//! to, as Arrow. [`Workers::run`] finds a worker for it and gives what comes back. A [`BarrierStage`] is the context of
//! tasks that run together: through it they meet and tell each other messages.
//!
//! Knows: processes, sockets, `pyspark.worker`'s protocol, Arrow's stream format.
//! Must not know: plans, expressions, sessions' state, gangs, what a function computes.

mod archive;
mod barrier;
mod error;
mod interpreter;
mod options;
mod pool;
mod process;
mod protocol;
mod run;
mod stage;
mod task;

pub use barrier::BarrierSeat;
pub use error::{Error, Result};
pub use interpreter::Interpreter;
pub use options::{HeldSlots, Options, Slots, SlotsError};
pub use pool::Workers;
pub use run::{Input, InputShape};
pub use stage::StageTask;
pub use task::{Argument, Function, Place, TableFunction, Task, Work};
