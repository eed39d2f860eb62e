pub const FUNCTIONS: &[super::Function] = &[];
pub fn comparable_column(array: &arrow::array::ArrayRef) -> crate::Result<arrow::array::ArrayRef> { Ok(array.clone()) }
