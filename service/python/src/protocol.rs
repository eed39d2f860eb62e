//! Spark's protocol between an executor and `pyspark.worker`: integers are big-endian, texts have their length before them.

mod init;
mod reader;
mod wire;

pub use init::init_message;
pub use reader::{Reader, Said};
pub use wire::{END_OF_STREAM, put_i32};
