//! Doubles in JSON by their bits: exact, infinities included. For `#[serde(with = "…")]`.

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

/// Keeps one double.
///
/// # Errors
/// What the serializer fails with, here and below.
pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    value.to_bits().serialize(serializer)
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    u64::deserialize(deserializer).map(f64::from_bits)
}

/// Many doubles.
pub mod many {
    use super::{Deserialize, Deserializer, Serializer};

    /// # Errors
    /// What the serializer fails with.
    pub fn serialize<S: Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(|v| v.to_bits()))
    }

    /// # Errors
    /// What the deserializer fails with.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
        Ok(Vec::<u64>::deserialize(deserializer)?.into_iter().map(f64::from_bits).collect())
    }
}

/// Many doubles, or none at all.
pub mod optional {
    use super::{Deserialize, Deserializer, Serialize, Serializer};

    /// # Errors
    /// What the serializer fails with.
    pub fn serialize<S: Serializer>(values: &Option<Vec<f64>>, serializer: S) -> Result<S::Ok, S::Error> {
        let bits = values.as_ref().map(|values| values.iter().map(|v| v.to_bits()).collect::<Vec<u64>>());
        bits.serialize(serializer)
    }

    /// # Errors
    /// What the deserializer fails with.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<f64>>, D::Error> {
        let bits = Option::<Vec<u64>>::deserialize(deserializer)?;
        Ok(bits.map(|bits| bits.into_iter().map(f64::from_bits).collect()))
    }
}

/// One double, or none.
pub mod maybe {
    use super::{Deserialize, Deserializer, Serialize, Serializer};

    /// # Errors
    /// What the serializer fails with.
    pub fn serialize<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
        value.map(f64::to_bits).serialize(serializer)
    }

    /// # Errors
    /// What the deserializer fails with.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(f64::from_bits))
    }
}
