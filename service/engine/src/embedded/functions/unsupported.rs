//! The names of Spark's functions that this engine does not have: they are refused by name, not called unknown.

const NAMES: &str = "
    aes_decrypt aes_encrypt approx_top_k approx_top_k_accumulate array_product avro_schema bit_get bit_length
    bitmap_and_agg bitmap_bit_position bitmap_bucket_number bitmap_construct_agg bitmap_count bitmap_or_agg bucket
    collate collation collations convert_timezone count_min_sketch cube current_time dayname days decode
    default_collation encode explode explode_outer from_avro from_csv from_protobuf from_xml
    getbit grouping_id histogram_numeric hll_sketch_agg hll_sketch_estimate hll_union
    hll_union_agg hours inline inline_outer input_file_block_length input_file_block_start input_file_name
    is_valid_utf8 is_variant_null java_method json_tuple kll_sketch_agg_bigint
    kll_sketch_agg_double localtimestamp make_dt_interval make_interval make_time make_timestamp_ltz
    make_timestamp_ntz make_valid_utf8 make_ym_interval map_contains_key mask monthname months normalize_nan
    nth_value parse_json parse_url partitioning_hours percentile_cont percentile_disc posexplode posexplode_outer
    quote randstr reflect regr_count schema_of_avro schema_of_csv schema_of_variant
    schema_of_variant_agg schema_of_xml sentences session_window sha shuffle st_asbinary st_geogfromwkb
    st_geomfromwkb stack theta_sketch_agg time_diff time_trunc timestamp_ltz timestamp_ntz to_avro to_char to_csv
    to_number to_protobuf to_time to_varchar to_variant_object to_xml try_aes_decrypt try_make_interval
    try_make_timestamp try_parse_json try_parse_url try_reflect try_to_binary try_to_number try_to_time
    try_url_decode try_validate_utf8 try_variant_get uniform unwrap_udt validate_utf8 variant_explode
    variant_explode_outer variant_get vector_inner_product window window_time xpath xpath_boolean xpath_double
    xpath_float xpath_int xpath_long xpath_number xpath_short xpath_string years
";

/// Whether Spark knows a function by this name.
pub fn is_spark_function(name: &str) -> bool {
    NAMES.split_whitespace().any(|known| known == name)
}
