//! The accelerators of the driver: Spark's `SparkContext.resources`. This server has none that a client could address.

use std::collections::HashMap;
use std::sync::Arc;

use spark_connect_proto::GetResourcesCommandResult;
use spark_connect_proto::execute_plan_response::ResponseType;

use crate::{Operation, Result};

pub async fn run(operation: &Arc<Operation>) -> Result<()> {
    let result = GetResourcesCommandResult { resources: HashMap::new() };
    operation.send(ResponseType::GetResourcesCommandResult(result)).await
}
