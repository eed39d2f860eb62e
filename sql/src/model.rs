//! Statements about models: what TRAIN MODEL and its kin say, read out of the text with every parameter bound.
//!
//! Names and option values keep the [`Place`] where they stand, so that whoever finds later that a column does not exist
//! can point at it. What a name means is not known here.

pub(crate) mod arguments;
mod bound;
mod clause;
mod constant;
mod function;
mod manage;
mod place;
mod properties;
mod train;
mod transform;
mod tune;

pub use constant::Constant;
pub use function::{ModelFunction, NamedArgument, TYPE_URL, is_model_function, model_of_text};
pub use place::{Place, Word};

pub(crate) use bound::bound_text;

use spark_connect_proto::{Expression, Relation};

use crate::ExplainMode;

/// A statement about models.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelStatement {
    Train(Box<Train>),
    ExplainTrain {
        mode: ExplainMode,
        train: Box<Train>,
    },
    ShowModels {
        namespace: Vec<String>,
        pattern: Option<String>,
    },
    ShowVersions {
        model: ModelRef,
    },
    ShowCreate {
        model: ModelRef,
        version: Option<Version>,
    },
    ShowTrainings {
        model: Option<ModelRef>,
    },
    Describe {
        model: ModelRef,
        version: Option<Version>,
        extended: bool,
    },
    Drop {
        model: ModelRef,
        version: Option<Version>,
        if_exists: bool,
    },
    Alter {
        model: ModelRef,
        if_exists: bool,
        change: Change,
    },
    Export {
        model: ModelRef,
        version: Option<Version>,
        path: Word,
        format: Option<Word>,
        options: Vec<Property>,
    },
    Import {
        model: ModelRef,
        replace: bool,
        if_not_exists: bool,
        path: Word,
        format: Option<Word>,
    },
    CancelTraining {
        id: Word,
        if_exists: bool,
    },
    /// GRANT, or REVOKE.
    Grant {
        is_revoke: bool,
        privilege: String,
        model: ModelRef,
        principal: Word,
    },
}

/// A model's name in one to three parts, without backticks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelRef {
    pub parts: Vec<String>,
    pub place: Place,
}

/// Which version of a model: by number or by alias.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Version {
    Number(i64),
    Alias(String),
}

/// `key = value` of OPTIONS, TAGS or RESOURCES.
#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    pub key: Word,
    pub value: Constant,
    /// Where the value stands.
    pub place: Place,
}

/// What ALTER MODEL and COMMENT ON MODEL change.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    RenameTo(ModelRef),
    SetTags(Vec<Property>),
    UnsetTags { if_exists: bool, keys: Vec<Word> },
    SetAlias { alias: Word, version: Version },
    UnsetAlias { if_exists: bool, alias: Word },
    SetDefault(Version),
    Comment(Option<String>),
}

/// `TRAIN MODEL`.
#[derive(Debug, Clone, PartialEq)]
pub struct Train {
    pub model: ModelRef,
    pub replace: bool,
    pub if_not_exists: bool,
    /// After USING.
    pub estimator: Word,
    pub label: Option<Word>,
    pub weight: Option<Word>,
    pub features: Option<Features>,
    pub options: Vec<Property>,
    pub transform: Option<Vec<TransformItem>>,
    pub split: Option<Split>,
    /// After VALIDATE ON.
    pub validate: Option<Relation>,
    pub tune: Option<Tune>,
    pub resources: Option<Resources>,
    pub warm_start: Option<WarmStart>,
    pub alias: Option<Word>,
    pub keep_default: bool,
    pub tags: Vec<Property>,
    pub comment: Option<String>,
    pub nowait: bool,
    pub query: Relation,
    /// The statement as it was sent, with the values of its parameters in place of their markers.
    pub text: String,
}

/// Which columns of the query are features.
#[derive(Debug, Clone, PartialEq)]
pub enum Features {
    Named(Vec<Word>),
    AllExcept(Vec<Word>),
}

/// One item of TRANSFORM.
#[derive(Debug, Clone, PartialEq)]
pub enum TransformItem {
    Star {
        except: Vec<Word>,
        place: Place,
    },
    Expression {
        expression: Box<Expression>,
        /// As it is written.
        text: String,
        alias: Option<Word>,
        place: Place,
    },
}

/// How rows are shared out between training, validation and test.
#[derive(Debug, Clone, PartialEq)]
pub enum Split {
    None { place: Place },
    Random { fractions: Vec<f64>, by: Vec<Word>, is_stratified: bool, seed: Option<i64>, place: Place },
    Sequential { column: Word, fractions: Vec<f64>, place: Place },
    Column { column: Word, place: Place },
}

/// `TUNE BY`.
#[derive(Debug, Clone, PartialEq)]
pub struct Tune {
    pub search: Search,
    pub dimensions: Vec<Dimension>,
    pub metric: Option<Metric>,
    pub trials: Option<(i64, Place)>,
    pub folds: Option<(i64, Place)>,
    pub parallelism: Option<(i64, Place)>,
    pub seed: Option<i64>,
    pub early_stop: Option<EarlyStop>,
    pub place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Search {
    Grid,
    Random,
    Bayes,
}

/// One hyperparameter and where it is searched.
#[derive(Debug, Clone, PartialEq)]
pub struct Dimension {
    /// An option's name, or `output.param` for a stage of TRANSFORM.
    pub key: Word,
    pub domain: Domain,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Domain {
    OneOf(Vec<Constant>),
    Between {
        low: Constant,
        high: Constant,
        /// Whether the logarithm is searched evenly.
        is_log: bool,
    },
}

/// MAXIMIZE or MINIMIZE.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    pub name: Word,
    pub is_maximized: bool,
}

/// EARLY STOP.
#[derive(Debug, Clone, PartialEq)]
pub struct EarlyStop {
    pub rule: StopRule,
    pub options: Vec<Property>,
    pub place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopRule {
    Asha,
    Median,
}

/// WITH n WORKERS, or WITH RESOURCES.
#[derive(Debug, Clone, PartialEq)]
pub enum Resources {
    Workers { number: i64, place: Place },
    Named(Vec<Property>),
}

/// WARM START FROM MODEL.
#[derive(Debug, Clone, PartialEq)]
pub struct WarmStart {
    pub model: ModelRef,
    pub version: Option<Version>,
    pub place: Place,
}
