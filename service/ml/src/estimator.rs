//! What can be fitted.

use std::sync::Arc;

use arrow::datatypes::Schema;

use crate::persist::Saved;
use crate::{Model, Operator, Params, Result};

/// What a gang needs to train: which columns its ranks read, and what they run.
#[derive(Debug, Clone, PartialEq)]
pub struct FitPlan {
    /// Names of the dataset's columns that the ranks read, in this order.
    pub columns: Vec<String>,
    /// The name of a [`train::RankProgram`] of the catalogue.
    pub program: &'static str,
    /// JSON that the program reads.
    pub spec: Vec<u8>,
}

pub trait Estimator: Send + Sync {
    /// Checks params and schema and plans the fit. Reads no data.
    ///
    /// # Errors
    /// A missing column, a column of a wrong type, params that contradict each other.
    fn plan_fit(&self, params: &Params, schema: &Schema) -> Result<FitPlan>;

    /// How many ranks train, where the params say so; `None` leaves it to the session.
    ///
    /// # Errors
    /// As [`Estimator::plan_fit`].
    fn num_ranks(&self, _params: &Params) -> Result<Option<usize>> {
        Ok(None)
    }

    /// Makes the model from what rank 0 returned. `params` are the fit's own; the model keeps them and their uid.
    fn model(
        &self,
        operator: &'static Operator,
        params: &Params,
        schema: &Schema,
        fitted: &[u8],
    ) -> Result<Arc<dyn Model>>;

    /// Makes the model from what [`Model::save`] wrote, here or in Spark.
    fn load(&self, operator: &'static Operator, params: &Params, saved: &Saved) -> Result<Arc<dyn Model>>;
}
