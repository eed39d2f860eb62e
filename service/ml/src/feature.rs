//! Feature operators, a file each.

pub mod binarizer;
pub mod bucketizer;
pub mod count_vectorizer;
pub mod dct;
pub mod elementwise_product;
pub mod feature_hasher;
pub mod hashing_tf;
pub mod idf;
pub mod imputer;
pub mod index_to_string;
pub mod interaction;
pub mod max_abs_scaler;
pub mod min_max_scaler;
pub mod n_gram;
pub mod normalizer;
pub mod one_hot_encoder;
pub mod polynomial_expansion;
pub mod quantile_discretizer;
pub mod regex_tokenizer;
pub mod robust_scaler;
pub mod standard_scaler;
pub mod string_indexer;
pub mod tokenizer;
pub mod variance_threshold_selector;
pub mod vector_assembler;
pub mod vector_slicer;

mod columns;
mod extremes;
mod murmur3;
mod quantiles;
mod vectors;
mod words;

use serde::Serialize;
use serde::de::DeserializeOwned;
use train::RankContext;

/// Every rank's part, in the order of ranks.
fn gather<T: Serialize + DeserializeOwned>(
    program: &'static str,
    ctx: &RankContext<'_>,
    part: &T,
) -> train::Result<Vec<T>> {
    let spec = |source| train::Error::Spec { program, source };
    let bytes = serde_json::to_vec(part).map_err(spec)?;
    let parts = ctx.group.all_gather_bytes(&bytes)?;
    parts.iter().map(|bytes| serde_json::from_slice(bytes).map_err(spec)).collect()
}

/// What rank 0 returns; the other ranks return nothing.
fn on_rank_0<T: Serialize>(program: &'static str, ctx: &RankContext<'_>, fitted: &T) -> train::Result<Vec<u8>> {
    if ctx.rank() != 0 {
        return Ok(Vec::new());
    }
    serde_json::to_vec(fitted).map_err(|source| train::Error::Spec { program, source })
}

/// What [`on_rank_0`] wrote.
fn from_rank_0<T: DeserializeOwned>(program: &'static str, fitted: &[u8]) -> crate::Result<T> {
    Ok(serde_json::from_slice(fitted).map_err(|source| train::Error::Spec { program, source })?)
}
