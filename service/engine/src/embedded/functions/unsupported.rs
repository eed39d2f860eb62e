pub fn is_spark_function(_name: &str) -> bool { false }
