//! One operator of the catalogue: its Spark class, its params, and what it does.

use crate::{Estimator, Evaluator, Param, Transformer};

/// What an operator is, and the code behind it.
#[derive(Clone, Copy)]
pub enum Kind {
    Estimator(&'static dyn Estimator),
    Transformer(&'static dyn Transformer),
    Evaluator(&'static dyn Evaluator),
}

/// An entry of the catalogue. `class` is Spark's, `org.apache.spark.ml.…`.
pub struct Operator {
    pub class: &'static str,
    /// The class of the fitted model; `None` for what is no estimator.
    pub model_class: Option<&'static str>,
    /// Every param Spark 4.3 has for it, with Spark's defaults.
    pub params: fn() -> Vec<Param>,
    pub kind: Kind,
}

impl Operator {
    /// `LogisticRegression`
    pub fn short_name(&self) -> &'static str {
        self.class.rsplit('.').next().unwrap_or(self.class)
    }

    /// `logistic_regression`, the name SQL uses.
    pub fn snake_name(&self) -> String {
        let mut name = String::new();
        let letters: Vec<char> = self.short_name().chars().collect();
        for (i, letter) in letters.iter().enumerate() {
            let starts_word = letter.is_uppercase()
                && i > 0
                && (letters[i - 1].is_lowercase() || letters.get(i + 1).is_some_and(|next| next.is_lowercase()));
            if starts_word {
                name.push('_');
            }
            name.extend(letter.to_lowercase());
        }
        name
    }
}
