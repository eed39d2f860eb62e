//! Spark's error conditions that this server raises: class, SQLSTATE and message template, as Spark 4.3 has them.
//!
//! Spark's own list has some 1,400; here are those a request can meet. `<name>` in a template is a message parameter.

/// Where `<docroot>` of a template points.
const DOCUMENTATION: &str = "https://spark.apache.org/docs/latest";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    pub class: &'static str,
    pub sql_state: &'static str,
    template: &'static str,
}

impl Condition {
    /// The condition of a class, if the list has it.
    pub fn find(class: &str) -> Option<Condition> {
        let at = CONDITIONS.binary_search_by(|(name, _, _)| (*name).cmp(class)).ok()?;
        let (class, sql_state, template) = CONDITIONS.get(at).copied()?;
        Some(Condition { class, sql_state, template })
    }

    /// The template with its parameters put in; None where a parameter is missing.
    pub fn message(&self, parameters: &[(String, String)]) -> Option<String> {
        let mut message = String::with_capacity(self.template.len());
        let mut rest = self.template;
        while let Some((before, after)) = rest.split_once('<') {
            message.push_str(before);
            match after.split_once('>') {
                Some((name, after)) if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => {
                    if name == "docroot" {
                        message.push_str(DOCUMENTATION);
                    } else {
                        message.push_str(&parameters.iter().find(|(parameter, _)| parameter == name)?.1);
                    }
                    rest = after;
                }
                _ => {
                    message.push('<');
                    rest = after;
                }
            }
        }
        message.push_str(rest);
        Some(message)
    }
}

/// Sorted by class.
#[rustfmt::skip]
const CONDITIONS: &[(&str, &str, &str)] = &[
    ("AMBIGUOUS_REFERENCE", "42704", "Reference <name> is ambiguous, could be: <referenceNames>."),
    ("ARITHMETIC_OVERFLOW", "22003", "<message>.<alternative> If necessary set <config> to \"false\" to bypass this error."),
    ("ARROW_TYPE_MISMATCH", "42K0G", "Invalid schema from <operation>: expected <outputTypes>, got <actualDataTypes>."),
    ("BINARY_ARITHMETIC_OVERFLOW", "22003", "<value1> <symbol> <value2> caused overflow. Use <functionName> to ignore overflow problem and return NULL."),
    ("CANNOT_MODIFY_STATIC_CONFIG", "46110", "Cannot modify the value of the static Spark config: <key>."),
    ("CANNOT_RESOLVE_DATAFRAME_COLUMN", "42704", "Cannot resolve dataframe column <name>. It's probably because of illegal references like `df1.select(df2.col(\"a\"))`."),
    ("CAST_INVALID_INPUT", "22018", "The value <expression> of the type <sourceType> cannot be cast to <targetType> because it is malformed. Correct the value as per the syntax, or change its target type. Use `try_cast` to tolerate malformed input and return NULL instead."),
    ("CAST_OVERFLOW", "22003", "The value <value> of the type <sourceType> cannot be cast to <targetType> due to an overflow. Use `try_cast` to tolerate overflow and return NULL instead."),
    ("COLUMN_ALREADY_EXISTS", "42711", "The column <columnName> already exists. Choose another name or rename the existing column."),
    ("CONNECT_INVALID_PLAN.ASSERTION_FAILURE", "56K00", "The Spark Connect plan is invalid. <message>"),
    ("CONNECT_INVALID_PLAN.CANNOT_PARSE", "56K00", "The Spark Connect plan is invalid. Cannot decompress or parse the input plan (<errorMsg>)\nThis may be caused by a corrupted compressed plan.\nTo disable plan compression, set 'spark.connect.session.planCompression.threshold' to -1."),
    ("CONNECT_INVALID_PLAN.INVALID_ENUM", "56K00", "The Spark Connect plan is invalid. This enum value of <fullName> is invalid: <name>(<number>)"),
    ("CONNECT_INVALID_PLAN.INVALID_ONE_OF_FIELD_NOT_SET", "56K00", "The Spark Connect plan is invalid. This oneOf field in <fullName> is not set: <name>"),
    ("CONNECT_INVALID_PLAN.NO_HANDLER_FOR_EXTENSION", "56K00", "The Spark Connect plan is invalid. No handler found for extension type: <extensionTypeUrl>"),
    ("CONNECT_INVALID_PLAN.PLAN_SIZE_LARGER_THAN_MAX", "56K00", "The Spark Connect plan is invalid. The plan size is larger than max (<planSize> vs. <maxPlanSize>)\nThis typically occurs when building very complex queries with many operations, large literals, or deeply nested expressions.\nConsider splitting the query into smaller parts using temporary views for intermediate results or reducing the number of operations."),
    ("CONNECT_ML.ATTRIBUTE_NOT_ALLOWED", "XX000", "Generic Spark Connect ML error. <attribute> in <className> is not allowed to be accessed."),
    ("CONNECT_ML.CACHE_INVALID", "XX000", "Generic Spark Connect ML error. Cannot retrieve Summary object <objectName> from the ML cache.\nBecause the Summary object is evicted if you don't use it for more than <evictTimeoutInMinutes> minutes.\nIn this case, you can call `model.evaluate(dataset)` to create a new Summary object."),
    ("CONNECT_ML.MODEL_SUMMARY_LOST", "XX000", "Generic Spark Connect ML error. The model <objectName> summary is lost because the cached model is offloaded."),
    ("CONNECT_ML.UNSUPPORTED_EXCEPTION", "XX000", "Generic Spark Connect ML error. <message>"),
    ("DATA_SOURCE_NOT_FOUND", "42K02", "Failed to find the data source: <provider>. Make sure the provider name is correct and the package is properly registered and compatible with your Spark version."),
    ("DATETIME_OVERFLOW", "22008", "Datetime operation overflow: <operation>."),
    ("DIVIDE_BY_ZERO", "22012", "Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead. If necessary set <config> to \"false\" to bypass this error."),
    ("DUPLICATED_MAP_KEY", "23505", "Duplicate map key <key> was found, please check the input data.\nIf you want to remove the duplicated keys, you can set <mapKeyDedupPolicy> to \"LAST_WIN\" so that the key inserted at last takes precedence."),
    ("FAILED_TO_PARSE_TOO_COMPLEX", "54001", "The statement, including potential SQL functions and referenced views, was too complex to parse.\nTo mitigate this error divide the statement into multiple, less complex chunks."),
    ("FIELD_NOT_FOUND", "42704", "No such struct field <fieldName> in <fields>."),
    ("GROUP_BY_AGGREGATE", "42903", "Aggregate functions are not allowed in GROUP BY, but found <sqlExpr>."),
    ("GROUP_BY_POS_OUT_OF_RANGE", "42805", "GROUP BY position <index> is not in select list (valid range is [1, <size>])."),
    ("INCOMPATIBLE_COLUMN_TYPE", "42825", "<operator> can only be performed on tables with compatible column types. The <columnOrdinalNumber> column of the <tableOrdinalNumber> table is <dataType1> type which is not compatible with <dataType2> at the same column of the first table.<hint>."),
    ("INTERNAL_ERROR", "XX000", "<message>"),
    ("INVALID_ARRAY_INDEX", "22003", "The index <indexValue> is out of bounds. The array has <arraySize> elements. Use the SQL function `get()` to tolerate accessing element at invalid index and return NULL instead."),
    ("INVALID_ARRAY_INDEX_IN_ELEMENT_AT", "22003", "The index <indexValue> is out of bounds. The array has <arraySize> elements. Use `try_element_at` to tolerate accessing element at invalid index and return NULL instead."),
    ("INVALID_ARTIFACT_PATH", "22023", "Artifact with name <name> is invalid. The name must be a relative path and cannot reference parent/sibling/nephew directories."),
    ("INVALID_CLONE_SESSION_REQUEST.TARGET_SESSION_ID_ALREADY_CLOSED", "42K04", "Invalid session clone request. Cannot clone session to target session ID <targetSessionId> because a session with this ID was previously closed."),
    ("INVALID_CLONE_SESSION_REQUEST.TARGET_SESSION_ID_ALREADY_EXISTS", "42K04", "Invalid session clone request. Cannot clone session to target session ID <targetSessionId> because a session with this ID already exists."),
    ("INVALID_CLONE_SESSION_REQUEST.TARGET_SESSION_ID_FORMAT", "42K04", "Invalid session clone request. Target session ID <targetSessionId> for clone operation must be an UUID string of the format '00112233-4455-6677-8899-aabbccddeeff'."),
    ("INVALID_CONF_VALUE.REQUIREMENT", "22022", "The value '<confValue>' in the config \"<confName>\" is invalid. <confRequirement>"),
    ("INVALID_CONF_VALUE.TIME_ZONE", "22022", "The value '<confValue>' in the config \"<confName>\" is invalid. Cannot resolve the given timezone."),
    ("INVALID_CURSOR.DISCONNECTED", "HY109", "The cursor is invalid. The cursor has been disconnected by the server."),
    ("INVALID_CURSOR.NOT_REATTACHABLE", "HY109", "The cursor is invalid. The cursor is not reattachable."),
    ("INVALID_CURSOR.POSITION_NOT_AVAILABLE", "HY109", "The cursor is invalid. The cursor position id <responseId> is no longer available at index <index>."),
    ("INVALID_CURSOR.POSITION_NOT_FOUND", "HY109", "The cursor is invalid. The cursor position id <responseId> is not found."),
    ("INVALID_HANDLE.FORMAT", "HY000", "The handle <handle> is invalid. Handle must be an UUID string of the format '00112233-4455-6677-8899-aabbccddeeff'"),
    ("INVALID_HANDLE.OPERATION_ABANDONED", "HY000", "The handle <handle> is invalid. Operation was considered abandoned because of inactivity and removed."),
    ("INVALID_HANDLE.OPERATION_ALREADY_EXISTS", "HY000", "The handle <handle> is invalid. Operation already exists."),
    ("INVALID_HANDLE.OPERATION_NOT_FOUND", "HY000", "The handle <handle> is invalid. Operation not found."),
    ("INVALID_HANDLE.SESSION_CHANGED", "HY000", "The handle <handle> is invalid. The existing Spark server driver instance has restarted. Please reconnect."),
    ("INVALID_HANDLE.SESSION_CLOSED", "HY000", "The handle <handle> is invalid. Session was closed."),
    ("INVALID_HANDLE.SESSION_NOT_FOUND", "HY000", "The handle <handle> is invalid. Session not found."),
    ("INVALID_INDEX_OF_ZERO", "22003", "The index 0 is invalid. An index shall be either < 0 or > 0 (the first element has index 1)."),
    ("INVALID_PANDAS_UDF_PLACEMENT", "0A000", "The group aggregate pandas UDF <functionList> cannot be invoked together with as other, non-pandas aggregate functions."),
    ("INVALID_PARAMETER_VALUE.INTERRUPT_TYPE_OPERATION_ID_REQUIRES_ID", "22023", "The value of parameter(s) <parameter> in <functionName> is invalid: INTERRUPT_TYPE_OPERATION_ID requested, but no operation_id provided."),
    ("INVALID_PARAMETER_VALUE.INTERRUPT_TYPE_TAG_REQUIRES_TAG", "22023", "The value of parameter(s) <parameter> in <functionName> is invalid: INTERRUPT_TYPE_TAG requested, but no operation_tag provided."),
    ("INVALID_SCHEMA.PARSE_ERROR", "42K07", "The input schema <inputSchema> is not a valid schema string. Cannot parse the schema:\n<reason>"),
    ("INVALID_TIMEZONE", "22009", "The timezone: <timeZone> is invalid. The timezone must be either a region-based zone ID or a zone offset. Region IDs must have the form 'area/city', such as 'America/Los_Angeles'. Zone offsets must be in the format '(+|-)HH', '(+|-)HH:mm’ or '(+|-)HH:mm:ss', e.g '-08' , '+01:00' or '-13:33:33', and must be in the range from -18:00 to +18:00. 'Z' and 'UTC' are accepted as synonyms for '+00:00'."),
    ("INVALID_TYPED_LITERAL", "42604", "The value of the typed literal <valueType> is invalid: <value>."),
    ("MISSING_AGGREGATION", "42803", "The non-aggregating expression <expression> is based on columns which are not participating in the GROUP BY clause.\nAdd the columns or the expression to the GROUP BY, aggregate the expression, or use <expressionAnyValue> if you do not care which of the values within a group is returned."),
    ("MISSING_WINDOW_SPECIFICATION", "42P20", "Window specification is not defined in the WINDOW clause for <windowName>. For more information about WINDOW clauses, please refer to '<docroot>/sql-ref-syntax-qry-select-window.html'."),
    ("NULL_MAP_KEY", "2200E", "Cannot use null as map key."),
    ("NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION", "22003", " <value> cannot be represented as Decimal(<precision>, <scale>). If necessary set <config> to \"false\" to bypass this error, and return NULL instead."),
    ("NUM_COLUMNS_MISMATCH", "42826", "<operator> can only be performed on inputs with the same number of columns, but the first input has <firstNumColumns> columns and the <invalidOrdinalNum> input has <invalidNumColumns> columns."),
    ("OPERATION_CANCELED", "HY008", "Operation has been canceled."),
    ("ORDER_BY_POS_OUT_OF_RANGE", "42805", "ORDER BY position <index> is not in select list (valid range is [1, <size>])."),
    ("PARSE_EMPTY_STATEMENT", "42617", "Syntax error, unexpected empty statement."),
    ("PARSE_SYNTAX_ERROR", "42601", "Syntax error at or near <error><hint>."),
    ("PATH_ALREADY_EXISTS", "42K04", "Path <outputPath> already exists. Set mode as \"overwrite\" to overwrite the existing path."),
    ("PATH_NOT_FOUND", "42K03", "Path does not exist: <path>."),
    ("PYTHON_EXCEPTION", "38000", "An exception was thrown from the Python worker: <traceback>"),
    ("PYTHON_VERSION_MISMATCH", "38000", "Functions pickled by Python <driver_version> cannot run in workers with Python <worker_version>: minor versions must be the same."),
    ("REMAINDER_BY_ZERO", "22012", "Remainder by zero. Use `try_mod` to tolerate divisor being 0 and return NULL instead. If necessary set <config> to \"false\" to bypass this error."),
    ("SCALAR_SUBQUERY_TOO_MANY_ROWS", "21000", "More than one row returned by a subquery used as an expression."),
    ("SCHEMA_ALREADY_EXISTS", "42P06", "Cannot create schema <schemaName> because it already exists.\nChoose a different name, drop the existing schema, or add the IF NOT EXISTS clause to tolerate pre-existing schema."),
    ("SCHEMA_NOT_EMPTY", "2BP01", "Cannot drop a schema <schemaName> because it contains objects.\nUse DROP SCHEMA ... CASCADE to drop the schema and all its objects."),
    ("SCHEMA_NOT_FOUND", "42704", "The schema <schemaName> cannot be found. Verify the spelling and correctness of the schema and catalog.\nIf you did not qualify the name with a catalog, verify the current_schema() output, or qualify the name with the correct catalog.\nTo tolerate the error on drop use DROP SCHEMA IF EXISTS."),
    ("SQL_CONF_NOT_FOUND", "42K0I", "The SQL config <sqlConf> cannot be found. Please verify that the config exists."),
    ("STDS_INVALID_OPTION_VALUE.WITH_MESSAGE", "42616", "Invalid value for source option '<optionName>': <message>"),
    ("TABLE_OR_VIEW_ALREADY_EXISTS", "42P07", "Cannot create table or view <relationName> because it already exists.\nChoose a different name, drop or replace the existing object, or add the IF NOT EXISTS clause to tolerate pre-existing objects."),
    ("TABLE_OR_VIEW_NOT_FOUND", "42P01", "The table or view <relationName> cannot be found. Verify the spelling and correctness of the schema and catalog.\nSearch path: <searchPath>.\nIf you did not qualify the name with a schema, verify the current_schema() output, or qualify the name with the correct schema and catalog.\nTo tolerate the error on drop use DROP VIEW IF EXISTS or DROP TABLE IF EXISTS."),
    ("TEMP_TABLE_OR_VIEW_ALREADY_EXISTS", "42P07", "Cannot create the temporary view <relationName> because it already exists.\nChoose a different name, drop or replace the existing view."),
    ("UNABLE_TO_INFER_SCHEMA", "42KD9", "Unable to infer schema for <format>. It must be specified manually."),
    ("UNBOUND_SQL_PARAMETER", "42P02", "Found the unbound parameter: <name>. Please, fix `args` and provide a mapping of the parameter to either a SQL literal or collection constructor functions such as `map()`, `array()`, `struct()`."),
    ("UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", "42703", "A column, variable, or function parameter with name <objectName> cannot be resolved. "),
    ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703", "A column, variable, or function parameter with name <objectName> cannot be resolved. Did you mean one of the following? [<proposal>]."),
    ("UNRESOLVED_ROUTINE", "42883", "Cannot resolve routine <routineName> on search path <searchPath>."),
    ("USER_RAISED_EXCEPTION", "P0001", "<errorMessage>"),
    ("WRONG_NUM_ARGS.WITHOUT_SUGGESTION", "42605", "The <functionName> requires <expectedNum> parameters but the actual number is <actualNum>. Please, refer to '<docroot>/sql-ref-functions.html' for a fix."),
];

/// The message as Spark shows it: class, text and SQLSTATE.
pub fn shown(class: &str, text: &str, sql_state: Option<&str>) -> String {
    match sql_state {
        Some(sql_state) => format!("[{class}] {text} SQLSTATE: {sql_state}"),
        None => format!("[{class}] {text}"),
    }
}

/// A name as Spark quotes it in messages: each part in backticks.
pub fn quoted_id<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = parts.into_iter().map(|part| format!("`{}`", part.replace('`', "``"))).collect();
    quoted.join(".")
}

/// A column's name, whose dots outside backticks separate parts, as Spark quotes it.
pub fn quoted_name(name: &str) -> String {
    let mut parts = vec![String::new()];
    let mut is_quoted = false;
    for character in name.chars() {
        match (character, parts.last_mut()) {
            ('`', _) => is_quoted = !is_quoted,
            ('.', _) if !is_quoted => parts.push(String::new()),
            (character, Some(part)) => part.push(character),
            (_, None) => {}
        }
    }
    quoted_id(parts.iter().map(String::as_str))
}

/// A type, a configuration key or an SQL expression as Spark quotes it in messages.
pub fn double_quoted(text: &str) -> String {
    if text.len() > 1 && text.starts_with('"') && text.ends_with('"') {
        text.to_string()
    } else {
        format!("\"{text}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_sorted_by_class() {
        assert!(CONDITIONS.is_sorted_by(|left, right| left.0 < right.0));
    }

    #[test]
    fn a_template_with_a_missing_parameter_is_no_message() {
        let condition = Condition::find("PATH_NOT_FOUND").unwrap();
        assert_eq!(condition.message(&[]), None);
        let parameters = [("path".to_string(), "file:/a".to_string())];
        assert_eq!(condition.message(&parameters).unwrap(), "Path does not exist: file:/a.");
    }

    #[test]
    fn names_are_quoted_part_by_part() {
        assert_eq!(quoted_name("t.a"), "`t`.`a`");
        assert_eq!(quoted_name("`t.a`"), "`t.a`");
        assert_eq!(quoted_name("a`b"), "`ab`");
        assert_eq!(quoted_id(["a`b"]), "`a``b`");
        assert_eq!(double_quoted("INT"), "\"INT\"");
        assert_eq!(double_quoted("\"INT\""), "\"INT\"");
    }
}
