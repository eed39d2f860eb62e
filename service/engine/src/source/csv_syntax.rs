//! How CSV text falls into records and cells, with the readings Spark has of text that is not quite CSV.

use std::borrow::Cow;

use super::cells::Cell;
use super::options::{Options, invalid};
use crate::{Error, Result};

const FORMAT: &str = "CSV";

#[derive(Debug, Clone)]
pub(super) struct CsvSyntax {
    separator: Vec<u8>,
    quote: Option<u8>,
    escape: Option<u8>,
    comment: Option<u8>,
    trims_leading: bool,
    trims_trailing: bool,
    null: String,
    empty: String,
}

impl CsvSyntax {
    pub fn of(options: &Options) -> Result<CsvSyntax> {
        let ascii = |keys: &[&str], default: Option<char>| -> Result<Option<u8>> {
            match options.character(FORMAT, keys, default)? {
                None => Ok(None),
                Some(c) if c.is_ascii() => Ok(Some(c as u8)),
                Some(c) => Err(Error::Unsupported { feature: format!("option {} of CSV beyond ASCII: {c}", keys[0]) }),
            }
        };
        let separator = match options.first(&["sep", "delimiter"]).unwrap_or(",") {
            "\\t" => "\t",
            "" => return Err(invalid(FORMAT, "sep", "", "it must not be empty")),
            separator => separator,
        };
        let handling = options.get("unescapedQuoteHandling").unwrap_or("STOP_AT_DELIMITER");
        if !handling.eq_ignore_ascii_case("STOP_AT_DELIMITER") {
            return Err(Error::Unsupported { feature: format!("unescapedQuoteHandling {handling} of CSV") });
        }
        Ok(CsvSyntax {
            separator: separator.as_bytes().to_vec(),
            quote: ascii(&["quote"], Some('"'))?,
            escape: ascii(&["escape"], Some('\\'))?,
            comment: ascii(&["comment"], None)?,
            trims_leading: options.flag(FORMAT, "ignoreLeadingWhiteSpace", false)?,
            trims_trailing: options.flag(FORMAT, "ignoreTrailingWhiteSpace", false)?,
            null: options.get("nullValue").unwrap_or_default().to_string(),
            empty: options.get("emptyValue").unwrap_or_default().to_string(),
        })
    }

    /// Whether a line holds no record.
    pub fn is_skipped(&self, line: &[u8]) -> bool {
        let trimmed = line.trim_ascii();
        trimmed.is_empty() || self.comment.is_some_and(|comment| trimmed[0] == comment)
    }

    /// Reads the record at the beginning of `text` up to a line end outside of quotes. Appends its cells and gives how many
    /// bytes it takes, the line end excluded.
    pub fn record<'a>(&self, text: &'a [u8], cells: &mut Vec<Cell<'a>>) -> usize {
        let mut at = 0;
        loop {
            at += self.cell(&text[at..], cells);
            if text[at..].starts_with(&self.separator) {
                at += self.separator.len();
            } else {
                return at;
            }
        }
    }

    fn cell<'a>(&self, text: &'a [u8], cells: &mut Vec<Cell<'a>>) -> usize {
        let blanks = match self.trims_leading {
            true => text.iter().take_while(|byte| is_blank(**byte)).count(),
            false => 0,
        };
        if self.quote.is_some() && text.get(blanks).copied() == self.quote {
            return blanks + self.quoted(&text[blanks..], cells);
        }
        let length = blanks + self.unquoted_length(&text[blanks..]);
        cells.push(self.plain(&text[blanks..length]));
        length
    }

    /// How far it is to the next separator or line end.
    fn unquoted_length(&self, text: &[u8]) -> usize {
        let first = self.separator[0];
        let is_end = |at: usize| {
            matches!(text[at], b'\n' | b'\r') || text[at] == first && text[at..].starts_with(&self.separator)
        };
        (0..text.len()).find(|at| is_end(*at)).unwrap_or(text.len())
    }

    fn plain<'a>(&self, text: &'a [u8]) -> Cell<'a> {
        let text = if self.trims_trailing { text.trim_ascii_end() } else { text };
        let text = String::from_utf8_lossy(text);
        (!text.is_empty() && text != self.null).then_some(text)
    }

    /// Reads a cell that begins with a quote.
    fn quoted<'a>(&self, text: &'a [u8], cells: &mut Vec<Cell<'a>>) -> usize {
        let quote = self.quote.unwrap_or_default();
        let mut content: Option<Vec<u8>> = None;
        let (mut start, mut at) = (1, 1);
        while at < text.len() {
            let byte = text[at];
            let next = text.get(at + 1).copied();
            let is_escape = Some(byte) == self.escape
                && (next == Some(quote) || next == self.escape && self.escape != Some(quote));
            if is_escape {
                let content = content.get_or_insert_default();
                content.extend_from_slice(&text[start..at]);
                start = at + 1;
                at += 2;
                continue;
            }
            if byte == quote {
                let blanks = text[at + 1..].iter().take_while(|byte| is_blank(**byte)).count();
                let after = &text[at + 1 + blanks..];
                let is_closed =
                    after.is_empty() || after.starts_with(&self.separator) || matches!(after[0], b'\n' | b'\r');
                if is_closed {
                    cells.push(self.content(content, &text[start..at]));
                    return at + 1 + blanks;
                }
                // A quote inside: the cell is what stands there, quotes and all.
                let length = at + self.unquoted_length(&text[at..]);
                cells.push(self.plain(&text[..length]));
                return length;
            }
            at += 1;
        }
        cells.push(self.content(content, &text[start.min(text.len())..]));
        text.len()
    }

    fn content<'a>(&self, unescaped: Option<Vec<u8>>, rest: &'a [u8]) -> Cell<'a> {
        let content = match unescaped {
            None => String::from_utf8_lossy(rest),
            Some(mut content) => {
                content.extend_from_slice(rest);
                Cow::Owned(String::from_utf8_lossy(&content).into_owned())
            }
        };
        let content = if content.is_empty() { Cow::Owned(self.empty.clone()) } else { content };
        (content != self.null).then_some(content)
    }
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(options: &[(&str, &str)], text: &str, expected: &[Option<&str>]) {
        let syntax = CsvSyntax::of(&options.iter().copied().collect()).unwrap();
        let mut cells = Vec::new();
        syntax.record(text.as_bytes(), &mut cells);
        let cells: Vec<Option<&str>> = cells.iter().map(Option::as_deref).collect();
        assert_eq!(cells, expected, "{text}");
    }

    #[test]
    fn cells_are_read_as_spark_reads_them() {
        check(&[], "a,b", &[Some("a"), Some("b")]);
        check(&[], "a,,", &[Some("a"), None, None]);
        check(&[], r#""x,1","y ""q"" z""#, &[Some("x,1"), Some(r#""y ""q"" z""#)]);
        check(&[], r#""a\"b",c"#, &[Some("a\"b"), Some("c")]);
        check(&[], r#""b\\s","\x""#, &[Some("b\\s"), Some("\\x")]);
        check(&[], "\"x", &[Some("x")]);
        check(&[], "1\",2", &[Some("1\""), Some("2")]);
        check(&[], "\"x\n1\",2\n3", &[Some("x\n1"), Some("2")]);
        check(&[], "\"\",x", &[None, Some("x")]);
        check(&[("emptyValue", "E"), ("nullValue", "N")], "\"\",x,,N", &[Some("E"), Some("x"), None, None]);
        check(&[("escape", "\"")], r#""a ""q"" b",c"#, &[Some(r#"a "q" b"#), Some("c")]);
        check(&[("sep", "||")], "a||b|c", &[Some("a"), Some("b|c")]);
        check(&[("quote", "")], "\"a\",b", &[Some("\"a\""), Some("b")]);
        check(&[("ignoreLeadingWhiteSpace", "true")], " a , b ", &[Some("a "), Some("b ")]);
        check(&[("ignoreTrailingWhiteSpace", "true")], " a , b ", &[Some(" a"), Some(" b")]);
        check(&[], "\"", &[None]);
    }

    #[test]
    fn options_that_cannot_be_are_refused() {
        let of = |key: &str, value: &str| CsvSyntax::of(&[(key, value)].into_iter().collect());
        assert!(matches!(of("quote", "zz"), Err(Error::InvalidOption { .. })));
        assert!(matches!(of("ignoreLeadingWhiteSpace", "x"), Err(Error::InvalidOption { .. })));
        assert!(matches!(of("quote", "é"), Err(Error::Unsupported { .. })));
        assert!(matches!(of("unescapedQuoteHandling", "BACK_TO_DELIMITER"), Err(Error::Unsupported { .. })));
    }
}
