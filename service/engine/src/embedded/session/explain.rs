//! Plans as text.

use datafusion::physical_plan::displayable;

use super::Session;
use crate::embedded::Frame;
use crate::embedded::relation::visible_only;
use crate::{Error, Result};

impl Session {
    /// The plan of a frame in one of Spark's modes: `simple`, `extended`, `codegen`, `cost` or `formatted`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for `codegen`: no code is generated here.
    pub async fn explain(&self, frame: &Frame, mode: &str) -> Result<String> {
        let state = self.state();
        let physical = self.physical(&state, frame).await?;
        let physical = displayable(physical.as_ref()).indent(false).to_string();
        match mode.to_lowercase().as_str() {
            "simple" | "formatted" => Ok(format!("== Physical Plan ==\n{physical}")),
            "extended" | "cost" => {
                let analyzed = visible_only(frame.clone())?.plan;
                let optimized = state.optimize(&analyzed)?;
                Ok(format!(
                    "== Analyzed Logical Plan ==\n{}\n\n== Optimized Logical Plan ==\n{}\n\n== Physical Plan ==\n{physical}",
                    analyzed.display_indent(),
                    optimized.display_indent(),
                ))
            }
            "codegen" => Err(Error::Unsupported { feature: "explain mode codegen".into() }),
            other => Err(Error::InvalidPlan { detail: format!("explain mode {other}") }),
        }
    }
}
