//! Reads JSON and writes its canonical text in one pass.
//!
//! It does the work of [`super::parse`] and [`super::to_string`] for most texts. It leaves errors and rare texts to them. Parts of the
//! text that are canonical already are copied together, and not token by token.

use super::{MAX_DEPTH, number, writer};
use serde_json::{Map, Value};
use std::fmt::Write;
use std::ops::Range;

/// Reads a JSON text. Returns its value and its canonical text: those of [`super::parse`] and [`super::to_string`].
///
/// Returns `None` if the text has no canonical form, is nested deeper than [`MAX_DEPTH`], or has a number with an exponent or a character
/// whose escape is a pair of surrogates.
pub(super) fn read(text: &str) -> Option<(Value, String)> {
    let written = String::with_capacity(text.len());
    let mut reader = Reader { text, at: 0, written, copied: 0, fields: Vec::new() };
    let value = reader.read_value(MAX_DEPTH)?;
    if reader.peek().is_some() {
        return None;
    }
    reader.copy()?;
    Some((value, reader.written))
}

struct Reader<'a> {
    text: &'a str,
    /// The position of the next byte.
    at: usize,
    /// The canonical text of everything before [`Reader::copied`].
    written: String,
    /// The position before which everything is written. The text from there to the next byte is canonical.
    copied: usize,
    /// The fields of the objects whose end is not read yet.
    fields: Vec<Field>,
}

struct Field {
    name: String,
    value: Value,
    /// The place of the name and the value in the canonical text.
    place: Range<usize>,
}

impl Reader<'_> {
    /// Returns the length of the canonical text of everything before the next byte.
    fn length(&self) -> usize {
        self.written.len() + self.at - self.copied
    }

    /// Writes the part of the text that is read and not written yet.
    fn copy(&mut self) -> Option<()> {
        self.written.push_str(self.text.get(self.copied..self.at)?);
        self.copied = self.at;
        Some(())
    }

    /// Continues at a position. The text before it is written in another form, or has none.
    fn skip_to(&mut self, at: usize) {
        (self.at, self.copied) = (at, at);
    }

    /// Skips blanks. Returns the next byte.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let next = *rest.first()?;
        if !is_blank(next) {
            return Some(next);
        }
        self.copy()?;
        self.skip_to(self.at + rest.iter().take_while(|byte| is_blank(**byte)).count());
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips blanks and a byte. Returns whether the byte is there.
    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Reads a value, below which `levels_left` more levels are allowed.
    fn read_value(&mut self, levels_left: usize) -> Option<Value> {
        match self.peek()? {
            b'"' => self.read_string().map(Value::String),
            b'{' => self.read_object(levels_left.checked_sub(1)?),
            b'[' => self.read_array(levels_left.checked_sub(1)?),
            b't' => self.read_word("true", Value::Bool(true)),
            b'f' => self.read_word("false", Value::Bool(false)),
            b'n' => self.read_word("null", Value::Null),
            _ => self.read_number(),
        }
    }

    fn read_word(&mut self, word: &str, value: Value) -> Option<Value> {
        let is_next = self.text.get(self.at..)?.starts_with(word);
        self.at += word.len();
        is_next.then_some(value)
    }

    fn read_number(&mut self) -> Option<Value> {
        let literal = number::number_token(self.text.get(self.at..)?);
        let number = number::read(literal)?;
        let end = self.at + literal.len();
        if number::is_canonical(literal) {
            self.at = end;
        } else {
            self.copy()?;
            // This cannot fail: the output is memory.
            let _ = write!(self.written, "{number}");
            self.skip_to(end);
        }
        Some(Value::Number(number))
    }

    /// Reads a string, whose quote is the next byte.
    fn read_string(&mut self) -> Option<String> {
        let start = self.at + 1;
        let end = self.plain_end(start)?;
        if self.text.as_bytes().get(end) != Some(&b'"') {
            return self.read_escaped_string(start);
        }
        self.at = end + 1;
        self.text.get(start..end).map(str::to_owned)
    }

    /// Returns the position of the first quote, backslash or control character.
    fn plain_end(&self, start: usize) -> Option<usize> {
        Some(start + writer::plain_length(self.text.as_bytes().get(start..)?))
    }

    /// Reads a string, whose quote is the next byte, from the position after the quote.
    fn read_escaped_string(&mut self, mut start: usize) -> Option<String> {
        self.copy()?;
        let mut string = String::new();
        loop {
            let end = self.plain_end(start)?;
            string.push_str(self.text.get(start..end)?);
            let (byte, rest) = self.text.as_bytes().get(end..)?.split_first()?;
            match byte {
                b'"' => {
                    writer::write_string(&string, &mut self.written);
                    self.skip_to(end + 1);
                    return Some(string);
                }
                b'\\' => {
                    let (escaped, length) = read_escape(rest)?;
                    string.push(escaped);
                    start = end + 1 + length;
                }
                _ => return None,
            }
        }
    }

    /// Reads an array, whose bracket is the next byte.
    fn read_array(&mut self, levels_left: usize) -> Option<Value> {
        self.at += 1;
        let mut items = Vec::new();
        let mut is_end = self.take(b']');
        while !is_end {
            items.push(self.read_value(levels_left)?);
            is_end = self.read_separator(b']')?;
        }
        Some(Value::Array(items))
    }

    /// Reads what follows an item or a field: a comma, or the end of the array or the object. Returns whether it is the end.
    fn read_separator(&mut self, end: u8) -> Option<bool> {
        let byte = self.peek()?;
        self.at += 1;
        if byte == b',' {
            return Some(false);
        }
        (byte == end).then_some(true)
    }

    /// Reads an object, whose bracket is the next byte.
    fn read_object(&mut self, levels_left: usize) -> Option<Value> {
        let (first, start) = (self.fields.len(), self.length());
        self.at += 1;
        let mut is_end = self.take(b'}');
        while !is_end {
            let field = self.read_field(levels_left)?;
            self.fields.push(field);
            is_end = self.read_separator(b'}')?;
        }
        if !are_ascending(self.fields.get(first..)?) {
            self.sort_fields(first, start)?;
        }
        let mut object = Map::new();
        for Field { name, value, .. } in self.fields.drain(first..) {
            object.insert(name, value);
        }
        Some(Value::Object(object))
    }

    fn read_field(&mut self, levels_left: usize) -> Option<Field> {
        if self.peek()? != b'"' {
            return None;
        }
        let start = self.length();
        let name = self.read_string()?;
        if !self.take(b':') {
            return None;
        }
        let value = self.read_value(levels_left)?;
        Some(Field { name, value, place: start..self.length() })
    }

    /// Sorts the fields from `first`, whose object is written from `start`. Returns `None` if two of them have the same name.
    fn sort_fields(&mut self, first: usize, start: usize) -> Option<()> {
        self.copy()?;
        let fields = self.fields.get_mut(first..)?;
        fields.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        if !are_ascending(fields) {
            return None;
        }
        let mut sorted = String::with_capacity(self.written.len() - start);
        for (at, field) in fields.iter().enumerate() {
            sorted.push(if at == 0 { '{' } else { ',' });
            sorted.push_str(self.written.get(field.place.clone())?);
        }
        sorted.push('}');
        self.written.truncate(start);
        self.written.push_str(&sorted);
        Some(())
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r')
}

/// Returns whether each field has a greater name than the one before.
fn are_ascending(fields: &[Field]) -> bool {
    fields.is_sorted_by(|before, after| before.name < after.name)
}

/// Reads the part of an escape after its backslash. Returns the character, and the length of the part.
fn read_escape(text: &[u8]) -> Option<(char, usize)> {
    let (kind, rest) = text.split_first()?;
    let character = match kind {
        b'"' | b'\\' | b'/' => char::from(*kind),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let digits = rest.get(..4)?.iter();
            let code = digits
                .map(|digit| char::from(*digit).to_digit(16))
                .try_fold(0, |code, digit| Some(code << 4 | digit?))?;
            return Some((char::from_u32(code)?, 5));
        }
        _ => return None,
    };
    Some((character, 1))
}

#[cfg(test)]
mod tests;
