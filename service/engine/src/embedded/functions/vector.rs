pub const FUNCTIONS: &[super::Function] = &[];
