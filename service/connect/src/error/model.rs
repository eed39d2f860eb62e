//! The errors of models by name in Spark's terms. Spark has no such classes; their names and SQLSTATEs follow its own for
//! tables.

use ::engine::embedded::expression::order_by_similarity;
use ::registry::Error as RegistryError;

use super::condition::{double_quoted, quoted_id, quoted_name};
use super::exception::{ANALYSIS, IO, PARSE, SPARK, UNSUPPORTED};
use super::report::Report;
use crate::model::Refusal;

/// `db.m` in backticks, part by part.
fn model(name: &str) -> String {
    quoted_name(name)
}

fn list(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| quoted_id([name.as_str()])).collect();
    format!("[{}]", quoted.join(", "))
}

fn suggestions(name: &str, known: &[String]) -> String {
    list(&order_by_similarity(name, known.to_vec()).into_iter().take(3).collect::<Vec<_>>())
}

pub fn report(error: &Refusal) -> Report {
    use Refusal as R;
    let analysis = |class: &str, state: &str, text: String| Report::with_text(ANALYSIS, class, state, &text);
    let data =
        |class: &str, text: String| Report::with_text(SPARK, &format!("INVALID_TRAINING_DATA.{class}"), "22000", &text);
    let option = |class: &str, text: String| {
        Report::with_text(ANALYSIS, &format!("INVALID_MODEL_OPTION.{class}"), "42616", &text)
    };
    let tuning = |class: &str, text: String| {
        Report::with_text(ANALYSIS, &format!("INVALID_MODEL_TUNING.{class}"), "42616", &text)
    };
    let transform = |class: &str, text: String| {
        Report::with_text(ANALYSIS, &format!("INVALID_MODEL_TRANSFORM.{class}"), "42K0E", &text)
    };
    let mismatch = |class: &str, text: String| {
        Report::with_text(ANALYSIS, &format!("MODEL_DATATYPE_MISMATCH.{class}"), "42K09", &text)
    };
    let id = |name: &str| quoted_id([name]);
    match error {
        R::EstimatorNotFound { name, known, .. } => analysis(
            "ESTIMATOR_NOT_FOUND",
            "42704",
            format!(
                "The estimator {} cannot be found. Did you mean one of the following? {}.",
                id(name),
                suggestions(name, known)
            ),
        ),
        R::LabelMissing { estimator, columns } => analysis(
            "MODEL_LABEL_MISSING",
            "42601",
            format!(
                "{} needs a label: add LABEL, or name a column `label`. Columns: {}.",
                id(estimator),
                list(columns)
            ),
        ),
        R::ColumnNotFound { name, columns, .. } => {
            let proposal = order_by_similarity(name, columns.clone());
            let proposal: Vec<String> = proposal.iter().map(|name| id(name)).collect();
            let parameters = [("objectName", id(name)), ("proposal", proposal.join(", "))];
            let parameters: Vec<(&str, &str)> =
                parameters.iter().map(|(name, value)| (*name, value.as_str())).collect();
            Report::of(ANALYSIS, "UNRESOLVED_COLUMN.WITH_SUGGESTION", &parameters, &error.to_string())
        }
        R::NoFeatures { columns } => {
            data("NO_FEATURES", format!("No column is left to be a feature. Columns: {}.", list(columns)))
        }
        R::LabelType { label, found, estimator, expected, .. } => mismatch(
            "LABEL",
            format!(
                "Label {} is {}, but {} needs {expected}. Use another estimator, or cast it.",
                id(label),
                double_quoted(found),
                id(estimator)
            ),
        ),
        R::FeatureType { column, found } => mismatch(
            "FEATURE",
            format!(
                "Feature {0} is {1}, which is no feature. Leave it out by FEATURES(* EXCEPT ({0})), or make a number or \
                 text of it in the query.",
                id(column),
                double_quoted(found)
            ),
        ),
        R::WeightType { column, found } => {
            mismatch("WEIGHT", format!("Weight {} is {}, but must be numeric.", id(column), double_quoted(found)))
        }
        R::InputType { model: name, version, column, found, expected } => mismatch(
            "INPUT",
            format!(
                "Column {} is {}, but model {} version {version} was trained on {}. Cast it.",
                id(column),
                double_quoted(found),
                model(name),
                double_quoted(expected)
            ),
        ),
        R::FeatureNotFound { model: name, version, missing, columns } => analysis(
            "MODEL_FEATURE_NOT_FOUND",
            "42703",
            format!(
                "Model {} version {version} requires {}, which the input does not have. Input columns: {}.",
                model(name),
                list(missing),
                list(columns)
            ),
        ),
        R::OptionUnknown { option: name, estimator, known, .. } => option(
            "UNKNOWN",
            format!(
                "Option {} is not an option of {}. Did you mean {}?",
                id(name),
                id(estimator),
                suggestions(name, known)
            ),
        ),
        R::OptionType { option: name, estimator, expected, found, .. } => option(
            "TYPE",
            format!(
                "Option {} of {} requires {}, but got {}.",
                id(name),
                id(estimator),
                double_quoted(expected),
                double_quoted(found)
            ),
        ),
        R::OptionRange { option: name, estimator, value, detail, .. } => {
            option("RANGE", format!("Option {} of {} cannot be {value}{detail}.", id(name), id(estimator)))
        }
        R::OptionRequired { option: name, estimator } => {
            option("REQUIRED", format!("{} requires option {}.", id(estimator), id(name)))
        }
        R::OptionBesideClause { option: name, clause, .. } => option(
            "BESIDE_CLAUSE",
            format!("Option {} says the same as the clause {clause}. Remove one of them.", id(name)),
        ),
        R::NullLabel { label, rows, total } => data(
            "NULL_LABEL",
            format!(
                "Label {} is NULL or NaN in {rows} of {total} rows. Filter them, or set OPTIONS(null_label = 'skip').",
                id(label)
            ),
        ),
        R::NullFeature { columns, total } => {
            let columns: Vec<String> =
                columns.iter().map(|(column, rows)| format!("{} in {rows} rows", id(column))).collect();
            data(
                "NULL_FEATURE",
                format!(
                    "Features are NULL or NaN, of {total} rows: {}. Fill them with TRANSFORM(imputer(..)), or set \
                     OPTIONS(handle_invalid = 'keep') or OPTIONS(handle_invalid = 'skip').",
                    columns.join(", ")
                ),
            )
        }
        R::Infinite { column, rows, total } => {
            data("INFINITE", format!("Column {} is infinite, or a vector with NaN, in {rows} of {total} rows.", id(column)))
        }
        R::TooManyCategories { column, found, max } => data(
            "TOO_MANY_CATEGORIES",
            format!(
                "Feature {} has {found} categories, but at most {max} are allowed. Leave it out, or raise \
                 OPTIONS(max_categories).",
                id(column)
            ),
        ),
        R::UnevenVectors { column, first, second } => data(
            "VECTOR_LENGTH",
            format!("Feature {} has {first} elements in one row and {second} in another.", id(column)),
        ),
        R::TooManyClasses { label, found, max } => data(
            "TOO_MANY_CLASSES",
            format!(
                "Label {} has {found} classes, but at most {max} are allowed. Use a regressor, or raise \
                 OPTIONS(max_classes).",
                id(label)
            ),
        ),
        R::SingleClass { label, classes } => data(
            "SINGLE_CLASS",
            format!("Label {} has one class [{}]; at least 2 are required.", id(label), texts(classes)),
        ),
        R::UnknownClass { label, class, classes } => data(
            "UNKNOWN_CLASS",
            format!("'{class}' is no class of label {}. Classes: [{}].", id(label), texts(classes)),
        ),
        R::InvalidWeight { column, rows, total } => {
            data("WEIGHT", format!("Weight {} is negative, infinite or missing in {rows} of {total} rows.", id(column)))
        }
        R::SplitTooSmall { rows, train, validation, test } => data(
            "SPLIT_TOO_SMALL",
            format!(
                "{rows} rows would be split into {train} for training, {validation} for validation and {test} for test, \
                 which is too few: a split needs 10 rows, and 2 in each part. Add rows, or use NO SPLIT."
            ),
        ),
        R::SplitValue { column, found, .. } => Report::with_text(
            ANALYSIS,
            "INVALID_MODEL_SPLIT.VALUE",
            "22023",
            &format!(
                "The split column {} must be a BOOLEAN (true is validation) or one of 'TRAIN', 'VALIDATE' and 'TEST', \
                 but got {found}.",
                id(column)
            ),
        ),
        R::UnknownStage { stage, .. } => {
            transform("UNKNOWN_STAGE", format!("The stage {} cannot be found.", id(stage)))
        }
        R::StageArgument { argument, item, .. } => transform(
            "STAGE_ARGUMENT",
            format!(
                "The argument {} of {} is not valid: a stage takes a column or an expression, then constants for its \
                 params, by place or by name.",
                id(argument),
                double_quoted(item)
            ),
        ),
        R::UsesLabel { label, .. } => transform(
            "USES_LABEL",
            format!("TRANSFORM reads the label {}, which is not there at prediction time.", id(label)),
        ),
        R::FixedAndTuned { option: name, .. } => {
            tuning("FIXED_AND_TUNED", format!("{} is searched, but OPTIONS fixes it. Remove one of them.", id(name)))
        }
        R::MetricUnknown { metric, estimator, known, .. } => tuning(
            "METRIC",
            format!("The metric {} is not available for {}. Available: {}.", id(metric), id(estimator), list(known)),
        ),
        R::MetricDirection { metric, is_maximized, .. } => tuning(
            "DIRECTION",
            format!(
                "{} is better when it is {}; say {}.",
                id(metric),
                if *is_maximized { "lower" } else { "higher" },
                if *is_maximized { "MINIMIZE" } else { "MAXIMIZE" }
            ),
        ),
        R::InvalidTuning { what, detail, .. } => tuning("VALUE", format!("{what} is not valid: {detail}.")),
        R::NotIterative { estimator, .. } => tuning(
            "NOT_ITERATIVE",
            format!("EARLY STOP needs an estimator with iterations; {} has none.", id(estimator)),
        ),
        R::TooManyTrials { found, max, .. } => {
            tuning("TOO_MANY_TRIALS", format!("The search has {found} trials, but at most {max} are allowed."))
        }
        R::AllTrialsFailed { trials, first } => Report::with_text(
            SPARK,
            "ALL_TRIALS_FAILED",
            "XX000",
            &format!("All {trials} trials failed. The first one: {first}"),
        ),
        R::TooFewWorkers { requested, available } => analysis(
            "INSUFFICIENT_TRAINING_RESOURCES",
            "53000",
            format!("Requested {requested} workers but at most {available} are available."),
        ),
        R::InvalidWarmStart { model: name, version, detail, estimator, .. } => analysis(
            "INVALID_WARM_START",
            "42616",
            format!("Model {} version {version} is {detail}; it cannot start {}.", model(name), id(estimator)),
        ),
        R::UnsupportedOperation { what } => {
            Report::with_text(UNSUPPORTED, "UNSUPPORTED_MODEL_OPERATION", "0A000", &format!("{what} is not supported."))
        }
        R::UnsupportedFormat { model: name, format, supported } => Report::with_text(
            UNSUPPORTED,
            "UNSUPPORTED_MODEL_FORMAT",
            "0A000",
            &format!(
                "Model {} cannot be written or read as {}. Supported: [{}].",
                model(name),
                id(format),
                supported.iter().map(|format| id(format)).collect::<Vec<_>>().join(", ")
            ),
        ),
        R::InvalidName { model: name, found } => {
            analysis("INVALID_MODEL_NAME", "42602", format!("{} is no name of a model: {found}.", model(name)))
        }
        R::NoAuthorizer => Report::with_text(
            UNSUPPORTED,
            "FEATURE_NOT_ENABLED",
            "56038",
            "The feature GRANT and REVOKE on models is not enabled: this server has no authorizer.",
        ),
        R::TrainingNotFound { id } => {
            analysis("TRAINING_NOT_FOUND", "42704", format!("The training '{id}' cannot be found or is not running."))
        }
    }
}

fn texts(values: &[String]) -> String {
    values.iter().map(|value| format!("'{value}'")).collect::<Vec<_>>().join(", ")
}

pub fn registry_report(error: &RegistryError) -> Report {
    use RegistryError as E;
    let analysis = |class: &str, state: &str, text: String| Report::with_text(ANALYSIS, class, state, &text);
    match error {
        E::ModelNotFound { name } => analysis(
            "MODEL_NOT_FOUND",
            "42704",
            format!(
                "The model {} cannot be found. Verify the spelling and correctness of the schema and catalog. To \
                 tolerate the error on drop use DROP MODEL IF EXISTS.",
                model(name)
            ),
        ),
        E::ModelExists { name } => analysis(
            "MODEL_ALREADY_EXISTS",
            "42710",
            format!(
                "Cannot create model {} because it already exists. Choose a different name, or use OR REPLACE or IF NOT \
                 EXISTS.",
                model(name)
            ),
        ),
        E::TrainingInProgress { name, training_id } => analysis(
            "MODEL_TRAINING_IN_PROGRESS",
            "55006",
            format!(
                "Model {} is being trained for the first time by training {training_id}. SHOW TRAININGS says how far it \
                 is.",
                model(name)
            ),
        ),
        E::VersionNotFound { name, version, versions, aliases } => {
            let versions: Vec<String> = versions.iter().map(ToString::to_string).collect();
            analysis(
                "MODEL_VERSION_NOT_FOUND",
                "42704",
                format!(
                    "Version {version} of model {} cannot be found. Existing versions: [{}]; aliases: {}.",
                    model(name),
                    versions.join(", "),
                    list(aliases)
                ),
            )
        }
        E::VersionInUse { name, version } => analysis(
            "MODEL_VERSION_IN_USE",
            "55006",
            format!(
                "Version {version} is the default of model {}. Set another default first, or drop the model.",
                model(name)
            ),
        ),
        E::InvalidAlias { alias } => analysis(
            "INVALID_MODEL_ALIAS",
            "42602",
            format!(
                "'{alias}' cannot be an alias: digits alone, `default`, `first`, `latest`, and names with `@` or of more \
                 than 64 characters are refused."
            ),
        ),
        E::AliasNotFound { name, alias } => {
            analysis("MODEL_ALIAS_NOT_FOUND", "42704", format!("Model {} has no alias '{alias}'.", model(name)))
        }
        E::TagNotFound { name, tag } => {
            analysis("MODEL_TAG_NOT_FOUND", "42704", format!("Model {} has no tag '{tag}'.", model(name)))
        }
        E::InvalidName { name, detail } => analysis(
            "INVALID_MODEL_NAME",
            "42602",
            format!("{} cannot be part of a model's name: {detail}.", quoted_id([name.as_str()])),
        ),
        E::TrainingNotFound { id } => {
            analysis("TRAINING_NOT_FOUND", "42704", format!("The training '{id}' cannot be found."))
        }
        E::Corrupted { path, detail } => Report::with_text(
            SPARK,
            "MODEL_CORRUPTED",
            "XX001",
            &format!("The file {path} of the model registry is damaged: {detail}."),
        ),
        E::UnknownFormat { path, found, supported } => Report::with_text(
            SPARK,
            "MODEL_FORMAT_NOT_SUPPORTED",
            "0A000",
            &format!(
                "The file {path} of the model registry has format {found}; this server reads up to {supported}. A later \
                 version wrote it."
            ),
        ),
        E::Contended { name } => Report::with_text(
            SPARK,
            "MODEL_CONTENDED",
            "40001",
            &format!("Model {} was changed by others at the same time. Try again.", model(name)),
        ),
        E::InvalidLocation { .. } => Report::with_text(IO, "MODEL_STORE_UNAVAILABLE", "58030", &error.to_string()),
        E::Write { path, source } => Report::with_text(
            IO,
            "MODEL_STORE_UNAVAILABLE",
            "58030",
            &format!("The file {path} of the model registry could not be written: {source}"),
        ),
        E::Read { path, source } => Report::with_text(
            IO,
            "MODEL_STORE_UNAVAILABLE",
            "58030",
            &format!("The file {path} of the model registry could not be read: {source}"),
        ),
        E::Encode { .. } => Report::internal(&error.to_string()),
    }
}

/// The errors of model statements' text that Spark has conditions for, or that are ours.
pub fn sql_report(error: &::sql::Error) -> Option<Report> {
    use ::sql::Error as E;
    let text = error.to_string();
    let parse = |class: &str, state: &str, text: &str| Some(Report::with_text(PARSE, class, state, text));
    let id = |name: &str| quoted_id([name]);
    match error {
        E::DuplicateClause { clause, .. } => parse(
            "DUPLICATE_CLAUSES",
            "42614",
            &format!("Found duplicate clauses: {clause}. Please, remove one of them."),
        ),
        E::TrainReplaceAndIfNotExists { .. } => parse(
            "INVALID_SQL_SYNTAX.TRAIN_MODEL_WITH_IF_NOT_EXISTS_AND_REPLACE",
            "42000",
            "Invalid SQL syntax: Cannot train a model with both IF NOT EXISTS and REPLACE specified.",
        ),
        E::InvalidIdentifier { name, .. } => parse(
            "INVALID_IDENTIFIER",
            "42602",
            &format!("The unquoted identifier {name} is invalid and must be back quoted as: {}.", id(name)),
        ),
        E::NotAConstant { what, expected, found, .. } => parse(
            "INVALID_MODEL_CLAUSE",
            "42601",
            &format!("{what} needs a constant of type {}, but got {}.", double_quoted(expected), double_quoted(found)),
        ),
        E::OptionNotFoldable { key, expression, .. } => parse(
            "INVALID_MODEL_OPTION.NOT_FOLDABLE",
            "42616",
            &format!("The value {} of option {} is not a constant.", double_quoted(expression), id(key)),
        ),
        E::OptionWithoutValue { key, .. } => {
            parse("INVALID_MODEL_OPTION.NO_VALUE", "42616", &format!("Option {} has no value.", id(key)))
        }
        E::DuplicateKey { key, .. } => parse("DUPLICATE_KEY", "23505", &format!("Found duplicate keys {}.", id(key))),
        E::SplitFractions { found, .. } => parse(
            "INVALID_MODEL_SPLIT.FRACTIONS",
            "22023",
            &format!("Fractions must be in (0,1) and sum to 1, but got {found}."),
        ),
        E::SplitConflict { .. } => parse(
            "INVALID_MODEL_SPLIT.CONFLICT",
            "22023",
            "SPLIT and VALIDATE ON both say what to validate on. Remove one of them.",
        ),
        E::RangeInGrid { key, .. } => parse(
            "INVALID_MODEL_TUNING.RANGE_IN_GRID",
            "42616",
            &format!("GRID cannot search the range of {}: list its values with IN, or use RANDOM.", id(key)),
        ),
        E::TuneRange { key, low, high, .. } => parse(
            "INVALID_MODEL_TUNING.RANGE",
            "42616",
            &format!(
                "{} cannot be searched between {low} and {high}: two numbers are needed, the lower one first, and \
                      above 0 for LOG.",
                id(key)
            ),
        ),
        E::TransformNotRowwise { expression, .. } => parse(
            "INVALID_MODEL_TRANSFORM.NOT_ROWWISE",
            "42K0E",
            &format!("The expression {} cannot be replayed at prediction time.", double_quoted(expression)),
        ),
        E::RequiredParameter { routine, parameter, index } => Some(Report::with_text(
            ANALYSIS,
            "REQUIRED_PARAMETER_NOT_FOUND",
            "4274K",
            &format!(
                "Cannot invoke routine {} because the parameter named {} is required, but the routine call did not supply \
                 a value. Please update the routine call to supply an argument value (either positionally at index {index} \
                 or by name) and retry the query again.",
                id(routine),
                id(parameter)
            ),
        )),
        E::UnrecognizedParameter { routine, parameter, known } => {
            let known: Vec<String> = known.iter().map(ToString::to_string).collect();
            Some(Report::with_text(
                ANALYSIS,
                "UNRECOGNIZED_PARAMETER_NAME",
                "4274K",
                &format!(
                    "Cannot invoke routine {} because the routine call included a named argument reference for the \
                     argument named {}, but this routine does not include any signature containing an argument with this \
                     name. Did you mean one of the following? {}.",
                    id(routine),
                    id(parameter),
                    suggestions(parameter, &known)
                ),
            ))
        }
        E::ParameterTwice { routine, parameter } => Some(Report::with_text(
            ANALYSIS,
            "DUPLICATE_ROUTINE_PARAMETER_ASSIGNMENT.DOUBLE_NAMED_ARGUMENT_REFERENCE",
            "4274K",
            &format!(
                "Call to routine {} is invalid because it includes more than one value for {}.",
                id(routine),
                id(parameter)
            ),
        )),
        E::NotAConstantString { .. } => {
            let text = text.replacen("the expression", "The expression", 1);
            Some(Report::with_text(ANALYSIS, "NOT_A_CONSTANT_STRING", "42601", &format!("{text}.")))
        }
        _ => None,
    }
}
