//! `ml_attr`, Spark ML's column metadata: class counts, level names, feature names.
