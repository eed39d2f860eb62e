//! A request's plan: what it asks for, unpacked where the client compressed it.

use std::io::Read;

use prost::Message;
use spark_connect_proto::plan::compressed_operation::OpType as CompressedKind;
use spark_connect_proto::plan::{CompressedOperation, OpType};
use spark_connect_proto::{Command, CompressionCodec, Plan, Relation};

use crate::server::codec::{DEPTH_MAX, is_too_deep};
use crate::{Error, Result};

/// What a plan asks for.
#[derive(Debug)]
pub enum Request {
    /// The rows of a relation.
    Relation(Box<Relation>),
    Command(Box<Command>),
}

/// # Errors
/// [`Error::NotSet`] for an empty plan, [`Error::UnreadablePlan`] for compressed bytes that are no plan or unpack to more
/// than `bytes_max`.
pub fn request(plan: Option<Plan>, bytes_max: usize) -> Result<Request> {
    match plan.and_then(|plan| plan.op_type) {
        Some(OpType::Root(relation)) => Ok(Request::Relation(Box::new(relation))),
        Some(OpType::Command(command)) => Ok(Request::Command(Box::new(command))),
        Some(OpType::CompressedOperation(operation)) => unpack(&operation, bytes_max),
        None => Err(Error::NotSet { message: "spark.connect.Plan", field: "op_type" }),
    }
}

/// The relation of a plan that can be nothing else, as in analysis.
pub fn relation(plan: Option<Plan>, bytes_max: usize) -> Result<Relation> {
    match request(plan, bytes_max)? {
        Request::Relation(relation) => Ok(*relation),
        Request::Command(_) => Err(Error::NotARelation),
    }
}

fn unpack(operation: &CompressedOperation, bytes_max: usize) -> Result<Request> {
    if operation.compression_codec != CompressionCodec::Zstd as i32 {
        let detail = format!("unknown compression codec {}", operation.compression_codec);
        return Err(Error::UnreadablePlan { detail });
    }
    let unreadable = |detail: String| Error::UnreadablePlan { detail };
    let decoder = zstd::Decoder::new(&operation.data[..]).map_err(|error| unreadable(error.to_string()))?;
    let mut bytes = Vec::new();
    decoder.take(bytes_max as u64 + 1).read_to_end(&mut bytes).map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() > bytes_max {
        return Err(Error::PlanTooLarge { bytes: bytes.len(), bytes_max });
    }
    if is_too_deep(&bytes) {
        return Err(unreadable(format!("it nests deeper than {DEPTH_MAX} messages")));
    }
    match CompressedKind::try_from(operation.op_type) {
        Ok(CompressedKind::Relation) => Relation::decode(&bytes[..])
            .map(|relation| Request::Relation(Box::new(relation)))
            .map_err(|error| unreadable(error.to_string())),
        Ok(CompressedKind::Command) => Command::decode(&bytes[..])
            .map(|command| Request::Command(Box::new(command)))
            .map_err(|error| unreadable(error.to_string())),
        Ok(CompressedKind::Unspecified) | Err(_) => {
            Err(unreadable(format!("unknown operation type {}", operation.op_type)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compressed(bytes: &[u8], kind: CompressedKind) -> Option<Plan> {
        let data = zstd::encode_all(bytes, 3).unwrap().into();
        let operation =
            CompressedOperation { data, op_type: kind as i32, compression_codec: CompressionCodec::Zstd as i32 };
        Some(Plan { op_type: Some(OpType::CompressedOperation(operation)) })
    }

    #[test]
    fn a_compressed_relation_is_the_relation() {
        let bytes = Relation::default().encode_to_vec();
        let request = request(compressed(&bytes, CompressedKind::Relation), 1000).unwrap();
        assert!(matches!(request, Request::Relation(_)));
    }

    #[test]
    fn a_plan_that_unpacks_to_more_than_the_limit_is_refused() {
        let error = request(compressed(&[0; 5000], CompressedKind::Relation), 1000).unwrap_err();
        assert!(matches!(error, Error::PlanTooLarge { bytes_max: 1000, .. }));
    }

    #[test]
    fn bytes_that_are_no_plan_are_refused() {
        let error = request(compressed(b"\xff\xff\xff", CompressedKind::Command), 1000).unwrap_err();
        assert!(matches!(error, Error::UnreadablePlan { .. }));
        let operation = CompressedOperation { data: b"x".as_slice().into(), op_type: 1, compression_codec: 1 };
        let plan = Some(Plan { op_type: Some(OpType::CompressedOperation(operation)) });
        assert!(matches!(request(plan, 1000), Err(Error::UnreadablePlan { .. })));
        assert!(matches!(request(None, 1000), Err(Error::NotSet { .. })));
    }
}
