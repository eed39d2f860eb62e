//! Numbers and texts as they are written.

/// Stands where a length would: the data of a task are over.
pub const END_OF_STREAM: i32 = -4;
pub const END_OF_DATA_SECTION: i32 = -1;
pub const PYTHON_EXCEPTION_THROWN: i32 = -2;
pub const TIMING_DATA: i32 = -3;
pub const START_ARROW_STREAM: i32 = -6;
pub const START_OF_INIT_MESSAGE: i32 = -8;

pub fn put_i32(out: &mut Vec<u8>, value: i32) {
    out.extend_from_slice(&value.to_be_bytes());
}

pub fn put_i64(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(&value.to_be_bytes());
}

pub fn put_bool(out: &mut Vec<u8>, value: bool) {
    out.push(u8::from(value));
}

pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_i32(out, bytes.len() as i32);
    out.extend_from_slice(bytes);
}

pub fn put_text(out: &mut Vec<u8>, text: &str) {
    put_bytes(out, text.as_bytes());
}
