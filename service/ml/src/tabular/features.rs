//! Raw columns as one vector of features.
//!
//! A number is one element: where training rows missed it, its mean stands in, and one more element says so. A text or a
//! boolean is as many elements as it has levels, with a one in the level's place; a null is a level of its own where
//! training had it. What training has not seen is all zeros. Vectors and arrays are as many elements as they are long.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field};
use serde::{Deserialize, Serialize};
use udt::{VectorArray, VectorBuilder};

use super::numbers::{Moments, doubles};
use crate::{Error, Result};

/// Vectors of more elements than this are sparse where most of them are levels.
const DENSE_SIZE_MAX: usize = 64;
/// Levels that statistics list.
const TOP_LEVELS: usize = 10;

/// What a raw column is to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RawType {
    Number,
    Text,
    Boolean,
    /// A vector of Spark's, or an array of numbers.
    Numbers,
}

impl RawType {
    /// What a column of this type is; None where it can be no feature.
    pub fn of(field: &Field) -> Option<RawType> {
        if udt::field::is_vector(field) {
            return Some(RawType::Numbers);
        }
        match field.data_type() {
            data_type if data_type.is_numeric() => Some(RawType::Number),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(RawType::Text),
            DataType::Boolean => Some(RawType::Boolean),
            DataType::List(element) | DataType::LargeList(element) if element.data_type().is_numeric() => {
                Some(RawType::Numbers)
            }
            _ => None,
        }
    }

    /// Whether a column of another type can stand for this one without a change of any value.
    pub fn takes(self, field: &Field) -> bool {
        field.data_type() == &DataType::Null && self != RawType::Numbers || RawType::of(field) == Some(self)
    }
}

/// What was learned of a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Encoding {
    Number {
        /// Stands in for what is missing.
        mean: f64,
        /// Whether an element says that it is missing: training had such rows.
        has_missing: bool,
    },
    Category {
        /// Sorted.
        levels: Vec<String>,
        has_null: bool,
    },
    Numbers {
        size: usize,
    },
}

impl Encoding {
    fn size(&self) -> usize {
        match self {
            Encoding::Number { has_missing, .. } => 1 + usize::from(*has_missing),
            Encoding::Category { levels, has_null } => levels.len() + usize::from(*has_null),
            Encoding::Numbers { size } => *size,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FeatureColumn {
    pub name: String,
    /// The column's type in training, as Spark names it.
    pub data_type: String,
    pub raw_type: RawType,
    pub encoding: Encoding,
}

/// The features of a model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Features {
    pub columns: Vec<FeatureColumn>,
}

/// One element of the vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    pub feature: String,
    /// The level that it stands for; None for numbers.
    pub category: Option<String>,
}

/// How the level of rows without a value is called where levels are listed.
pub const NULL_LEVEL: &str = "__null__";

impl Features {
    /// Length of the vector.
    pub fn size(&self) -> usize {
        self.columns.iter().map(|column| column.encoding.size()).sum()
    }

    pub fn inputs(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }

    pub fn has_categories(&self) -> bool {
        self.columns.iter().any(|column| matches!(column.encoding, Encoding::Category { .. }))
    }

    /// What each element of the vector stands for.
    pub fn elements(&self) -> Vec<Element> {
        let mut elements = Vec::new();
        for column in &self.columns {
            let mut add = |feature: String, category: Option<&str>| {
                elements.push(Element { feature, category: category.map(str::to_string) });
            };
            match &column.encoding {
                Encoding::Number { has_missing, .. } => {
                    add(column.name.clone(), None);
                    if *has_missing {
                        add(format!("{}_missing", column.name), None);
                    }
                }
                Encoding::Category { levels, has_null } => {
                    levels.iter().for_each(|level| add(column.name.clone(), Some(level)));
                    if *has_null {
                        add(column.name.clone(), Some(NULL_LEVEL));
                    }
                }
                Encoding::Numbers { size } => (0..*size).for_each(|at| add(format!("{}[{at}]", column.name), None)),
            }
        }
        elements
    }

    /// The vectors of rows, whose columns are those of [`Features::inputs`]. No vector is null.
    ///
    /// # Errors
    /// An infinity, and an array of another length than in training.
    pub fn encode(&self, columns: &[ArrayRef], num_rows: usize) -> Result<ArrayRef> {
        let size = self.size();
        let readers = self.columns.iter().zip(columns).map(|(column, array)| Reader::new(column, array));
        let readers = readers.collect::<Result<Vec<Reader<'_>>>>()?;
        let is_sparse = size > DENSE_SIZE_MAX && self.has_categories();
        if !is_sparse {
            let mut values = vec![0.0; size * num_rows];
            let mut offset = 0;
            for (reader, column) in readers.iter().zip(&self.columns) {
                for row in 0..num_rows {
                    reader.read(row, |at, value| values[row * size + offset + at] = value)?;
                }
                offset += column.encoding.size();
            }
            return Ok(VectorBuilder::from_dense_rows(size, values));
        }
        let mut builder = VectorBuilder::with_capacity(num_rows, 2 * self.columns.len());
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        for row in 0..num_rows {
            indices.clear();
            values.clear();
            let mut offset = 0;
            for (reader, column) in readers.iter().zip(&self.columns) {
                reader.read(row, |at, value| {
                    if value != 0.0 {
                        indices.push((offset + at) as i32);
                        values.push(value);
                    }
                })?;
                offset += column.encoding.size();
            }
            builder.append_sparse(size, &indices, &values);
        }
        Ok(builder.finish())
    }

    /// Refuses rows that training has not seen the like of.
    ///
    /// # Errors
    /// A number that is missing; a level that training had not.
    pub fn check(&self, columns: &[ArrayRef]) -> Result<()> {
        let refused = |message: String| Err(Error::InvalidRow { message });
        for (column, array) in self.columns.iter().zip(columns) {
            let name = &column.name;
            match &column.encoding {
                Encoding::Number { .. } if doubles(array)?.null_count() > 0 => {
                    return refused(format!("feature {name} is missing"));
                }
                Encoding::Numbers { .. } if array.null_count() > 0 => {
                    return refused(format!("feature {name} is missing"));
                }
                Encoding::Category { levels, has_null } => {
                    let texts = cast(array, &DataType::Utf8)?;
                    for text in texts.as_string::<i32>() {
                        match text {
                            None if !has_null => return refused(format!("feature {name} is missing")),
                            Some(text) if levels.binary_search_by(|level| level.as_str().cmp(text)).is_err() => {
                                return refused(format!("feature {name} has the value {text}, which training had not"));
                            }
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Which rows miss a number.
    ///
    /// # Errors
    /// A column of a type that is no feature's.
    pub fn missing(&self, columns: &[ArrayRef], num_rows: usize) -> Result<BooleanArray> {
        let mut is_missing = vec![false; num_rows];
        for (column, array) in self.columns.iter().zip(columns) {
            match column.raw_type {
                RawType::Number => {
                    let values = doubles(array)?;
                    is_missing.iter_mut().enumerate().for_each(|(row, missing)| *missing |= values.is_null(row));
                }
                RawType::Numbers => {
                    is_missing.iter_mut().enumerate().for_each(|(row, missing)| *missing |= array.is_null(row));
                }
                RawType::Text | RawType::Boolean => {}
            }
        }
        Ok(is_missing.into())
    }
}

/// Reads one column's elements of a row; those that are zero may be left out.
enum Reader<'a> {
    Number { values: Float64Array, mean: f64, has_missing: bool, name: &'a str },
    Category { values: StringArray, index: HashMap<&'a str, usize>, null: Option<usize> },
    Vectors { values: VectorArray, size: usize, name: &'a str },
    Lists { values: ArrayRef, size: usize, name: &'a str },
}

impl<'a> Reader<'a> {
    fn new(column: &'a FeatureColumn, array: &ArrayRef) -> Result<Reader<'a>> {
        let name = column.name.as_str();
        Ok(match &column.encoding {
            Encoding::Number { mean, has_missing } => {
                Reader::Number { values: doubles(array)?, mean: *mean, has_missing: *has_missing, name }
            }
            Encoding::Category { levels, has_null } => Reader::Category {
                values: cast(array, &DataType::Utf8)?.as_string::<i32>().clone(),
                index: levels.iter().enumerate().map(|(at, level)| (level.as_str(), at)).collect(),
                null: has_null.then_some(levels.len()),
            },
            Encoding::Numbers { size } => match array.data_type() {
                DataType::List(_) | DataType::LargeList(_) => {
                    Reader::Lists { values: Arc::clone(array), size: *size, name }
                }
                _ => Reader::Vectors { values: VectorArray::try_new(array.as_ref())?, size: *size, name },
            },
        })
    }

    fn read(&self, row: usize, mut put: impl FnMut(usize, f64)) -> Result<()> {
        let infinite = |name: &str| Error::InvalidRow { message: format!("feature {name} is infinite") };
        let wrong_size = |name: &str, found: usize, size: usize| Error::InvalidRow {
            message: format!("feature {name} has {found} elements, the model was trained on {size}"),
        };
        match self {
            Reader::Number { values, mean, has_missing, name } => {
                if values.is_null(row) {
                    put(0, *mean);
                    if *has_missing {
                        put(1, 1.0);
                    }
                    return Ok(());
                }
                match values.value(row) {
                    value if value.is_infinite() => return Err(infinite(name)),
                    value => put(0, value),
                }
            }
            Reader::Category { values, index, null } => {
                let at = if values.is_null(row) { *null } else { index.get(values.value(row)).copied() };
                if let Some(at) = at {
                    put(at, 1.0);
                }
            }
            Reader::Vectors { values, size, name } => {
                if values.is_null(row) {
                    return Ok(());
                }
                let vector = values.row(row)?;
                if vector.size() != *size {
                    return Err(wrong_size(name, vector.size(), *size));
                }
                let mut is_finite = true;
                vector.for_each(|at, value| {
                    is_finite &= value.is_finite();
                    put(at, value);
                });
                if !is_finite {
                    return Err(infinite(name));
                }
            }
            Reader::Lists { values, size, name } => {
                if values.is_null(row) {
                    return Ok(());
                }
                let list = list_row(values, row)?;
                if list.len() != *size {
                    return Err(wrong_size(name, list.len(), *size));
                }
                for (at, value) in list.iter().enumerate() {
                    match value.unwrap_or(0.0) {
                        value if value.is_infinite() => return Err(infinite(name)),
                        value => put(at, value),
                    }
                }
            }
        }
        Ok(())
    }
}

/// The numbers of one row of an array column.
fn list_row(array: &ArrayRef, row: usize) -> Result<Float64Array> {
    let values = match array.data_type() {
        DataType::LargeList(_) => array.as_list::<i64>().value(row),
        _ => array.as_list::<i32>().value(row),
    };
    doubles(&values)
}

/// What training rows say of a feature.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FeatureStatistics {
    pub rows: u64,
    pub null_rows: u64,
    pub infinite_rows: u64,
    pub min: Option<f64>,
    pub max: Option<f64>,
    pub mean: Option<f64>,
    pub stddev: Option<f64>,
    /// Levels, for texts and booleans.
    pub categories: Option<u64>,
    /// The most frequent ones.
    pub top_categories: Vec<(String, u64)>,
    /// Arrays of several lengths: the first two that were met.
    pub sizes: Option<(usize, usize)>,
}

/// Learns features from rows.
pub struct FeatureFit {
    columns: Vec<ColumnFit>,
}

struct ColumnFit {
    name: String,
    data_type: String,
    raw_type: RawType,
    rows: u64,
    nulls: u64,
    infinite: u64,
    moments: Moments,
    levels: BTreeMap<String, u64>,
    size: Option<usize>,
    other_size: Option<usize>,
}

impl FeatureFit {
    /// `columns`: name, type as Spark names it, and what it is.
    pub fn new(columns: impl IntoIterator<Item = (String, String, RawType)>) -> FeatureFit {
        let column = |(name, data_type, raw_type)| ColumnFit {
            name,
            data_type,
            raw_type,
            rows: 0,
            nulls: 0,
            infinite: 0,
            moments: Moments::default(),
            levels: BTreeMap::new(),
            size: None,
            other_size: None,
        };
        FeatureFit { columns: columns.into_iter().map(column).collect() }
    }

    /// Takes rows in; their columns are in the order of [`FeatureFit::new`].
    ///
    /// # Errors
    /// A column of another type than was said.
    pub fn update(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.columns.iter_mut().zip(columns).try_for_each(|(column, array)| column.update(array))
    }

    /// What was learned, and what the rows say of each feature.
    pub fn finish(self) -> (Features, Vec<FeatureStatistics>) {
        let (columns, statistics) = self.columns.into_iter().map(ColumnFit::finish).unzip();
        (Features { columns }, statistics)
    }
}

impl ColumnFit {
    fn update(&mut self, array: &ArrayRef) -> Result<()> {
        self.rows += array.len() as u64;
        match self.raw_type {
            RawType::Number => {
                let values = doubles(array)?;
                self.nulls += values.null_count() as u64;
                for value in values.iter().flatten() {
                    if value.is_infinite() {
                        self.infinite += 1;
                    } else {
                        self.moments.add(value);
                    }
                }
            }
            RawType::Text | RawType::Boolean => {
                let texts = cast(array, &DataType::Utf8)?;
                let texts = texts.as_string::<i32>();
                self.nulls += texts.null_count() as u64;
                for text in texts.iter().flatten() {
                    match self.levels.get_mut(text) {
                        Some(count) => *count += 1,
                        None => {
                            self.levels.insert(text.to_string(), 1);
                        }
                    }
                }
            }
            RawType::Numbers => self.update_numbers(array)?,
        }
        Ok(())
    }

    fn update_numbers(&mut self, array: &ArrayRef) -> Result<()> {
        self.nulls += array.null_count() as u64;
        let vectors = match array.data_type() {
            DataType::List(_) | DataType::LargeList(_) => None,
            _ => Some(VectorArray::try_new(array.as_ref())?),
        };
        for row in (0..array.len()).filter(|row| array.is_valid(*row)) {
            let (size, is_finite) = match &vectors {
                Some(vectors) => {
                    let vector = vectors.row(row)?;
                    (vector.size(), vector.values().iter().all(|value| value.is_finite()))
                }
                None => {
                    let list = list_row(array, row)?;
                    (list.len(), list.iter().flatten().all(f64::is_finite))
                }
            };
            self.infinite += u64::from(!is_finite);
            if *self.size.get_or_insert(size) != size {
                self.other_size.get_or_insert(size);
            }
        }
        Ok(())
    }

    fn finish(self) -> (FeatureColumn, FeatureStatistics) {
        let is_category = matches!(self.raw_type, RawType::Text | RawType::Boolean);
        let mut top: Vec<(String, u64)> = self.levels.iter().map(|(level, count)| (level.clone(), *count)).collect();
        top.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        top.truncate(TOP_LEVELS);
        let has_numbers = self.moments.count > 0;
        let statistics = FeatureStatistics {
            rows: self.rows,
            null_rows: self.nulls,
            infinite_rows: self.infinite,
            min: self.moments.min,
            max: self.moments.max,
            mean: has_numbers.then_some(self.moments.mean),
            stddev: self.moments.standard_deviation(),
            categories: is_category.then_some(self.levels.len() as u64),
            top_categories: top,
            sizes: self.size.zip(self.other_size),
        };
        let encoding = match self.raw_type {
            RawType::Number => Encoding::Number { mean: self.moments.mean, has_missing: self.nulls > 0 },
            RawType::Numbers => Encoding::Numbers { size: self.size.unwrap_or(0) },
            RawType::Text | RawType::Boolean => {
                Encoding::Category { levels: self.levels.into_keys().collect(), has_null: self.nulls > 0 }
            }
        };
        let column = FeatureColumn { name: self.name, data_type: self.data_type, raw_type: self.raw_type, encoding };
        (column, statistics)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(columns: Vec<(&str, RawType, ArrayRef)>) -> Features {
        let kinds = columns.iter().map(|(name, raw_type, _)| (name.to_string(), String::new(), *raw_type));
        let mut fit = FeatureFit::new(kinds.collect::<Vec<_>>());
        fit.update(&columns.into_iter().map(|(_, _, array)| array).collect::<Vec<_>>()).unwrap();
        fit.finish().0
    }

    fn rows(features: &Features, columns: &[ArrayRef]) -> Vec<Vec<f64>> {
        let vectors = features.encode(columns, columns[0].len()).unwrap();
        let vectors = VectorArray::try_new(vectors.as_ref()).unwrap();
        (0..vectors.len()).map(|row| vectors.row(row).unwrap().to_vector().to_dense()).collect()
    }

    #[test]
    fn numbers_and_levels_are_learned_with_what_is_missing() {
        let ages: ArrayRef = Arc::new(Float64Array::from(vec![Some(10.0), None, Some(30.0)]));
        let cities: ArrayRef = Arc::new(StringArray::from(vec![Some("b"), Some("a"), None]));
        let features = fitted(vec![("age", RawType::Number, ages.clone()), ("city", RawType::Text, cities.clone())]);
        assert_eq!(features.size(), 5);
        let expected = [[10.0, 0.0, 0.0, 1.0, 0.0], [20.0, 1.0, 1.0, 0.0, 0.0], [30.0, 0.0, 0.0, 0.0, 1.0]];
        assert_eq!(rows(&features, &[ages, cities]), expected);
        let unseen: ArrayRef = Arc::new(StringArray::from(vec![Some("z")]));
        let age: ArrayRef = Arc::new(arrow::array::Int32Array::from(vec![7]));
        assert_eq!(rows(&features, &[age, unseen]), [[7.0, 0.0, 0.0, 0.0, 0.0]]);
        let names: Vec<_> = features.elements().into_iter().map(|e| (e.feature, e.category)).collect();
        assert_eq!(names[1], ("age_missing".to_string(), None));
        assert_eq!(names[4], ("city".to_string(), Some(NULL_LEVEL.to_string())));
    }

    #[test]
    fn what_training_never_missed_has_no_element_for_it() {
        let ages: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 3.0]));
        let flags: ArrayRef = Arc::new(BooleanArray::from(vec![true, false]));
        let features = fitted(vec![("age", RawType::Number, ages), ("flag", RawType::Boolean, flags)]);
        let age: ArrayRef = Arc::new(Float64Array::from(vec![None]));
        let flag: ArrayRef = Arc::new(BooleanArray::from(vec![None]));
        assert_eq!(rows(&features, &[age.clone(), flag.clone()]), [[2.0, 0.0, 0.0]]);
        assert!(features.missing(&[age, flag], 1).unwrap().value(0));
    }

    #[test]
    fn many_levels_are_sparse_and_say_the_same() {
        let texts: Vec<String> = (0..100).map(|level| format!("{level:03}")).collect();
        let column: ArrayRef = Arc::new(StringArray::from(texts));
        let features = fitted(vec![("c", RawType::Text, column.clone())]);
        let rows = rows(&features, &[column]);
        assert!(rows.iter().enumerate().all(|(at, row)| row[at] == 1.0 && row.iter().sum::<f64>() == 1.0));
    }

    #[test]
    fn an_infinity_is_named() {
        let ages: ArrayRef = Arc::new(Float64Array::from(vec![1.0, f64::INFINITY]));
        let mut fit = FeatureFit::new([("age".to_string(), "double".to_string(), RawType::Number)]);
        fit.update(std::slice::from_ref(&ages)).unwrap();
        let (features, statistics) = fit.finish();
        assert_eq!((statistics[0].infinite_rows, statistics[0].mean), (1, Some(1.0)));
        assert!(features.encode(&[ages], 2).unwrap_err().to_string().contains("age"));
    }
}
