//! JSON text as values that keep numbers as they were written: Spark reads decimals and long integers exactly, and takes
//! single quotes and `NaN`.

use std::borrow::Cow;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json<'a> {
    Null,
    Boolean(bool),
    /// The number's own text; `NaN` and infinities too.
    Number(&'a str),
    String(Cow<'a, str>),
    Array(Vec<Json<'a>>),
    /// In the order of the text; of a key that repeats, the last counts.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

/// Deeper values than any real data has are refused before they exhaust the stack.
const DEPTH_MAX: usize = 500;

impl<'a> Json<'a> {
    /// Parses one value that is all of the text.
    pub fn parse(text: &'a str) -> Option<Json<'a>> {
        let mut parser = Parser { text, at: 0 };
        let value = parser.value(0)?;
        parser.skip_blanks();
        (parser.at == text.len()).then_some(value)
    }

    pub fn get(&self, key: &str) -> Option<&Json<'a>> {
        match self {
            Json::Object(pairs) => pairs.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The value as text without blanks.
    pub fn write(&self, text: &mut String) {
        match self {
            Json::Null => text.push_str("null"),
            Json::Boolean(value) => text.push_str(if *value { "true" } else { "false" }),
            Json::Number(number) => text.push_str(number),
            Json::String(value) => push_quoted(value, text),
            Json::Array(values) => {
                text.push('[');
                for (position, value) in values.iter().enumerate() {
                    if position > 0 {
                        text.push(',');
                    }
                    value.write(text);
                }
                text.push(']');
            }
            Json::Object(pairs) => {
                text.push('{');
                for (position, (key, value)) in pairs.iter().enumerate() {
                    if position > 0 {
                        text.push(',');
                    }
                    push_quoted(key, text);
                    text.push(':');
                    value.write(text);
                }
                text.push('}');
            }
        }
    }
}

/// Appends a string in quotes, with the escapes that JSON needs.
pub(super) fn push_quoted(value: &str, text: &mut String) {
    text.push('"');
    for c in value.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            c if (c as u32) < 0x20 => text.push_str(&format!("\\u{:04X}", c as u32)),
            c => text.push(c),
        }
    }
    text.push('"');
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        self.skip_blanks();
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Option<Json<'a>> {
        self.text[self.at..].starts_with(word).then(|| {
            self.at += word.len();
            value
        })
    }

    fn value(&mut self, depth: usize) -> Option<Json<'a>> {
        if depth > DEPTH_MAX {
            return None;
        }
        self.skip_blanks();
        match self.peek()? {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' | b'\'' => self.string().map(Json::String),
            b't' => self.word("true", Json::Boolean(true)),
            b'f' => self.word("false", Json::Boolean(false)),
            b'n' => self.word("null", Json::Null),
            b'N' => self.word("NaN", Json::Number("NaN")),
            b'I' => self.word("Infinity", Json::Number("Infinity")),
            b'-' if self.text[self.at..].starts_with("-Infinity") => self.word("-Infinity", Json::Number("-Infinity")),
            b'-' | b'0'..=b'9' => self.number(),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<Json<'a>> {
        let start = self.at;
        let is_part = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
        while self.peek().is_some_and(is_part) {
            self.at += 1;
        }
        let number = &self.text[start..self.at];
        let digits = number.strip_prefix('-').unwrap_or(number);
        let has_leading_zero = digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit();
        let is_valid = digits.starts_with(|c: char| c.is_ascii_digit())
            && number.ends_with(|c: char| c.is_ascii_digit())
            && !has_leading_zero
            && !number.contains(".e")
            && !number.contains(".E");
        (is_valid && number.parse::<f64>().is_ok()).then_some(Json::Number(number))
    }

    fn array(&mut self, depth: usize) -> Option<Json<'a>> {
        self.take(b'[')?;
        let mut values = Vec::new();
        self.skip_blanks();
        if self.take(b']').is_some() {
            return Some(Json::Array(values));
        }
        loop {
            values.push(self.value(depth + 1)?);
            if self.take(b']').is_some() {
                return Some(Json::Array(values));
            }
            self.take(b',')?;
        }
    }

    fn object(&mut self, depth: usize) -> Option<Json<'a>> {
        self.take(b'{')?;
        let mut pairs = Vec::new();
        if self.take(b'}').is_some() {
            return Some(Json::Object(pairs));
        }
        loop {
            self.skip_blanks();
            let key = self.string()?;
            self.take(b':')?;
            pairs.push((key, self.value(depth + 1)?));
            if self.take(b'}').is_some() {
                return Some(Json::Object(pairs));
            }
            self.take(b',')?;
        }
    }

    fn string(&mut self) -> Option<Cow<'a, str>> {
        let quote = self.peek().filter(|byte| *byte == b'"' || *byte == b'\'')?;
        self.at += 1;
        let mut start = self.at;
        let mut unescaped: Option<String> = None;
        loop {
            match self.peek()? {
                byte if byte == quote => {
                    let rest = &self.text[start..self.at];
                    self.at += 1;
                    return Some(match unescaped {
                        None => Cow::Borrowed(rest),
                        Some(text) => Cow::Owned(text + rest),
                    });
                }
                b'\\' => {
                    let text = unescaped.get_or_insert_default();
                    text.push_str(&self.text[start..self.at]);
                    self.at += 1;
                    let c = self.escape()?;
                    unescaped.get_or_insert_default().push(c);
                    start = self.at;
                }
                0..=0x1f => return None,
                _ => self.at += 1,
            }
        }
    }

    /// The character that an escape means, after its backslash.
    fn escape(&mut self) -> Option<char> {
        let byte = self.peek()?;
        self.at += 1;
        Some(match byte {
            b'"' => '"',
            b'\'' => '\'',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.hex()?;
                if (0xD800..0xDC00).contains(&first) && self.text[self.at..].starts_with("\\u") {
                    self.at += 2;
                    let second = self.hex()?;
                    let is_low = (0xDC00..0xE000).contains(&second);
                    let pair = 0x10000 + ((first - 0xD800) << 10) + second.wrapping_sub(0xDC00);
                    return if is_low { char::from_u32(pair) } else { None };
                }
                char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            _ => return None,
        })
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_they_were_read() {
        for (text, expected) in [
            (r#" {"a" : [1, 2.50,{}], "b":null} "#, r#"{"a":[1,2.50,{}],"b":null}"#),
            (r#"{'a':'x"y'}"#, r#"{"a":"x\"y"}"#),
            (r#""\u00e9\ud83d\ude00\n\/""#, "\"é😀\\n/\""),
            ("99999999999999999999", "99999999999999999999"),
            ("[NaN,-Infinity,true,false]", "[NaN,-Infinity,true,false]"),
            ("-0.5e+3", "-0.5e+3"),
            ("[]", "[]"),
        ] {
            let mut written = String::new();
            Json::parse(text).unwrap().write(&mut written);
            assert_eq!(written, expected);
        }
    }

    #[test]
    fn text_that_is_no_json_is_refused() {
        for text in ["", "bad", "{", "{\"a\"}", "[1,]", "01", "1.", "1e", "\"x", "{\"a\":1}x", "\"\\x\"", "'\\u12", "tru", "{é}"] {
            assert_eq!(Json::parse(text), None, "{text}");
        }
        assert_eq!(Json::parse(&"[".repeat(100_000)), None);
    }
}
