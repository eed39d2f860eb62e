//! Where something stands in a text.

use sqlparser::tokenizer::Span;

/// A stretch of a line of the text. Lines and columns count from 1, columns in characters; 0 where unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    pub line: u64,
    pub column: u64,
    /// Characters.
    pub length: u64,
}

impl Place {
    pub(crate) fn of(span: Span) -> Place {
        let length =
            if span.start.line == span.end.line { span.end.column.saturating_sub(span.start.column) } else { 1 };
        Place { line: span.start.line, column: span.start.column, length: length.max(1) }
    }

    /// From the beginning of this place to the end of another.
    pub(crate) fn to(self, end: Place) -> Place {
        if self.line != end.line || end.column < self.column {
            return self;
        }
        Place { length: end.column + end.length - self.column, ..self }
    }
}

/// A name or a text as it is written, without quotes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    pub place: Place,
}
