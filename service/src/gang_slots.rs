//! Barrier stages of Python functions are admitted as gangs are: to the same slots, through the same queue.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use gang::{Handle, SlotRequest};
use python::{HeldSlots, Slots, SlotsError};

/// The queue's name for them: stages start in the order they came, beside fits.
const POOL: &str = "python";

pub struct GangSlots {
    gang: Handle,
}

impl GangSlots {
    pub fn new(gang: Handle) -> GangSlots {
        GangSlots { gang }
    }
}

impl fmt::Debug for GangSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GangSlots(..)")
    }
}

#[async_trait]
impl Slots for GangSlots {
    async fn hold(&self, name: &str, num_tasks: usize) -> Result<HeldSlots, SlotsError> {
        let request = SlotRequest {
            job_id: uuid::Uuid::new_v4().to_string(),
            name: name.to_owned(),
            pool: POOL.to_owned(),
            num_slots: num_tasks,
            queue_deadline: None,
        };
        let shared = |error: gang::Error| Arc::new(error) as SlotsError;
        let mut reservation = self.gang.reserve(request).map_err(shared)?;
        reservation.granted().await.map_err(shared)?;
        Ok(Box::new(reservation))
    }
}
