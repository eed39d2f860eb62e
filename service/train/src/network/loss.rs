//! Losses: the mean over the rows of a batch.

use tch::{Reduction, Tensor};

use super::{LossKind, ScriptModule};
use crate::{Error, Result};

/// A loss that can be evaluated.
pub struct Loss {
    kind: LossKind,
    /// What a scripted loss is.
    script: Option<ScriptModule>,
}

/// Labels that count for nothing, in PyTorch's default; here no label is one.
const IGNORE_INDEX: i64 = -100;

impl Loss {
    /// `script` is the TorchScript of a loss of one's own, `forward(output, label)`.
    ///
    /// # Errors
    /// [`Error::ModuleFailed`]: the script is missing or cannot be loaded.
    pub fn new(kind: LossKind, script: Option<&[u8]>) -> Result<Loss> {
        let script = match (kind, script) {
            (LossKind::Scripted, Some(bytes)) => Some(ScriptModule::load(bytes)?),
            (LossKind::Scripted, None) => {
                let what = String::from("is missing");
                return Err(Error::ModuleFailed { what, reason: "a scripted loss needs its TorchScript".into() });
            }
            _ => None,
        };
        Ok(Loss { kind, script })
    }

    pub fn kind(&self) -> LossKind {
        self.kind
    }

    /// The mean loss of some rows. `output_B..` is what the module gave, `label_B..` as it was read.
    ///
    /// # Errors
    /// [`Error::ModuleFailed`]: output and labels do not fit each other.
    pub fn mean(&self, output: &Tensor, label: &Tensor) -> Result<Tensor> {
        if let Some(script) = &self.script {
            let loss = script.forward(&[output, label])?;
            return if loss.dim() == 0 { Ok(loss) } else { Ok(loss.f_mean(None).map_err(failed)?) };
        }
        if self.kind.takes_classes() {
            let loss = match self.kind {
                LossKind::CrossEntropy => {
                    output.f_cross_entropy_loss(label, None::<&Tensor>, Reduction::Mean, IGNORE_INDEX, 0.0)
                }
                _ => output.f_nll_loss(label, None::<&Tensor>, Reduction::Mean, IGNORE_INDEX),
            };
            return loss.map_err(failed);
        }
        // one value a row, with or without an axis of its own
        let output = match (output.size().as_slice(), label.dim()) {
            ([_, 1], 1) => output.f_squeeze_dim(1).map_err(failed)?,
            _ => output.shallow_clone(),
        };
        if output.size() != label.size() {
            let reason = format!("output of shape {:?}, label of shape {:?}", output.size(), label.size());
            return Err(Error::ModuleFailed { what: "does not fit the label".into(), reason });
        }
        let loss = match self.kind {
            LossKind::BinaryCrossEntropy => {
                output.f_binary_cross_entropy_with_logits(label, None::<&Tensor>, None::<&Tensor>, Reduction::Mean)
            }
            LossKind::MeanAbsolute => output.f_l1_loss(label, Reduction::Mean),
            LossKind::Huber { delta } => output.f_huber_loss(label, Reduction::Mean, delta),
            _ => output.f_mse_loss(label, Reduction::Mean),
        };
        loss.map_err(failed)
    }
}

fn failed(error: tch::TchError) -> Error {
    Error::ModuleFailed { what: "does not fit the loss".into(), reason: first_line(&error.to_string()) }
}

/// Without the trace of native frames that follows.
pub(super) fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_string()
}
