//! The secret that a job's ranks share with the coordinator and with each other.

use std::fmt;
use std::hint::black_box;

use rand::TryRngCore;
use rand::rngs::OsRng;

/// 32 random bytes, never shown.
#[derive(Clone, Copy)]
pub struct Secret([u8; 32]);

impl Secret {
    /// Draws a secret from the operating system.
    ///
    /// # Errors
    /// The operating system has no random bytes to give.
    pub fn random() -> std::io::Result<Secret> {
        let mut bytes = [0u8; 32];
        OsRng.try_fill_bytes(&mut bytes).map_err(std::io::Error::other)?;
        Ok(Secret(bytes))
    }

    pub fn from_bytes(bytes: [u8; 32]) -> Secret {
        Secret(bytes)
    }

    pub fn bytes(&self) -> [u8; 32] {
        self.0
    }

    /// Compares in a time that depends on nothing but the length, which is no secret.
    pub fn matches(&self, presented: &[u8]) -> bool {
        if presented.len() != self.0.len() {
            return false;
        }
        let mut difference = 0u8;
        for (ours, theirs) in self.0.iter().zip(presented) {
            difference = black_box(difference | (ours ^ theirs));
        }
        difference == 0
    }

    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub fn from_hex(text: &str) -> Option<Secret> {
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        let mut bytes = [0u8; 32];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
        }
        Some(Secret(bytes))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_survives_the_environment_and_matches_only_itself() {
        let secret = Secret::random().unwrap();
        let other = Secret::random().unwrap();
        let read = Secret::from_hex(&secret.to_hex()).unwrap();
        assert!(secret.matches(&read.bytes()));
        assert!(!secret.matches(&other.bytes()));
        assert!(!secret.matches(&secret.bytes()[..31]));
        assert!(Secret::from_hex("abc").is_none());
        assert!(Secret::from_hex(&"zz".repeat(32)).is_none());
    }

    #[test]
    fn a_secret_is_never_shown() {
        assert_eq!(format!("{:?}", Secret::from_bytes([7; 32])), "Secret(..)");
    }
}
