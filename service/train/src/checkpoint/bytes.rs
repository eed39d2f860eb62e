//! Numbers, texts and doubles as bytes, little-endian, each list after its length. Doubles keep their bits.

#[derive(Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    pub fn number(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub fn doubles(&mut self, values: &[f64]) {
        self.number(values.len() as u64);
        self.0.reserve(8 * values.len());
        for value in values {
            self.0.extend_from_slice(&value.to_bits().to_le_bytes());
        }
    }

    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Reads what a [`Writer`] wrote. `None` is returned for bytes that it cannot have written.
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.number()?).ok()?;
        self.take(count)
    }

    pub fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    pub fn doubles(&mut self) -> Option<Vec<f64>> {
        let count = usize::try_from(self.number()?).ok()?;
        let bytes = self.take(count.checked_mul(8)?)?;
        bytes.chunks_exact(8).map(|bits| Some(f64::from_bits(u64::from_le_bytes(bits.try_into().ok()?)))).collect()
    }

    pub fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }
}
