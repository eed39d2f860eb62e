//! Date and time patterns of Spark's options (`dateFormat`, `timestampFormat`): the letters that data files use.

use super::parse::days_from_civil;
use crate::conf::{TimeZone, parse_time_zone};
use crate::show::civil_from_days;
use crate::{Error, Result};

const MICROS_PER_DAY: i64 = 86_400_000_000;
const MONTHS: [&str; 12] = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Literal(String),
    /// A letter and how often it stands.
    Field(char, usize),
    /// `[…]`: may be missing when read; always written.
    Optional(Vec<Part>),
}

/// A pattern such as `yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DatePattern {
    parts: Vec<Part>,
}

/// What a text holds.
#[derive(Debug, Clone, Default)]
struct Fields {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    hour: i64,
    half_day: Option<bool>,
    minute: i64,
    second: i64,
    micros: i64,
    zone: Option<TimeZone>,
}

impl DatePattern {
    /// # Errors
    /// [`Error::Unsupported`] for letters that are not known here.
    pub fn parse(pattern: &str) -> Result<DatePattern> {
        let chars: Vec<char> = pattern.chars().collect();
        let mut at = 0;
        let parts = parse_parts(&chars, &mut at, false).ok_or_else(|| Error::Unsupported {
            feature: format!("date pattern {pattern}"),
        })?;
        Ok(DatePattern { parts })
    }

    pub fn date(&self, text: &str) -> Option<i32> {
        let fields = self.read(text)?;
        i32::try_from(fields.days()?).ok()
    }

    /// Microseconds since the epoch; without a zone in the text, of local time in `zone`.
    pub fn timestamp(&self, text: &str, zone: &TimeZone) -> Option<i64> {
        let fields = self.read(text)?;
        fields.zone.as_ref().unwrap_or(zone).micros_from_local(fields.local_micros()?)
    }

    pub fn local_timestamp(&self, text: &str) -> Option<i64> {
        self.read(text)?.local_micros()
    }

    fn read(&self, text: &str) -> Option<Fields> {
        let mut fields = Fields::default();
        read_parts(&self.parts, text, &mut fields)?.is_empty().then_some(fields)
    }

    /// Writes local microseconds; `offset_s` is what `X` and its kin write.
    pub fn format(&self, local_micros: i64, offset_s: i64, text: &mut String) {
        write_parts(&self.parts, local_micros, offset_s, text);
    }
}

impl Fields {
    fn days(&self) -> Option<i64> {
        days_from_civil(self.year.unwrap_or(1970), self.month.unwrap_or(1), self.day.unwrap_or(1))
    }

    fn local_micros(&self) -> Option<i64> {
        let hour = match self.half_day {
            Some(is_afternoon) => self.hour % 12 + if is_afternoon { 12 } else { 0 },
            None => self.hour,
        };
        if hour > 23 || self.minute > 59 || self.second > 59 {
            return None;
        }
        let seconds = (hour * 60 + self.minute) * 60 + self.second;
        self.days()?.checked_mul(MICROS_PER_DAY)?.checked_add(seconds * 1_000_000 + self.micros)
    }
}

fn parse_parts(chars: &[char], at: &mut usize, is_inside: bool) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    while let Some(&c) = chars.get(*at) {
        match c {
            '\'' => {
                let mut literal = String::new();
                *at += 1;
                loop {
                    match chars.get(*at)? {
                        '\'' if chars.get(*at + 1) == Some(&'\'') => {
                            literal.push('\'');
                            *at += 2;
                        }
                        '\'' => break,
                        other => {
                            literal.push(*other);
                            *at += 1;
                        }
                    }
                }
                *at += 1;
                parts.push(Part::Literal(if literal.is_empty() { "'".into() } else { literal }));
            }
            '[' => {
                *at += 1;
                parts.push(Part::Optional(parse_parts(chars, at, true)?));
            }
            ']' if is_inside => {
                *at += 1;
                return Some(parts);
            }
            'y' | 'u' | 'M' | 'L' | 'd' | 'H' | 'h' | 'a' | 'm' | 's' | 'S' | 'X' | 'x' | 'Z' | 'V' | 'E' => {
                let count = chars[*at..].iter().take_while(|next| **next == c).count();
                *at += count;
                parts.push(Part::Field(c, count));
            }
            c if c.is_ascii_alphabetic() || ['{', '}', '#', ']'].contains(&c) => return None,
            c => {
                *at += 1;
                parts.push(Part::Literal(c.into()));
            }
        }
    }
    (!is_inside).then_some(parts)
}

fn read_parts<'a>(parts: &[Part], mut text: &'a str, fields: &mut Fields) -> Option<&'a str> {
    for (position, part) in parts.iter().enumerate() {
        text = match part {
            Part::Literal(literal) => text.strip_prefix(literal.as_str())?,
            Part::Optional(inner) => {
                let mut attempt = fields.clone();
                match read_parts(inner, text, &mut attempt) {
                    Some(rest) => {
                        *fields = attempt;
                        rest
                    }
                    None => text,
                }
            }
            Part::Field(letter, count) => {
                // Digits that follow directly belong to the next field: `yyyyMMdd`.
                let is_adjacent = matches!(parts.get(position + 1), Some(Part::Field(next, _)) if next.is_alphabetic());
                read_field(*letter, *count, is_adjacent, text, fields)?
            }
        };
    }
    Some(text)
}

fn read_field<'a>(letter: char, count: usize, is_adjacent: bool, text: &'a str, fields: &mut Fields) -> Option<&'a str> {
    let name = |names: &[&str], length: usize| {
        names.iter().enumerate().find_map(|(index, name)| {
            let name = if length == 3 { &name[..3] } else { name };
            let head = text.get(..name.len())?;
            head.eq_ignore_ascii_case(name).then(|| (index as i64 + 1, &text[name.len()..]))
        })
    };
    match letter {
        'M' | 'L' if count >= 3 => {
            let (month, rest) = name(&MONTHS, count)?;
            fields.month = Some(month);
            return Some(rest);
        }
        'E' => return name(&DAYS, if count <= 3 { 3 } else { count }).map(|(_, rest)| rest),
        'a' => {
            let half = text.get(..2)?;
            fields.half_day = Some(match half.to_ascii_uppercase().as_str() {
                "AM" => false,
                "PM" => true,
                _ => return None,
            });
            return Some(&text[2..]);
        }
        'X' | 'x' | 'Z' | 'V' => {
            let end = text.find([' ', ']']).unwrap_or(text.len());
            let (zone, rest) = text.split_at(end);
            let is_compact = zone.len() == 5 && zone.starts_with(['+', '-']);
            let spelled = if is_compact { format!("{}:{}", zone.get(..3)?, zone.get(3..)?) } else { zone.to_string() };
            fields.zone = Some(parse_time_zone(&spelled)?);
            return Some(rest);
        }
        _ => {}
    }
    let (is_negative, digits_text) = match (letter, text.strip_prefix('-')) {
        ('y' | 'u', Some(rest)) => (true, rest),
        _ => (false, text),
    };
    let available = digits_text.bytes().take_while(u8::is_ascii_digit).count();
    let length = match letter {
        'S' => available.min(count.max(6)),
        _ if is_adjacent => available.min(count),
        'y' | 'u' if count >= 4 || count == 1 => available.min(7),
        _ => available.min(count.max(2)),
    };
    if length == 0 || length < count && count > 1 && letter != 'S' {
        return None;
    }
    let (digits, rest) = digits_text.split_at(length);
    if letter == 'S' {
        fields.micros = super::parse::fraction_micros(digits)?;
        return Some(rest);
    }
    let number: i64 = digits.parse().ok()?;
    match letter {
        'y' | 'u' if count == 2 => fields.year = Some(2000 + number),
        'y' | 'u' => fields.year = Some(if is_negative { -number } else { number }),
        'M' | 'L' => fields.month = Some(number),
        'd' => fields.day = Some(number),
        'H' | 'h' => fields.hour = number,
        'm' => fields.minute = number,
        's' => fields.second = number,
        _ => return None,
    }
    Some(rest)
}

fn write_parts(parts: &[Part], local_micros: i64, offset_s: i64, text: &mut String) {
    let days = local_micros.div_euclid(MICROS_PER_DAY);
    let of_day = local_micros.rem_euclid(MICROS_PER_DAY);
    let (year, month, day) = civil_from_days(days);
    let (hour, minute) = (of_day / 3_600_000_000, of_day / 60_000_000 % 60);
    for part in parts {
        match part {
            Part::Literal(literal) => text.push_str(literal),
            Part::Optional(inner) => write_parts(inner, local_micros, offset_s, text),
            Part::Field(letter, count) => {
                let width = *count;
                let month_name = MONTHS[(month as usize).clamp(1, 12) - 1];
                let day_name = DAYS[(days + 3).rem_euclid(7) as usize];
                let piece = match letter {
                    'y' | 'u' if width == 2 => format!("{:02}", year.rem_euclid(100)),
                    'y' | 'u' => format!("{year:0width$}"),
                    'M' | 'L' if width == 3 => month_name[..3].to_string(),
                    'M' | 'L' if width > 3 => month_name.to_string(),
                    'M' | 'L' => format!("{month:0width$}"),
                    'd' => format!("{day:0width$}"),
                    'H' => format!("{hour:0width$}"),
                    'h' => format!("{:0width$}", (hour + 11) % 12 + 1),
                    'a' => if hour < 12 { "AM" } else { "PM" }.to_string(),
                    'm' => format!("{minute:0width$}"),
                    's' => format!("{:0width$}", of_day / 1_000_000 % 60),
                    'S' => format!("{:06}000", of_day % 1_000_000)[..width.min(9)].to_string(),
                    'E' if width <= 3 => day_name[..3].to_string(),
                    'E' => day_name.to_string(),
                    'X' if offset_s == 0 => "Z".to_string(),
                    _ => {
                        let sign = if offset_s < 0 { '-' } else { '+' };
                        let minutes = offset_s.abs() / 60;
                        let colon = if width >= 3 && *letter != 'Z' { ":" } else { "" };
                        format!("{sign}{:02}{colon}{:02}", minutes / 60, minutes % 60)
                    }
                };
                text.push_str(&piece);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono_tz::Tz;

    #[test]
    fn texts_are_read_by_their_pattern() {
        let zone = TimeZone::Region(Tz::UTC);
        for (pattern, text, expected) in [
            ("yyyy/MM/dd", "2020/01/02", Some(1_577_923_200_000_000)),
            ("yyyyMMdd", "20200102", Some(1_577_923_200_000_000)),
            ("dd-MMM-yy h:mm a", "02-Jan-20 3:04 PM", Some(1_577_977_440_000_000)),
            ("yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "2020-01-02T03:04:05.5+01:00", Some(1_577_930_645_500_000)),
            ("yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "2020-01-02T03:04:05", Some(1_577_934_245_000_000)),
            ("yyyy/MM/dd", "2020-01-02", None),
            ("yyyy/MM/dd", "2020/1/2", None),
            ("yyyy/M/d", "2020/1/2", Some(1_577_923_200_000_000)),
            ("yyyy/MM/dd", "2020/02/30", None),
            ("MM", "é", None),
        ] {
            assert_eq!(DatePattern::parse(pattern).unwrap().timestamp(text, &zone), expected, "{pattern} {text}");
        }
        assert!(DatePattern::parse("QQQ").is_err());
        assert!(DatePattern::parse("yyyy['x").is_err());
    }

    #[test]
    fn values_are_written_by_their_pattern() {
        for (pattern, offset_s, expected) in [
            ("yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", 0, "2020-01-02T15:04:05.123Z"),
            ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", -18_000, "2020-01-02T15:04:05.123-05:00"),
            ("E d MMMM yy, h a", 0, "Thu 2 January 20, 3 PM"),
        ] {
            let mut text = String::new();
            DatePattern::parse(pattern).unwrap().format(1_577_977_445_123_000, offset_s, &mut text);
            assert_eq!(text, expected);
        }
    }
}
