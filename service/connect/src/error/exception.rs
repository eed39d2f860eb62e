//! The JVM classes of Spark's exceptions, most specific first: a client picks its own class by the first it knows.

/// A class and its superclasses, without `java.lang.Object`.
pub type Hierarchy = &'static [&'static str];

pub const ANALYSIS: Hierarchy =
    &["org.apache.spark.sql.AnalysisException", "java.lang.Exception", "java.lang.Throwable"];
pub const PARSE: Hierarchy = &[
    "org.apache.spark.sql.catalyst.parser.ParseException",
    "org.apache.spark.sql.AnalysisException",
    "java.lang.Exception",
    "java.lang.Throwable",
];
pub const INVALID_PLAN: Hierarchy =
    &["org.apache.spark.sql.connect.common.InvalidPlanInput", "java.lang.Exception", "java.lang.Throwable"];
pub const SPARK: Hierarchy = &["org.apache.spark.SparkException", "java.lang.Exception", "java.lang.Throwable"];
pub const SQL: Hierarchy =
    &["org.apache.spark.SparkSQLException", "java.sql.SQLException", "java.lang.Exception", "java.lang.Throwable"];
pub const RUNTIME: Hierarchy = &[
    "org.apache.spark.SparkRuntimeException",
    "java.lang.RuntimeException",
    "java.lang.Exception",
    "java.lang.Throwable",
];
pub const ILLEGAL_ARGUMENT: Hierarchy = &[
    "org.apache.spark.SparkIllegalArgumentException",
    "java.lang.IllegalArgumentException",
    "java.lang.RuntimeException",
    "java.lang.Exception",
    "java.lang.Throwable",
];
/// What Scala's `require` throws: no error class.
pub const REQUIRE: Hierarchy =
    &["java.lang.IllegalArgumentException", "java.lang.RuntimeException", "java.lang.Exception", "java.lang.Throwable"];
pub const ARITHMETIC: Hierarchy = &[
    "org.apache.spark.SparkArithmeticException",
    "java.lang.ArithmeticException",
    "java.lang.RuntimeException",
    "java.lang.Exception",
    "java.lang.Throwable",
];
pub const NUMBER_FORMAT: Hierarchy = &[
    "org.apache.spark.SparkNumberFormatException",
    "java.lang.NumberFormatException",
    "java.lang.IllegalArgumentException",
    "java.lang.RuntimeException",
    "java.lang.Exception",
    "java.lang.Throwable",
];
pub const DATE_TIME: Hierarchy = &[
    "org.apache.spark.SparkDateTimeException",
    "java.time.DateTimeException",
    "java.lang.RuntimeException",
    "java.lang.Exception",
    "java.lang.Throwable",
];
pub const ARRAY_INDEX: Hierarchy = &[
    "org.apache.spark.SparkArrayIndexOutOfBoundsException",
    "java.lang.ArrayIndexOutOfBoundsException",
    "java.lang.IndexOutOfBoundsException",
    "java.lang.RuntimeException",
    "java.lang.Exception",
    "java.lang.Throwable",
];
pub const UNSUPPORTED: Hierarchy = &[
    "org.apache.spark.SparkUnsupportedOperationException",
    "java.lang.UnsupportedOperationException",
    "java.lang.RuntimeException",
    "java.lang.Exception",
    "java.lang.Throwable",
];
pub const NO_SUCH_ELEMENT: Hierarchy = &[
    "org.apache.spark.SparkNoSuchElementException",
    "java.util.NoSuchElementException",
    "java.lang.RuntimeException",
    "java.lang.Exception",
    "java.lang.Throwable",
];
pub const CLASS_NOT_FOUND: Hierarchy = &[
    "org.apache.spark.SparkClassNotFoundException",
    "java.lang.ClassNotFoundException",
    "java.lang.ReflectiveOperationException",
    "java.lang.Exception",
    "java.lang.Throwable",
];
pub const SECURITY: Hierarchy =
    &["java.lang.SecurityException", "java.lang.RuntimeException", "java.lang.Exception", "java.lang.Throwable"];
pub const PYTHON: Hierarchy = &[
    "org.apache.spark.api.python.PythonException",
    "java.lang.RuntimeException",
    "java.lang.Exception",
    "java.lang.Throwable",
];
pub const IO: Hierarchy = &["java.io.IOException", "java.lang.Exception", "java.lang.Throwable"];
pub const ML_CACHE: Hierarchy = &[
    "org.apache.spark.sql.connect.ml.MLCacheInvalidException",
    "org.apache.spark.SparkException",
    "java.lang.Exception",
    "java.lang.Throwable",
];
pub const ML_SUMMARY_LOST: Hierarchy = &[
    "org.apache.spark.sql.connect.ml.MLModelSummaryLostException",
    "org.apache.spark.SparkException",
    "java.lang.Exception",
    "java.lang.Throwable",
];
pub const ML_ATTRIBUTE: Hierarchy = &[
    "org.apache.spark.sql.connect.ml.MLAttributeNotAllowedException",
    "org.apache.spark.SparkException",
    "java.lang.Exception",
    "java.lang.Throwable",
];
pub const ML_UNSUPPORTED: Hierarchy = &[
    "org.apache.spark.sql.connect.ml.MlUnsupportedException",
    "org.apache.spark.SparkException",
    "java.lang.Exception",
    "java.lang.Throwable",
];
