//! A training between two steps, as bytes: all that the steps to come depend on.

use tch::{Kind, Tensor};

use crate::checkpoint::{Reader, Writer};
use crate::{Error, Result};

/// What the epoch loop knows beside parameters and the optimizer's state.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// Steps done.
    pub step: u64,
    /// The loss of the epoch that goes on, summed over its rows so far.
    pub epoch_sum: f64,
    /// The mean loss of every epoch, while it was trained on.
    pub losses: Vec<f64>,
    pub validation_losses: Vec<f64>,
    /// The parameters and buffers of the best epoch.
    pub best: Option<Weights>,
}

/// The values of a module.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    pub parameters: Vec<f32>,
    pub buffers: Vec<Vec<f64>>,
}

/// A state as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    pub history: History,
    pub weights: Weights,
    pub optimizer_steps: u64,
    pub first: Vec<f32>,
    pub second: Vec<f32>,
}

impl State {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Writer::default();
        let history = &self.history;
        bytes.number(history.step);
        bytes.doubles(&[history.epoch_sum]);
        bytes.doubles(&history.losses);
        bytes.doubles(&history.validation_losses);
        write_weights(&mut bytes, &self.weights);
        bytes.number(u64::from(history.best.is_some()));
        if let Some(best) = &history.best {
            write_weights(&mut bytes, best);
        }
        bytes.number(self.optimizer_steps);
        write_floats(&mut bytes, &self.first);
        write_floats(&mut bytes, &self.second);
        bytes.finish()
    }

    /// # Errors
    /// [`Error::SnapshotMismatch`]: these are not the bytes of a state.
    pub fn from_bytes(bytes: &[u8]) -> Result<State> {
        State::read(&mut Reader::new(bytes))
            .ok_or_else(|| Error::SnapshotMismatch { reason: "its bytes are no network's state".into() })
    }

    fn read(bytes: &mut Reader<'_>) -> Option<State> {
        let step = bytes.number()?;
        let [epoch_sum] = bytes.doubles()?[..] else { return None };
        let (losses, validation_losses) = (bytes.doubles()?, bytes.doubles()?);
        let weights = read_weights(bytes)?;
        let best = if bytes.number()? == 1 { Some(read_weights(bytes)?) } else { None };
        let history = History { step, epoch_sum, losses, validation_losses, best };
        let optimizer_steps = bytes.number()?;
        let state =
            State { history, weights, optimizer_steps, first: read_floats(bytes)?, second: read_floats(bytes)? };
        bytes.is_at_end().then_some(state)
    }
}

fn write_floats(bytes: &mut Writer, values: &[f32]) {
    let raw: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    bytes.bytes(&raw);
}

fn read_floats(bytes: &mut Reader<'_>) -> Option<Vec<f32>> {
    let raw = bytes.bytes()?;
    let values =
        raw.chunks_exact(4).map(|bits| Some(f32::from_le_bytes(bits.try_into().ok()?))).collect::<Option<_>>()?;
    raw.len().is_multiple_of(4).then_some(values)
}

fn write_weights(bytes: &mut Writer, weights: &Weights) {
    write_floats(bytes, &weights.parameters);
    bytes.number(weights.buffers.len() as u64);
    weights.buffers.iter().for_each(|buffer| bytes.doubles(buffer));
}

fn read_weights(bytes: &mut Reader<'_>) -> Option<Weights> {
    let parameters = read_floats(bytes)?;
    let num_buffers = bytes.number()?;
    let buffers = (0..num_buffers).map(|_| bytes.doubles()).collect::<Option<Vec<_>>>()?;
    Some(Weights { parameters, buffers })
}

/// The values of buffers as doubles, which hold those of all types that buffers have.
pub fn read_buffers(buffers: &[Tensor]) -> Result<Vec<Vec<f64>>> {
    let read = |buffer: &Tensor| Vec::<f64>::try_from(buffer.to_kind(Kind::Double).flatten(0, -1));
    buffers
        .iter()
        .map(read)
        .collect::<std::result::Result<_, _>>()
        .map_err(|source| Error::Tensor { message: format!("a buffer of the module cannot be read: {source}") })
}

/// # Errors
/// [`Error::SnapshotMismatch`]: there are others, or of another size.
pub fn write_buffers(buffers: &mut [Tensor], values: &[Vec<f64>]) -> Result<()> {
    let fits = buffers.len() == values.len() && buffers.iter().zip(values).all(|(b, values)| b.numel() == values.len());
    if !fits {
        return Err(Error::SnapshotMismatch { reason: "it has other buffers than the module".into() });
    }
    tch::no_grad(|| {
        for (buffer, values) in buffers.iter_mut().zip(values) {
            buffer.copy_(&Tensor::from_slice(values).view(buffer.size().as_slice()));
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_reads_back() {
        let weights = Weights { parameters: vec![1.5, f32::MIN_POSITIVE], buffers: vec![vec![], vec![0.1, -3.0]] };
        let history = History {
            step: 17,
            epoch_sum: 0.25,
            losses: vec![1.0, 0.5],
            validation_losses: vec![2.0],
            best: Some(weights.clone()),
        };
        let state = State { history, weights, optimizer_steps: 17, first: vec![0.5, 1.0], second: vec![] };
        let bytes = state.to_bytes();
        assert_eq!(State::from_bytes(&bytes).unwrap(), state);
        assert!(State::from_bytes(&bytes[..bytes.len() - 1]).is_err());
    }
}
