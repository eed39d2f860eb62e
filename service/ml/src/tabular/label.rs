//! Labels of any type as class numbers, and class numbers as labels.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int32Array, StringArray};
use arrow::compute::{SortOptions, cast, sort, take};
use arrow::datatypes::{DataType, Field, Float64Type};
use serde::{Deserialize, Serialize};

use crate::Result;

/// The classes of a classifier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Classes {
    /// In the order of their numbers, as texts that cast back to the label's type. Sorted, but for the positive class of
    /// two, which is the second.
    pub labels: Vec<String>,
}

/// Why labels are no classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabelError {
    /// More than were allowed.
    TooMany { classes: usize },
    /// None of the classes.
    UnknownPositive { label: String },
}

impl Classes {
    /// Whether labels of a type can be classes.
    pub fn takes(data_type: &DataType) -> bool {
        data_type.is_numeric()
            || matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Boolean)
    }

    /// The distinct labels of a column, null left out, in the order of their type.
    ///
    /// # Errors
    /// A type that has no order.
    pub fn distinct(columns: &[ArrayRef]) -> Result<Vec<String>> {
        let mut texts: Vec<String> = Vec::new();
        let parts: Vec<&dyn Array> = columns.iter().map(AsRef::as_ref).collect();
        if parts.is_empty() {
            return Ok(texts);
        }
        let all = arrow::compute::concat(&parts)?;
        let sorted = sort(&all, Some(SortOptions { descending: false, nulls_first: true }))?;
        let shown = cast(&sorted, &DataType::Utf8)?;
        for text in shown.as_string::<i32>().iter().flatten() {
            if texts.last().is_none_or(|last| last != text) {
                texts.push(text.to_string());
            }
        }
        Ok(texts)
    }

    /// # Errors
    /// [`LabelError`]
    pub fn new(
        mut labels: Vec<String>,
        positive: Option<&str>,
        classes_max: usize,
    ) -> std::result::Result<Classes, LabelError> {
        if labels.len() > classes_max {
            return Err(LabelError::TooMany { classes: labels.len() });
        }
        if let Some(positive) = positive {
            let unknown = || LabelError::UnknownPositive { label: positive.to_string() };
            let at = labels.iter().position(|label| label == positive).ok_or_else(unknown)?;
            if labels.len() == 2 {
                labels.swap(at, 1);
            }
        }
        Ok(Classes { labels })
    }

    /// The numbers of labels; what is no class is null.
    ///
    /// # Errors
    /// A column that is no text and casts to none.
    pub fn encode(&self, column: &ArrayRef) -> Result<Float64Array> {
        let texts = cast(column, &DataType::Utf8)?;
        let number = |text: &str| self.labels.iter().position(|label| label == text).map(|at| at as f64);
        Ok(texts.as_string::<i32>().iter().map(|text| text.and_then(number)).collect())
    }

    /// All labels as a column of their type, by number.
    ///
    /// # Errors
    /// A type that the labels do not cast to.
    pub fn column(&self, data_type: &DataType) -> Result<ArrayRef> {
        let texts: ArrayRef = Arc::new(StringArray::from(self.labels.clone()));
        Ok(cast(&texts, data_type)?)
    }

    /// The labels of class numbers.
    ///
    /// # Errors
    /// A type that the labels do not cast to.
    pub fn decode(&self, numbers: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
        let numbers = cast(numbers, &DataType::Float64)?;
        let indices: Int32Array = numbers.as_primitive::<Float64Type>().iter().map(|n| n.map(|n| n as i32)).collect();
        Ok(take(&self.column(data_type)?, &indices, None)?)
    }

    /// The number of the class at each place of the labels' own order.
    ///
    /// # Errors
    /// A type that the labels do not cast to.
    pub fn sorted(&self, data_type: &DataType) -> Result<Vec<usize>> {
        let indices = arrow::compute::sort_to_indices(&self.column(data_type)?, None, None)?;
        Ok(indices.values().iter().map(|at| *at as usize).collect())
    }
}

/// The type of a label's column in what a model puts out.
pub fn label_field(name: &str, data_type: &DataType) -> Field {
    Field::new(name, data_type.clone(), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_go_by_the_order_of_their_type() {
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(10), Some(9), None, Some(10)]));
        let labels = Classes::distinct(&[numbers.clone()]).unwrap();
        assert_eq!(labels, ["9", "10"]);
        let classes = Classes::new(labels, None, 100).unwrap();
        let encoded = classes.encode(&numbers).unwrap();
        assert_eq!(encoded.iter().collect::<Vec<_>>(), [Some(1.0), Some(0.0), None, Some(1.0)]);
        let decoded = classes.decode(&(Arc::new(encoded) as ArrayRef), &DataType::Int32).unwrap();
        assert_eq!(&decoded, &numbers);
    }

    #[test]
    fn the_positive_class_is_the_second_of_two() {
        let classes = Classes::new(vec!["n".into(), "y".into()], Some("n"), 100).unwrap();
        assert_eq!(classes.labels, ["y", "n"]);
        assert_eq!(classes.sorted(&DataType::Utf8).unwrap(), [1, 0]);
        let unknown = Classes::new(vec!["n".into(), "y".into()], Some("x"), 100);
        assert_eq!(unknown, Err(LabelError::UnknownPositive { label: "x".into() }));
        assert_eq!(Classes::new(vec!["a".into(); 3], None, 2), Err(LabelError::TooMany { classes: 3 }));
    }

    #[test]
    fn booleans_and_doubles_come_back_as_they_were() {
        for column in [
            Arc::new(arrow::array::BooleanArray::from(vec![true, false])) as ArrayRef,
            Arc::new(Float64Array::from(vec![0.1, -2.5])) as ArrayRef,
        ] {
            let classes = Classes::new(Classes::distinct(&[column.clone()]).unwrap(), None, 100).unwrap();
            let encoded: ArrayRef = Arc::new(classes.encode(&column).unwrap());
            assert_eq!(&classes.decode(&encoded, column.data_type()).unwrap(), &column);
        }
    }
}
