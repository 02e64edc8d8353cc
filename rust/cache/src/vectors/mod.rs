//! The embedding of a sentence as 256 numbers: the mean of its tokens' vectors, as shipped in the `wordllama` wheel.
//!
//! It needs two files: a table of half-precision numbers (safetensors) and the vocabulary with its merges. Both are
//! read once from the given paths. Nothing is downloaded.
//!
//! `tokens` splits a text into tokens, and `half` reads half-precision numbers.

mod half;
mod tokens;

use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::{fs, io};
use tokens::Vocabulary;

/// The number of elements of a vector.
pub const DIMENSIONS: usize = 256;
/// The number of tokens that are used. Further tokens of a longer text are ignored.
const MAX_TOKENS: usize = 512;

/// A unit vector in steps of 2^-14.
pub type Vector = [i16; DIMENSIONS];
/// The value 1 in these steps.
pub const ONE: f32 = 16_384.0;

/// The paths of the files.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct VectorFiles {
    pub weights: PathBuf,
    pub tokenizer: PathBuf,
}

/// The table and the vocabulary.
#[derive(Debug)]
pub struct Vectors {
    vocabulary: Vocabulary,
    /// Half precision, little endian, one row per token.
    table: Vec<u8>,
    start: usize,
}

/// The files are missing or invalid.
#[derive(Debug, thiserror::Error)]
pub enum VectorsError {
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
    #[error("{0}: not a table of 256 half-precision numbers for each token")]
    Table(PathBuf),
    #[error("{0}: not a vocabulary with merges: {1}")]
    Vocabulary(PathBuf, serde_json::Error),
}

#[derive(Deserialize)]
struct Header {
    #[serde(rename = "embedding.weight")]
    table: Tensor,
}

#[derive(Deserialize)]
struct Tensor {
    dtype: String,
    shape: (usize, usize),
    data_offsets: (usize, usize),
}

impl Vectors {
    pub fn load(files: &VectorFiles) -> Result<Self, VectorsError> {
        let read = |path: &Path| fs::read(path).map_err(|error| VectorsError::File(path.to_owned(), error));
        let vocabulary = Vocabulary::parse(&read(&files.tokenizer)?)
            .map_err(|error| VectorsError::Vocabulary(files.tokenizer.clone(), error))?;
        let table = read(&files.weights)?;
        let start = table_start(&table, vocabulary.len()).ok_or_else(|| VectorsError::Table(files.weights.clone()))?;
        Ok(Self { vocabulary, table, start })
    }

    /// The unit vector of a text; `None` if the text has no tokens.
    pub fn embed(&self, text: &str) -> Option<Vector> {
        let mut sum = [0.0_f32; DIMENSIONS];
        for token in self.vocabulary.tokens(text).into_iter().take(MAX_TOKENS) {
            let row = self.start + token as usize * DIMENSIONS * 2;
            for (slot, number) in sum.iter_mut().zip(self.table[row..row + DIMENSIONS * 2].chunks_exact(2)) {
                *slot += half::to_f32(u16::from_le_bytes([number[0], number[1]]));
            }
        }
        let length = sum.iter().map(|number| number * number).sum::<f32>().sqrt();
        if length < 1e-6 {
            return None;
        }
        Some(sum.map(|number| (number / length * ONE).round() as i16))
    }

    /// The token ids of a text, equal to those of the reference implementation.
    pub fn tokens(&self, text: &str) -> Vec<u32> {
        self.vocabulary.tokens(text)
    }
}

/// The offset of the numbers, if the file is a safetensors file with the expected table.
fn table_start(file: &[u8], tokens: usize) -> Option<usize> {
    let length = u64::from_le_bytes(file.get(..8)?.try_into().ok()?);
    let start = usize::try_from(length).ok()?.checked_add(8)?;
    let header: Header = serde_json::from_slice(file.get(8..start)?).ok()?;
    let Tensor { dtype, shape, data_offsets: (from, to) } = header.table;
    let is_right = dtype == "F16" && shape == (tokens, DIMENSIONS) && to.checked_sub(from)? == tokens * DIMENSIONS * 2;
    (is_right && start.checked_add(to)? <= file.len()).then_some(start + from)
}

/// The cosine similarity of two unit vectors.
pub fn similarity(a: &Vector, b: &Vector) -> f32 {
    dot(a, b) as f32 / (ONE * ONE)
}

/// The dot product. For unit vectors, or equal parts of them, it is within 2^29 and cannot overflow. Without overflow
/// checks, eight products take one instruction.
pub(crate) fn dot<const N: usize>(a: &[i16; N], b: &[i16; N]) -> i32 {
    let mut sum = 0_i32;
    for (&a, &b) in a.iter().zip(b) {
        sum = sum.wrapping_add(i32::from(a).wrapping_mul(i32::from(b)));
    }
    sum
}
