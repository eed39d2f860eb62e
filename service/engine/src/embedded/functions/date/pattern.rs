//! Spark's patterns of dates and times (`yyyy-MM-dd HH:mm:ss`), to write and to read.

use chrono::{Datelike, NaiveDate, NaiveDateTime, NaiveTime, Timelike};

use crate::embedded::expression::zone::Zone;
use crate::{Error, Result};

/// A pattern taken apart: letters with their count, and texts between.
#[derive(Debug, Clone)]
pub struct Pattern {
    items: Vec<Item>,
}

#[derive(Debug, Clone)]
enum Item {
    Letter(char, usize),
    Text(String),
    /// What stands in brackets may be missing when read.
    Optional(Vec<Item>),
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

impl Pattern {
    /// # Errors
    /// [`Error::Unsupported`] for a letter that is not handled, a row error for a pattern that is none.
    pub fn parse(text: &str) -> Result<Pattern> {
        let mut characters = text.chars().peekable();
        let items = Pattern::items(text, &mut characters, false)?;
        Ok(Pattern { items })
    }

    fn items(
        whole: &str,
        characters: &mut std::iter::Peekable<std::str::Chars<'_>>,
        nested: bool,
    ) -> Result<Vec<Item>> {
        let mut items = Vec::new();
        while let Some(character) = characters.next() {
            match character {
                '\'' => {
                    let mut text = String::new();
                    loop {
                        match characters.next() {
                            Some('\'') if characters.peek() == Some(&'\'') => {
                                characters.next();
                                text.push('\'');
                            }
                            Some('\'') => break,
                            Some(character) => text.push(character),
                            None => return Err(invalid(whole)),
                        }
                    }
                    items.push(Item::Text(if text.is_empty() { "'".into() } else { text }));
                }
                '[' => items.push(Item::Optional(Pattern::items(whole, characters, true)?)),
                ']' if nested => return Ok(items),
                'A'..='Z' | 'a'..='z' => {
                    let mut count = 1;
                    while characters.peek() == Some(&character) {
                        characters.next();
                        count += 1;
                    }
                    if !"GyuMLdDQqEaHhKkmsSVzOXxZ".contains(character) {
                        return Err(Error::Unsupported {
                            feature: format!("letter {character} in the pattern {whole}"),
                        });
                    }
                    items.push(Item::Letter(character, count));
                }
                character => items.push(Item::Text(character.into())),
            }
        }
        if nested { Err(invalid(whole)) } else { Ok(items) }
    }

    /// Writes what a clock shows in a zone at an instant.
    pub fn format(&self, local: NaiveDateTime, zone: &Zone, instant: i64) -> Result<String> {
        let mut out = String::new();
        write(&self.items, local, zone, instant, &mut out)?;
        Ok(out)
    }

    /// Reads a text; the zone is that which the text names.
    pub fn read(&self, text: &str) -> Option<(NaiveDateTime, Option<Zone>)> {
        let mut fields = Fields::default();
        let rest = read(&self.items, text, &mut fields)?;
        if !rest.is_empty() {
            return None;
        }
        fields.finish()
    }
}

fn invalid(pattern: &str) -> Error {
    Error::Row {
        class: "INVALID_DATETIME_PATTERN.ILLEGAL_CHARACTER",
        message: format!("Unrecognized datetime pattern: {pattern}."),
        parameters: vec![("pattern", pattern.into())],
    }
}

fn write(items: &[Item], local: NaiveDateTime, zone: &Zone, instant: i64, out: &mut String) -> Result<()> {
    for item in items {
        match item {
            Item::Text(text) => out.push_str(text),
            Item::Optional(items) => write(items, local, zone, instant, out)?,
            Item::Letter(letter, count) => out.push_str(&field(*letter, *count, local, zone, instant)),
        }
    }
    Ok(())
}

fn field(letter: char, count: usize, local: NaiveDateTime, zone: &Zone, instant: i64) -> String {
    let padded = |number: i64| format!("{number:0count$}");
    let name = |name: &str| if count >= 4 { name.to_string() } else { name[..3].to_string() };
    let hour = local.hour();
    match letter {
        'G' => {
            if local.year() > 0 {
                "AD".into()
            } else {
                "BC".into()
            }
        }
        'y' | 'u' if count == 2 => format!("{:02}", local.year().rem_euclid(100)),
        'y' | 'u' => padded(local.year().into()),
        'M' | 'L' if count >= 3 => name(MONTHS[local.month0() as usize]),
        'M' | 'L' => padded(local.month().into()),
        'd' => padded(local.day().into()),
        'D' => padded(local.ordinal().into()),
        'Q' | 'q' => {
            let quarter = local.month0() / 3 + 1;
            match count {
                3 => format!("Q{quarter}"),
                4 => format!("{}{} quarter", quarter, ["st", "nd", "rd", "th"][quarter as usize - 1]),
                _ => padded(quarter.into()),
            }
        }
        'E' => name(DAYS[local.weekday().num_days_from_monday() as usize]),
        'a' => {
            if hour < 12 {
                "AM".into()
            } else {
                "PM".into()
            }
        }
        'H' => padded(hour.into()),
        'k' => padded(if hour == 0 { 24 } else { hour.into() }),
        'K' => padded((hour % 12).into()),
        'h' => padded(if hour % 12 == 0 { 12 } else { (hour % 12).into() }),
        'm' => padded(local.minute().into()),
        's' => padded(local.second().into()),
        'S' => format!("{:09}", local.nanosecond()).chars().take(count).collect(),
        'V' => zone_id(zone),
        'z' => zone_name(zone, instant),
        'O' => {
            let offset = zone.offset_seconds(instant);
            if offset == 0 { "GMT".into() } else { format!("GMT{}", offset_text(offset, true, true)) }
        }
        'X' if zone.offset_seconds(instant) == 0 => "Z".into(),
        'X' | 'x' => match count {
            1 => {
                let text = offset_text(zone.offset_seconds(instant), false, false);
                text.strip_suffix("00").map_or(text.clone(), str::to_string)
            }
            2 | 4 => offset_text(zone.offset_seconds(instant), false, false),
            _ => offset_text(zone.offset_seconds(instant), true, false),
        },
        'Z' if count == 4 => {
            let offset = zone.offset_seconds(instant);
            if offset == 0 { "GMT".into() } else { format!("GMT{}", offset_text(offset, true, false)) }
        }
        'Z' if count == 5 => {
            let offset = zone.offset_seconds(instant);
            if offset == 0 { "Z".into() } else { offset_text(offset, true, false) }
        }
        _ => offset_text(zone.offset_seconds(instant), false, false),
    }
}

fn offset_text(seconds: i32, with_colon: bool, short_hour: bool) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.unsigned_abs() / 60;
    let (hour, minute) = (minutes / 60, minutes % 60);
    if short_hour {
        return if minute == 0 { format!("{sign}{hour}") } else { format!("{sign}{hour}:{minute:02}") };
    }
    if with_colon { format!("{sign}{hour:02}:{minute:02}") } else { format!("{sign}{hour:02}{minute:02}") }
}

fn zone_id(zone: &Zone) -> String {
    match zone {
        Zone::Named(zone) => zone.name().into(),
        Zone::Fixed(offset) => offset.to_string(),
    }
}

fn zone_name(zone: &Zone, instant: i64) -> String {
    match (zone, chrono::DateTime::from_timestamp_micros(instant)) {
        (Zone::Named(zone), Some(instant)) => instant.with_timezone(zone).format("%Z").to_string(),
        _ => zone_id(zone),
    }
}

#[derive(Default)]
struct Fields {
    year: Option<i32>,
    month: Option<u32>,
    day: Option<u32>,
    day_of_year: Option<u32>,
    hour: Option<u32>,
    half: Option<u32>,
    minute: u32,
    second: u32,
    nanos: u32,
    zone: Option<Zone>,
}

impl Fields {
    fn finish(self) -> Option<(NaiveDateTime, Option<Zone>)> {
        let year = self.year.unwrap_or(1970);
        let date = match self.day_of_year {
            Some(day) => NaiveDate::from_yo_opt(year, day)?,
            None => NaiveDate::from_ymd_opt(year, self.month.unwrap_or(1), self.day.unwrap_or(1))?,
        };
        let hour = match (self.hour.unwrap_or(0), self.half) {
            (hour, Some(half)) if hour <= 12 => hour % 12 + 12 * half,
            (hour, _) => hour,
        };
        let time = NaiveTime::from_hms_nano_opt(hour, self.minute, self.second, self.nanos)?;
        Some((date.and_time(time), self.zone))
    }
}

fn read<'t>(items: &[Item], mut text: &'t str, fields: &mut Fields) -> Option<&'t str> {
    for (position, item) in items.iter().enumerate() {
        text = match item {
            Item::Text(expected) => text.strip_prefix(expected.as_str())?,
            Item::Optional(items) => read(items, text, fields).unwrap_or(text),
            Item::Letter(letter, count) => {
                // Digits that touch the next field's end where its pattern says.
                let is_adjacent = matches!(items.get(position + 1), Some(Item::Letter(next, _)) if next.is_ascii_alphabetic() && !matches!(next, 'a' | 'E' | 'z' | 'V' | 'X' | 'x' | 'Z' | 'O'));
                read_field(*letter, *count, is_adjacent, text, fields)?
            }
        };
    }
    Some(text)
}

fn number(text: &str, min: usize, max: usize) -> Option<(u32, &str)> {
    let count = text.bytes().take(max).take_while(u8::is_ascii_digit).count();
    if count < min { None } else { Some((text[..count].parse().ok()?, &text[count..])) }
}

fn named<'t>(names: &[&str], is_full: bool, text: &'t str) -> Option<(u32, &'t str)> {
    for (position, name) in names.iter().enumerate() {
        let name = if is_full { name } else { &name[..3] };
        if text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)) {
            return Some((position as u32, &text[name.len()..]));
        }
    }
    None
}

fn read_field<'t>(
    letter: char,
    count: usize,
    is_adjacent: bool,
    text: &'t str,
    fields: &mut Fields,
) -> Option<&'t str> {
    let widest = |usual: usize| if is_adjacent || count > 1 { count } else { usual };
    let two = |text: &'t str| number(text, count.min(2), if count == 1 && !is_adjacent { 2 } else { count });
    Some(match letter {
        'G' => text.get(2..)?,
        'y' | 'u' if count == 2 => {
            let (year, rest) = number(text, 2, 2)?;
            fields.year = Some(2000 + year as i32);
            rest
        }
        'y' | 'u' => {
            let (is_negative, digits) = match text.strip_prefix('-') {
                Some(digits) => (true, digits),
                None => (false, text),
            };
            let (year, rest) = number(digits, count, if is_adjacent { count } else { 7.max(count) })?;
            fields.year = Some(if is_negative { -(year as i32) } else { year as i32 });
            rest
        }
        'M' | 'L' if count >= 3 => {
            let (month, rest) = named(&MONTHS, count >= 4, text)?;
            fields.month = Some(month + 1);
            rest
        }
        'M' | 'L' => {
            let (month, rest) = two(text)?;
            fields.month = Some(month);
            rest
        }
        'd' => {
            let (day, rest) = two(text)?;
            fields.day = Some(day);
            rest
        }
        'D' => {
            let (day, rest) = number(text, count, widest(3).max(3))?;
            fields.day_of_year = Some(day);
            rest
        }
        'E' => named(&DAYS, count >= 4, text)?.1,
        'a' => {
            let half = text.get(..2)?;
            fields.half = Some(if half.eq_ignore_ascii_case("PM") {
                1
            } else if half.eq_ignore_ascii_case("AM") {
                0
            } else {
                return None;
            });
            &text[2..]
        }
        'H' | 'h' | 'K' | 'k' => {
            let (hour, rest) = two(text)?;
            let limit = match letter {
                'H' => 0..24,
                'h' => 1..13,
                'K' => 0..12,
                _ => 1..25,
            };
            if !limit.contains(&hour) {
                return None;
            }
            fields.hour = Some(hour % if letter == 'k' { 24 } else { 25 });
            if matches!(letter, 'h' | 'K') && fields.half.is_none() {
                fields.hour = Some(hour % 12);
            }
            rest
        }
        'm' => {
            let (minute, rest) = two(text)?;
            fields.minute = minute;
            rest
        }
        's' => {
            let (second, rest) = two(text)?;
            fields.second = second;
            rest
        }
        'S' => {
            let digits = text.bytes().take(count).take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                return None;
            }
            fields.nanos = format!("{:0<9}", &text[..digits]).parse().ok()?;
            &text[digits..]
        }
        'X' | 'x' | 'Z' | 'z' | 'V' | 'O' => {
            let end = text
                .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | ':' | '/' | '_')))
                .unwrap_or(text.len());
            let name = &text[..end];
            let spread = match name.as_bytes() {
                [sign @ (b'+' | b'-'), digits @ ..] if digits.len() == 4 && digits.iter().all(u8::is_ascii_digit) => {
                    format!("{}{}:{}", *sign as char, &name[1..3], &name[3..5])
                }
                _ => name.to_string(),
            };
            fields.zone = Some(Zone::parse(&spread).ok()?);
            &text[end..]
        }
        _ => {
            let (_, rest) = number(text, 1, widest(2))?;
            rest
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(text: &str) -> NaiveDateTime {
        NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f").unwrap()
    }

    #[test]
    fn patterns_write_as_spark_does() {
        let zone = Zone::parse("+02:00").unwrap();
        let at = local("2024-03-05 15:04:09.123456");
        for (pattern, expected) in [
            ("yyyy-MM-dd HH:mm:ss.SSS", "2024-03-05 15:04:09.123"),
            ("d MMM yy, h:mm a", "5 Mar 24, 3:04 PM"),
            ("EEEE D 'o''clock'", "Tuesday 65 o'clock"),
            ("yyyy-MM-dd'T'HH:mm:ssXXX", "2024-03-05T15:04:09+02:00"),
            ("QQQ", "Q1"),
        ] {
            assert_eq!(Pattern::parse(pattern).unwrap().format(at, &zone, 0).unwrap(), expected, "{pattern}");
        }
    }

    #[test]
    fn patterns_read_what_they_write() {
        for (pattern, text, expected) in [
            ("yyyy-MM-dd HH:mm:ss", "2024-03-05 15:04:09", Some("2024-03-05 15:04:09")),
            ("yyyyMMdd", "20240305", Some("2024-03-05 00:00:00")),
            ("d/M/yyyy", "5/3/2024", Some("2024-03-05 00:00:00")),
            ("MMM d, yyyy h:mm a", "Mar 5, 2024 3:04 PM", Some("2024-03-05 15:04:00")),
            ("yyyy-MM-dd", "2024-3-5", None),
            ("yyyy-MM-dd", "2024-02-30", None),
        ] {
            let found = Pattern::parse(pattern).unwrap().read(text).map(|(local, _)| local);
            assert_eq!(found, expected.map(local), "{text} by {pattern}");
        }
    }
}
