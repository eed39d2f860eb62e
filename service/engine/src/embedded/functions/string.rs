pub const FUNCTIONS: &[super::Function] = &[];
pub mod pattern { use crate::embedded::functions::Call; use crate::embedded::expression::Typed; pub fn like(call: Call<'_>, _i: bool) -> crate::Result<Typed> { Err(call.mismatch("x", "y".into())) }
 pub fn matches(call: Call<'_>) -> crate::Result<Typed> { Err(call.mismatch("x", "y".into())) } }
