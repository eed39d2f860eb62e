//! What a fit gives: transforms relations, answers attributes, is saved.

use std::sync::Arc;

use arrow::datatypes::Schema;

use crate::persist::Saved;
use crate::{Argument, Attribute, Operator, Params, Result, Summary, TransformStep};

pub trait Model: Send + Sync {
    /// The operator of the estimator that was fitted.
    fn operator(&self) -> &'static Operator;

    /// The params of the fit: explicitly set ones, defaults and the uid.
    fn params(&self) -> &Params;

    /// The steps over a relation of this schema. `params` are the model's with what the client changed since the fit.
    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>>;

    /// A fetched attribute such as `coefficients`, or a method such as `predict(vector)`.
    ///
    /// # Errors
    /// [`crate::Error::AttributeNotAllowed`] for names that Spark 4.3 does not allow on this model.
    fn attribute(&self, name: &str, arguments: &[Argument]) -> Result<Attribute>;

    /// The training summary; `None` after the model was loaded, and for models that have none.
    fn summary(&self) -> Option<Arc<dyn Summary>> {
        None
    }

    /// A summary of this model on another dataset: what `model.evaluate(dataset)` gives.
    fn evaluate(&self) -> Option<Arc<dyn Summary>> {
        None
    }

    /// What Spark's `toString` gives.
    fn describe(&self) -> String;

    /// An estimate of the memory it takes, in bytes.
    fn size_bytes(&self) -> usize;

    /// What Spark's own writer would write, apart from the metadata every operator has.
    fn save(&self) -> Result<Saved>;

    /// The Spark class of the model.
    fn class(&self) -> &'static str {
        self.operator().model_class.unwrap_or(self.operator().class)
    }
}
