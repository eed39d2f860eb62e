//! Spark's keys and their defaults.

use std::sync::OnceLock;

use chrono_tz::Tz;

/// The keys that clients read, and those of `spark.sql` that people know, with the values Spark 4.3 has. Sorted by key.
const DEFAULTS: &[(&str, &str)] = &[
    ("spark.connect.grpc.arrow.maxBatchSize", "4194304"),
    ("spark.connect.session.connectML.mlCache.memoryControl.enabled", "true"),
    ("spark.connect.session.connectML.mlCache.memoryControl.maxModelSize", "1g"),
    ("spark.connect.session.connectML.mlCache.memoryControl.maxStorageSize", "10g"),
    ("spark.connect.session.connectML.mlCache.memoryControl.offloadingTimeout", "15min"),
    ("spark.connect.session.planCompression.defaultAlgorithm", "ZSTD"),
    ("spark.connect.session.planCompression.threshold", "10485760"),
    ("spark.driver.host", "127.0.0.1"),
    ("spark.sql.adaptive.coalescePartitions.enabled", "true"),
    ("spark.sql.adaptive.enabled", "true"),
    ("spark.sql.analyzer.failAmbiguousSelfJoin", "true"),
    ("spark.sql.ansi.doubleQuotedIdentifiers", "false"),
    ("spark.sql.ansi.enabled", "true"),
    ("spark.sql.ansi.enforceReservedKeywords", "false"),
    ("spark.sql.artifact.copyFromLocalToFs.allowDestLocal", "false"),
    ("spark.sql.autoBroadcastJoinThreshold", "10485760b"),
    ("spark.sql.broadcastTimeout", "300"),
    ("spark.sql.caseSensitive", "false"),
    ("spark.sql.catalog.spark_catalog.defaultDatabase", "default"),
    ("spark.sql.cbo.enabled", "false"),
    ("spark.sql.charAsVarchar", "false"),
    ("spark.sql.codegen.wholeStage", "true"),
    ("spark.sql.columnNameOfCorruptRecord", "_corrupt_record"),
    ("spark.sql.connect.enrichError.enabled", "true"),
    ("spark.sql.connect.serverStacktrace.enabled", "false"),
    ("spark.sql.crossJoin.enabled", "true"),
    ("spark.sql.datetime.java8API.enabled", "false"),
    ("spark.sql.debug.maxToStringFields", "25"),
    ("spark.sql.decimalOperations.allowPrecisionLoss", "true"),
    ("spark.sql.defaultCacheStorageLevel", "MEMORY_AND_DISK"),
    ("spark.sql.defaultCatalog", "spark_catalog"),
    ("spark.sql.error.messageFormat", "PRETTY"),
    ("spark.sql.execution.arrow.localRelationThreshold", "48MB"),
    ("spark.sql.execution.arrow.maxRecordsPerBatch", "10000"),
    ("spark.sql.execution.arrow.pyspark.enabled", "true"),
    ("spark.sql.execution.arrow.pyspark.fallback.enabled", "true"),
    ("spark.sql.execution.arrow.pyspark.selfDestruct.enabled", "false"),
    ("spark.sql.execution.arrow.pyspark.validateSchema.enabled", "false"),
    ("spark.sql.execution.arrow.useLargeVarTypes", "false"),
    ("spark.sql.execution.interruptOnCancel", "true"),
    ("spark.sql.execution.pandas.convertToArrowArraySafely", "true"),
    ("spark.sql.execution.pandas.inferPandasDictAsMap", "false"),
    ("spark.sql.execution.pandas.structHandlingMode", "legacy"),
    ("spark.sql.execution.pyspark.binaryAsBytes", "true"),
    ("spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled", "true"),
    ("spark.sql.execution.pythonUDF.arrow.enabled", "true"),
    ("spark.sql.execution.pythonUDTF.arrow.enabled", "true"),
    ("spark.sql.files.ignoreCorruptFiles", "false"),
    ("spark.sql.files.ignoreMissingFiles", "false"),
    ("spark.sql.files.maxPartitionBytes", "128MB"),
    ("spark.sql.files.maxRecordsPerFile", "0"),
    ("spark.sql.function.concatBinaryAsString", "false"),
    ("spark.sql.groupByAliases", "true"),
    ("spark.sql.groupByOrdinal", "true"),
    ("spark.sql.inMemoryColumnarStorage.batchSize", "10000"),
    ("spark.sql.inMemoryColumnarStorage.compressed", "true"),
    ("spark.sql.jsonGenerator.ignoreNullFields", "true"),
    ("spark.sql.legacy.createHiveTableByDefault", "false"),
    ("spark.sql.legacy.timeParserPolicy", "CORRECTED"),
    ("spark.sql.mapKeyDedupPolicy", "EXCEPTION"),
    ("spark.sql.maxPlanStringLength", "2147483632"),
    ("spark.sql.optimizer.dynamicPartitionPruning.enabled", "true"),
    ("spark.sql.orc.compression.codec", "zstd"),
    ("spark.sql.orderByOrdinal", "true"),
    ("spark.sql.parquet.binaryAsString", "false"),
    ("spark.sql.parquet.compression.codec", "snappy"),
    ("spark.sql.parquet.filterPushdown", "true"),
    ("spark.sql.parquet.inferTimestampNTZ.enabled", "true"),
    ("spark.sql.parquet.int96AsTimestamp", "true"),
    ("spark.sql.parquet.mergeSchema", "false"),
    ("spark.sql.parquet.outputTimestampType", "INT96"),
    ("spark.sql.parser.quotedRegexColumnNames", "false"),
    ("spark.sql.pivotMaxValues", "10000"),
    ("spark.sql.preserveCharVarcharTypeInfo", "false"),
    ("spark.sql.pyspark.inferNestedDictAsStruct.enabled", "false"),
    ("spark.sql.pyspark.jvmStacktrace.enabled", "false"),
    ("spark.sql.pyspark.legacy.inferArrayTypeFromFirstElement.enabled", "false"),
    ("spark.sql.pyspark.legacy.inferMapTypeFromFirstPair.enabled", "false"),
    ("spark.sql.pyspark.plotting.max_rows", "1000"),
    ("spark.sql.pyspark.toJSON.returnDataFrame", "false"),
    ("spark.sql.pyspark.worker.logging.enabled", "false"),
    ("spark.sql.readSideCharPadding", "true"),
    ("spark.sql.repl.eagerEval.enabled", "false"),
    ("spark.sql.repl.eagerEval.maxNumRows", "20"),
    ("spark.sql.repl.eagerEval.truncate", "20"),
    ("spark.sql.scripting.enabled", "true"),
    ("spark.sql.session.localRelationBatchOfChunksSizeBytes", "1073741824"),
    ("spark.sql.session.localRelationCacheThreshold", "1048576"),
    ("spark.sql.session.localRelationChunkSizeBytes", "16777216"),
    ("spark.sql.session.localRelationChunkSizeRows", "10000"),
    ("spark.sql.session.localRelationSizeLimit", "3221225472"),
    ("spark.sql.shuffle.partitions", "200"),
    ("spark.sql.sources.default", "parquet"),
    ("spark.sql.sources.partitionColumnTypeInference.enabled", "true"),
    ("spark.sql.sources.partitionOverwriteMode", "STATIC"),
    ("spark.sql.stackTracesInDataFrameContext", "1"),
    ("spark.sql.statistics.histogram.enabled", "false"),
    ("spark.sql.storeAssignmentPolicy", "ANSI"),
    ("spark.sql.timestampType", "TIMESTAMP_LTZ"),
    ("spark.sql.transposeMaxValues", "500"),
    ("spark.sql.ui.explainMode", "formatted"),
    ("spark.sql.variable.substitute", "true"),
    ("spark.sql.window.segmentTree.enabled", "false"),
];

/// Keys that belong to the server or its start: Spark refuses them in a session too.
const FIXED: &[&str] = &[
    "spark.master",
    "spark.sql.artifact.copyFromLocalToFs.allowDestLocal",
    "spark.sql.catalogImplementation",
    "spark.sql.connect.serverStacktrace.enabled",
    "spark.sql.event.truncate.length",
    "spark.sql.extensions",
    "spark.sql.globalTempDatabase",
    "spark.sql.queryExecutionListeners",
    "spark.sql.streaming.ui.enabled",
    "spark.sql.warehouse.dir",
];

const FIXED_PREFIXES: &[&str] = &["spark.driver.", "spark.executor.", "spark.task.", "spark.ssl.", "spark.submit."];

pub fn find(key: &str) -> Option<&'static str> {
    DEFAULTS.binary_search_by(|(known, _)| known.cmp(&key)).ok().map(|position| DEFAULTS[position].1)
}

pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    DEFAULTS.iter().copied()
}

pub fn is_fixed(key: &str) -> bool {
    FIXED.contains(&key) || FIXED_PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}

/// The zone of the machine, asked once: what `TZ` says, else what `/etc/localtime` points to, else UTC.
pub fn machine_time_zone() -> Tz {
    static ZONE: OnceLock<Tz> = OnceLock::new();
    *ZONE.get_or_init(|| {
        let from_environment = std::env::var("TZ").ok().and_then(|name| name.trim_start_matches(':').parse().ok());
        let from_system = || {
            let target = std::fs::canonicalize("/etc/localtime").ok()?;
            let (_, name) = target.to_str()?.split_once("zoneinfo/")?;
            name.parse().ok()
        };
        from_environment.or_else(from_system).unwrap_or(Tz::UTC)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_sorted_so_that_they_can_be_searched() {
        assert!(DEFAULTS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(find("spark.sql.caseSensitive"), Some("false"));
        assert_eq!(find("spark.sql.caseSensitiv"), None);
    }
}
