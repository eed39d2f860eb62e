//! What linear models share: reading rows, the standardised objective, regularisation, margins, saved tables.

pub use train::bits;
pub mod instances;
pub mod margins;
pub mod objective;
pub mod params;
pub mod resume;
pub mod saved;
