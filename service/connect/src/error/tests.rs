use wire::decode_details;

use super::*;

/// Reads the details of a status back, field by field, as a client does.
mod wire {
    use prost::Message;

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Status {
        #[prost(int32, tag = "1")]
        pub code: i32,
        #[prost(string, tag = "2")]
        pub message: String,
        #[prost(message, repeated, tag = "3")]
        pub details: Vec<prost_types::Any>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Info {
        #[prost(string, tag = "1")]
        pub reason: String,
        #[prost(string, tag = "2")]
        pub domain: String,
        #[prost(map = "string, string", tag = "3")]
        pub metadata: std::collections::HashMap<String, String>,
    }

    pub fn decode_details(status: &tonic::Status) -> (Status, Info) {
        let details = Status::decode(status.details()).unwrap();
        assert_eq!(details.details[0].type_url, "type.googleapis.com/google.rpc.ErrorInfo");
        let info = Info::decode(&details.details[0].value[..]).unwrap();
        (details, info)
    }
}

fn check(error: impl Into<Error>, exception: &str, message: &str) {
    let error = error.into();
    let report = Report::from(&error);
    assert_eq!(report.message, message);
    assert_eq!(report.hierarchy[0].rsplit('.').next().unwrap(), exception, "{message}");
}

fn text(text: &str) -> String {
    text.to_string()
}

/// The messages are Spark 4.3's own templates, filled in.
#[test]
fn names_that_do_not_resolve_are_told_as_spark_does() {
    use ::engine::Error::*;
    check(
        UnresolvedColumn { name: text("t.a"), suggestions: vec![text("id"), text("x y")] },
        "AnalysisException",
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `t`.`a` cannot be \
         resolved. Did you mean one of the following? [`id`, `x y`]. SQLSTATE: 42703",
    );
    check(
        UnresolvedColumn { name: text("a"), suggestions: vec![] },
        "AnalysisException",
        "[UNRESOLVED_COLUMN.WITHOUT_SUGGESTION] A column, variable, or function parameter with name `a` cannot be \
         resolved.  SQLSTATE: 42703",
    );
    check(
        AmbiguousReference { name: text("a"), candidates: vec![text("l.a"), text("r.a")] },
        "AnalysisException",
        "[AMBIGUOUS_REFERENCE] Reference `a` is ambiguous, could be: [`l`.`a`, `r`.`a`]. SQLSTATE: 42704",
    );
    check(
        FieldNotFound { name: text("c"), fields: vec![text("a"), text("b")] },
        "AnalysisException",
        "[FIELD_NOT_FOUND] No such struct field `c` in `a`, `b`. SQLSTATE: 42704",
    );
    check(
        UnresolvedRoutine { name: text("nope") },
        "AnalysisException",
        "[UNRESOLVED_ROUTINE] Cannot resolve routine `nope` on search path [`system`.`builtin`, `system`.`session`, \
         `spark_catalog`.`default`]. SQLSTATE: 42883",
    );
    check(
        WrongNumArgs { name: text("abs"), expected: text("1"), found: 2 },
        "AnalysisException",
        "[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] The `abs` requires 1 parameters but the actual number is 2. Please, refer \
         to 'https://spark.apache.org/docs/latest/sql-ref-functions.html' for a fix. SQLSTATE: 42605",
    );
    check(
        TempViewAlreadyExists { name: text("v") },
        "AnalysisException",
        "[TEMP_TABLE_OR_VIEW_ALREADY_EXISTS] Cannot create the temporary view `v` because it already exists.\nChoose a \
         different name, drop or replace the existing view. SQLSTATE: 42P07",
    );
    check(
        ForeignColumn { name: text("a") },
        "AnalysisException",
        "[CANNOT_RESOLVE_DATAFRAME_COLUMN] Cannot resolve dataframe column \"a\". It's probably because of illegal \
         references like `df1.select(df2.col(\"a\"))`. SQLSTATE: 42704",
    );
}

#[test]
fn paths_and_sources_are_told_as_spark_does() {
    use ::engine::Error::*;
    check(
        PathNotFound { path: text("file:/tmp/none") },
        "AnalysisException",
        "[PATH_NOT_FOUND] Path does not exist: file:/tmp/none. SQLSTATE: 42K03",
    );
    check(
        PathAlreadyExists { path: text("file:/tmp/x") },
        "AnalysisException",
        "[PATH_ALREADY_EXISTS] Path file:/tmp/x already exists. Set mode as \"overwrite\" to overwrite the existing \
         path. SQLSTATE: 42K04",
    );
    check(
        UnableToInferSchema { format: text("Parquet") },
        "AnalysisException",
        "[UNABLE_TO_INFER_SCHEMA] Unable to infer schema for Parquet. It must be specified manually. SQLSTATE: 42KD9",
    );
    check(
        DataSourceNotFound { name: text("nope") },
        "SparkClassNotFoundException",
        "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: nope. Make sure the provider name is correct and the \
         package is properly registered and compatible with your Spark version. SQLSTATE: 42K02",
    );
}

#[test]
fn values_that_cannot_be_are_told_as_spark_does() {
    use ::engine::Error::*;
    let cast = |target: &str| Row {
        class: "CAST_INVALID_INPUT",
        message: text("unused"),
        parameters: vec![
            ("expression", text("'x'")),
            ("sourceType", text("\"STRING\"")),
            ("targetType", format!("\"{target}\"")),
        ],
    };
    check(
        cast("INT"),
        "SparkNumberFormatException",
        "[CAST_INVALID_INPUT] The value 'x' of the type \"STRING\" cannot be cast to \"INT\" because it is malformed. \
         Correct the value as per the syntax, or change its target type. Use `try_cast` to tolerate malformed input and \
         return NULL instead. SQLSTATE: 22018",
    );
    assert_eq!(Report::from(&Error::from(cast("DATE"))).hierarchy[1], "java.time.DateTimeException");
    check(
        Row {
            class: "DIVIDE_BY_ZERO",
            message: text("unused"),
            parameters: vec![("config", text("\"spark.sql.ansi.enabled\""))],
        },
        "SparkArithmeticException",
        "[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead. If \
         necessary set \"spark.sql.ansi.enabled\" to \"false\" to bypass this error. SQLSTATE: 22012",
    );
    check(
        Row { class: "DIVIDE_BY_ZERO", message: text("Division by zero."), parameters: vec![] },
        "SparkArithmeticException",
        "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012",
    );
    check(UserRaised { message: text("no") }, "SparkRuntimeException", "[USER_RAISED_EXCEPTION] no SQLSTATE: P0001");
}

#[test]
fn syntax_errors_tell_where() {
    check(
        ::engine::Error::Syntax { near: text("FORM"), line: 1, position: 10, message: String::new() },
        "ParseException",
        "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'FORM'. SQLSTATE: 42601 (line 1, pos 9)",
    );
    check(
        ::engine::Error::Syntax { near: String::new(), line: 1, position: 7, message: String::new() },
        "ParseException",
        "\n[PARSE_SYNTAX_ERROR] Syntax error at or near end of input. SQLSTATE: 42601 (line 1, pos 6)",
    );
}

#[test]
fn handles_and_cursors_are_told_as_spark_does() {
    let id = "00112233-4455-6677-8899-aabbccddeeff";
    check(
        Error::OperationNotFound { id: text(id) },
        "SparkSQLException",
        &format!(
            "[INVALID_HANDLE.OPERATION_NOT_FOUND] The handle {id} is invalid. Operation not found. SQLSTATE: HY000"
        ),
    );
    check(
        Error::SessionChanged { id: text(id) },
        "SparkSQLException",
        &format!(
            "[INVALID_HANDLE.SESSION_CHANGED] The handle {id} is invalid. The existing Spark server driver instance has \
             restarted. Please reconnect. SQLSTATE: HY000"
        ),
    );
    check(
        Error::MalformedHandle { handle: text("x") },
        "SparkSQLException",
        "[INVALID_HANDLE.FORMAT] The handle x is invalid. Handle must be an UUID string of the format \
         '00112233-4455-6677-8899-aabbccddeeff' SQLSTATE: HY000",
    );
    check(
        Error::CursorDisconnected { id: text(id) },
        "SparkSQLException",
        "[INVALID_CURSOR.DISCONNECTED] The cursor is invalid. The cursor has been disconnected by the server. SQLSTATE: \
         HY109",
    );
    check(Error::Cancelled, "SparkSQLException", "[OPERATION_CANCELED] Operation has been canceled. SQLSTATE: HY008");
    check(
        Error::ConfNotFound { key: text("a.b") },
        "SparkNoSuchElementException",
        "[SQL_CONF_NOT_FOUND] The SQL config \"a.b\" cannot be found. Please verify that the config exists. SQLSTATE: \
         42K0I",
    );
}

#[test]
fn models_are_told_as_spark_does() {
    check(
        Error::SummaryLost { id: text("m1") },
        "MLModelSummaryLostException",
        "[CONNECT_ML.MODEL_SUMMARY_LOST] Generic Spark Connect ML error. The model m1 summary is lost because the cached \
         model is offloaded. SQLSTATE: XX000",
    );
    check(
        ::ml::Error::AttributeNotAllowed { class: text("Model"), method: text("secret") },
        "MLAttributeNotAllowedException",
        "[CONNECT_ML.ATTRIBUTE_NOT_ALLOWED] Generic Spark Connect ML error. secret in Model is not allowed to be \
         accessed. SQLSTATE: XX000",
    );
    let lost = Report::from(&Error::SummaryLost { id: text("m1") });
    assert!(lost.hierarchy.contains(&"org.apache.spark.SparkException"));
}

#[test]
fn an_error_that_crossed_the_engine_is_still_itself() {
    let crossed = Error::Engine(Error::SummaryLost { id: text("m1") }.into_engine());
    assert_eq!(Report::from(&crossed).class.as_deref(), Some("CONNECT_ML.MODEL_SUMMARY_LOST"));
    let ml = ::ml::Error::AttributeNotAllowed { class: text("c"), method: text("m") };
    let crossed = Error::Engine(Error::Ml(ml).into_engine());
    assert_eq!(Report::from(&crossed).class.as_deref(), Some("CONNECT_ML.ATTRIBUTE_NOT_ALLOWED"));
}

#[test]
fn a_status_carries_what_a_client_branches_on() {
    let error: Error = ::engine::Error::PathNotFound { path: text("file:/x") }.into();
    let report = Report::from(&error);
    let status = report.status();
    assert_eq!(status.code(), tonic::Code::Internal);
    let (details, info) = decode_details(&status);
    assert_eq!(details.message, report.message);
    assert_eq!(info.reason, "org.apache.spark.sql.AnalysisException");
    assert_eq!(info.domain, "org.apache.spark");
    assert_eq!(info.metadata["errorClass"], "PATH_NOT_FOUND");
    assert_eq!(info.metadata["sqlState"], "42K03");
    assert_eq!(info.metadata["messageParameters"], r#"{"path":"file:/x"}"#);
    assert_eq!(info.metadata["errorId"], report.id);
    let classes: Vec<String> = serde_json::from_str(&info.metadata["classes"]).unwrap();
    assert_eq!(classes[0], "org.apache.spark.sql.AnalysisException");
}

#[test]
fn a_long_message_is_cut_in_the_status_and_whole_in_the_details() {
    let message = "ü".repeat(5000);
    let report = Report::from(&Error::from(::engine::Error::UserRaised { message }));
    let (details, info) = decode_details(&report.status());
    assert_eq!(details.message.chars().count(), 2048);
    assert!(details.message.ends_with("..."));
    assert!(!info.metadata.contains_key("messageParameters"));
    let whole = report.details();
    assert!(whole[0].message.contains(&"ü".repeat(5000)));
    assert_eq!(whole[0].spark_throwable.as_ref().unwrap().sql_state.as_deref(), Some("P0001"));
}

#[test]
fn causes_follow_one_another_in_the_details() {
    let io = std::io::Error::new(std::io::ErrorKind::Other, "disk on fire");
    let report = Report::from(&Error::Io { path: text("/x"), source: io });
    let details = report.details();
    assert_eq!(details.len(), 2);
    assert_eq!(details[0].cause_idx, Some(1));
    assert_eq!(details[1].cause_idx, None);
    assert_eq!(details[1].message, "disk on fire");
}
