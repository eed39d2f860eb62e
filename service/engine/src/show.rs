//! Values as text, as Spark casts them to strings and as `df.show()` draws them.

mod date_time;
mod interval;
mod table;
mod value;

#[cfg(test)]
mod tests;

pub(crate) use date_time::civil_from_days;
pub use table::{html_string, show_string};
pub use value::{Style, string_column, styled_column};
