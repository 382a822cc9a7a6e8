//! A checksum at the end of a text file, over all that stands before it.
//!
//! ```text
//! body  open  SHA-256(body)  close
//! ```
//!
//! `open` and `close` make the checksum a part of the file that its readers expect: a comment of TOML or HTML, or the
//! last entry of a JSON object. Every changed bit and every cut is noticed.

use sha2::{Digest, Sha256};

use super::journal::hexadecimal;

/// How a checksum is written into a kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seal {
    open: &'static str,
    close: &'static str,
    /// What ends a text without a checksum, and has to come after it.
    brackets: &'static str,
}

impl Seal {
    /// `config.toml`.
    pub const TOML: Self = Self { open: "\n# SHA-256 of all above this line: ", close: "\n", brackets: "" };
    /// `report.html`.
    pub const HTML: Self = Self { open: "\n<!-- SHA-256 of all above this line: ", close: " -->\n", brackets: "" };
    /// An object of JSON, indented by two.
    pub const JSON: Self = Self { open: ",\n  \"sha256\": \"", close: "\"\n}\n", brackets: "\n}" };
    /// An object of JSON whose last entry is an object that gets the checksum, indented by two.
    pub const NESTED_JSON: Self = Self { open: ",\n    \"sha256\": \"", close: "\"\n  }\n}\n", brackets: "\n  }\n}" };

    /// The text with its checksum. Of JSON, the brackets that close it make room for it.
    ///
    /// ```
    /// use limitpoint::experiments::Seal;
    /// let sealed = Seal::TOML.close("x = 1\n");
    /// assert_eq!(Seal::TOML.open(&sealed), Some("x = 1\n"));
    /// assert_eq!(Seal::TOML.open(&sealed.replace('1', "2")), None);
    /// ```
    pub fn close(&self, text: &str) -> String {
        let body = if self.brackets.is_empty() { None } else { text.trim_end().strip_suffix(self.brackets) };
        let body = body.unwrap_or(text);
        format!("{body}{}{}{}", self.open, sum(body.as_bytes()), self.close)
    }

    /// The text before the checksum, if that is right.
    pub fn open<'a>(&self, sealed: &'a str) -> Option<&'a str> {
        let rest = sealed.strip_suffix(self.close)?;
        let (body, stated) = rest.split_at_checked(rest.len().checked_sub(64)?)?;
        let body = body.strip_suffix(self.open)?;
        (sum(body.as_bytes()) == stated).then_some(body)
    }
}

/// SHA-256 of bytes, in hexadecimal.
pub(super) fn sum(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::new_with_prefix(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let nested = "{\n  \"a\": 1,\n  \"b\": {\n    \"c\": 2.5\n  }\n}\n";
        let flat = "{\n  \"a\": \"}\"\n}";
        for (seal, text) in
            [(Seal::TOML, "a = 1\n"), (Seal::HTML, "<p>π</p>"), (Seal::JSON, flat), (Seal::NESTED_JSON, nested)]
        {
            let sealed = seal.close(text);
            let body = seal.open(&sealed).unwrap();
            assert!(text.starts_with(body) && sealed.starts_with(body));
            for place in 0..sealed.len() {
                assert!(sealed.get(..place).is_none_or(|cut| seal.open(cut).is_none()), "{place} of {sealed}");
                for bit in 0..8 {
                    let mut bytes = sealed.clone().into_bytes();
                    bytes[place] ^= 1 << bit;
                    let accepted = String::from_utf8(bytes).is_ok_and(|text| seal.open(&text).is_some());
                    assert!(!accepted, "bit {bit} of byte {place} of {sealed}");
                }
            }
        }
        let json: serde_json::Value = serde_json::from_str(&Seal::NESTED_JSON.close(nested)).unwrap();
        assert_eq!(json["b"]["sha256"].as_str().map(str::len), Some(64));
        let json: serde_json::Value = serde_json::from_str(&Seal::JSON.close(flat)).unwrap();
        assert_eq!((json["a"].as_str(), json["sha256"].as_str().map(str::len)), (Some("}"), Some(64)));
        let comment = Seal::TOML.close("a = 1\n");
        assert_eq!(toml::from_str::<toml::Table>(&comment).unwrap().len(), 1);
    }
}
