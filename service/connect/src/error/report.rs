//! An error in Spark's terms, and how it goes over the wire: a gRPC status with `google.rpc.ErrorInfo`, and in full when
//! the client asks for the details.

use std::collections::HashMap;

use bytes::Bytes;
use prost::Message;
use spark_connect_proto::fetch_error_details_response::query_context::ContextType;
use spark_connect_proto::fetch_error_details_response::{Error as WireError, QueryContext, SparkThrowable};
use sql::model::Place;
use tonic::{Code, Status};
use uuid::Uuid;

use super::condition::{Condition, shown};
use super::exception::Hierarchy;
use super::{Error, exception};

/// Headers have little room, and the client fetches the full text anyway.
const MESSAGE_CHARS_MAX: usize = 2048;
const METADATA_BYTES_MAX: usize = 1024;

/// An error in Spark's terms.
#[derive(Debug, Clone)]
pub struct Report {
    /// What the client fetches the details by.
    pub id: String,
    /// Spark's error class, such as `UNRESOLVED_COLUMN.WITH_SUGGESTION`.
    pub class: Option<String>,
    pub sql_state: Option<String>,
    /// As it is shown: with class and SQLSTATE.
    pub message: String,
    pub parameters: Vec<(String, String)>,
    pub hierarchy: Hierarchy,
    /// Messages of the sources, outermost first.
    pub causes: Vec<String>,
    /// What of a statement's text is to blame.
    pub fragment: Option<Fragment>,
}

/// A stretch of a statement's text, in characters from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragment {
    pub text: String,
    pub start: i32,
    pub stop: i32,
}

impl Report {
    /// An error of one of Spark's conditions. `text` is the message where the template lacks a parameter.
    pub fn of(hierarchy: Hierarchy, class: &str, parameters: &[(&str, &str)], text: &str) -> Report {
        let parameters: Vec<(String, String)> =
            parameters.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let condition = Condition::find(class);
        let text = condition.and_then(|condition| condition.message(&parameters)).unwrap_or_else(|| text.to_string());
        let sql_state = condition.map(|condition| condition.sql_state);
        Report {
            id: Uuid::new_v4().to_string(),
            class: Some(class.to_string()),
            sql_state: sql_state.map(str::to_string),
            message: shown(class, &text, sql_state),
            parameters,
            hierarchy,
            causes: Vec::new(),
            fragment: None,
        }
    }

    /// An error with a class that Spark lacks, or whose text the class does not determine.
    pub fn with_text(hierarchy: Hierarchy, class: &str, sql_state: &str, text: &str) -> Report {
        Report {
            sql_state: Some(sql_state.to_string()),
            message: shown(class, text, Some(sql_state)),
            ..Report::of(hierarchy, class, &[], text)
        }
    }

    /// An error without an error class, as those of Scala's `require`.
    pub fn plain(hierarchy: Hierarchy, message: &str) -> Report {
        Report {
            id: Uuid::new_v4().to_string(),
            class: None,
            sql_state: None,
            message: message.to_string(),
            parameters: Vec::new(),
            hierarchy,
            causes: Vec::new(),
            fragment: None,
        }
    }

    /// Adds what stands at a place of a text: the line with a mark below it, as Spark's parser shows it.
    pub fn in_text(mut self, text: &str, place: Place) -> Report {
        let (line, column) = (place.line.max(1), place.column.max(1));
        let shown = text.lines().nth(line as usize - 1).unwrap_or_default();
        let length = (place.length as usize).clamp(1, shown.chars().count().saturating_sub(column as usize - 1).max(1));
        let mark = format!("{}{}", "-".repeat(column as usize - 1), "^".repeat(length));
        let position = format!("(line {line}, pos {})", column - 1);
        let message = self.message.trim_end();
        let message = if message.ends_with(&position) { message.to_string() } else { format!("{message} {position}") };
        self.message = format!("{message}\n\n== SQL ==\n{shown}\n{mark}\n");
        let before: usize = text.lines().take(line as usize - 1).map(|line| line.chars().count() + 1).sum();
        let start = before + column as usize - 1;
        let number = |at: usize| i32::try_from(at).unwrap_or(i32::MAX);
        let fragment: String = text.chars().skip(start).take(length).collect();
        self.fragment = Some(Fragment { text: fragment, start: number(start), stop: number(start + length - 1) });
        self
    }

    /// Our own bug.
    pub fn internal(message: &str) -> Report {
        Report::of(exception::SPARK, "INTERNAL_ERROR", &[("message", message)], message)
    }

    pub(super) fn caused_by(mut self, error: &(dyn std::error::Error + 'static)) -> Report {
        let mut source = error.source();
        while let Some(cause) = source {
            self.causes.push(cause.to_string());
            source = cause.source();
        }
        self
    }

    /// Whether it tells of a cancellation.
    pub fn is_cancellation(&self) -> bool {
        self.class.as_deref() == Some("OPERATION_CANCELED")
    }

    pub fn status(&self) -> Status {
        let message = truncated(&self.message);
        let reason = self.hierarchy.first().copied().unwrap_or_default();
        let mut metadata = HashMap::from([
            ("classes".to_string(), serde_json::json!(self.hierarchy).to_string()),
            ("errorId".to_string(), self.id.clone()),
        ]);
        if let Some(class) = &self.class {
            metadata.insert("errorClass".to_string(), class.clone());
            let parameters: serde_json::Map<String, serde_json::Value> =
                self.parameters.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
            let parameters = serde_json::Value::from(parameters).to_string();
            if parameters.len() <= METADATA_BYTES_MAX {
                metadata.insert("messageParameters".to_string(), parameters);
            }
        }
        if let Some(sql_state) = &self.sql_state {
            metadata.insert("sqlState".to_string(), sql_state.clone());
        }
        let info = ErrorInfo { reason: reason.to_string(), domain: "org.apache.spark".to_string(), metadata };
        let details = RpcStatus {
            code: Code::Internal as i32,
            message: message.clone(),
            details: vec![prost_types::Any {
                type_url: "type.googleapis.com/google.rpc.ErrorInfo".to_string(),
                value: info.encode_to_vec(),
            }],
        };
        Status::with_details(Code::Internal, message, Bytes::from(details.encode_to_vec()))
    }

    /// The error and its causes, for a client that asks for the details; the first is the root.
    pub fn details(&self) -> Vec<WireError> {
        let throwable = SparkThrowable {
            error_class: self.class.clone(),
            message_parameters: self.parameters.iter().cloned().collect(),
            sql_state: self.sql_state.clone(),
            query_contexts: self.fragment.iter().map(context).collect(),
            ..SparkThrowable::default()
        };
        let hierarchy = |classes: Hierarchy| classes.iter().map(|class| class.to_string()).collect();
        let root = WireError {
            error_type_hierarchy: hierarchy(self.hierarchy),
            message: self.message.clone(),
            spark_throwable: Some(throwable),
            ..WireError::default()
        };
        let causes = self.causes.iter().map(|cause| WireError {
            error_type_hierarchy: hierarchy(&exception::SPARK[1..]),
            message: cause.clone(),
            ..WireError::default()
        });
        let mut errors: Vec<WireError> = std::iter::once(root).chain(causes).collect();
        let last = errors.len() - 1;
        for (index, error) in errors.iter_mut().enumerate().take(last) {
            error.cause_idx = i32::try_from(index + 1).ok();
        }
        errors
    }
}

fn context(fragment: &Fragment) -> QueryContext {
    QueryContext {
        context_type: ContextType::Sql as i32,
        start_index: fragment.start,
        stop_index: fragment.stop,
        fragment: fragment.text.clone(),
        ..QueryContext::default()
    }
}

fn truncated(message: &str) -> String {
    match message.char_indices().nth(MESSAGE_CHARS_MAX) {
        None => message.to_string(),
        Some(_) => message.chars().take(MESSAGE_CHARS_MAX - 3).chain("...".chars()).collect(),
    }
}

impl From<&Error> for Report {
    fn from(error: &Error) -> Report {
        match error {
            Error::Engine(error) => super::engine::report(error),
            Error::Ml(error) => super::ml::report(error),
            Error::Gang(error) => super::gang::report(error),
            Error::Sql(error) => super::sql::report(error),
            Error::Train(error) => super::gang::train_report(error),
            Error::Model(error) => super::model::report(error),
            Error::Registry(error) => super::model::registry_report(error),
            Error::InText { text, place, source } => Report::from(source.as_ref()).in_text(text, *place),
            error => super::service::report(error),
        }
    }
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, prost::Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<prost_types::Any>,
}

/// `google.rpc.ErrorInfo`.
#[derive(Clone, PartialEq, prost::Message)]
struct ErrorInfo {
    #[prost(string, tag = "1")]
    reason: String,
    #[prost(string, tag = "2")]
    domain: String,
    #[prost(map = "string, string", tag = "3")]
    metadata: HashMap<String, String>,
}
