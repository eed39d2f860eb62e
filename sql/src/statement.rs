//! What a text can say: a query, or a command with its parts read out.

use spark_connect_proto::{Expression, Relation};

use crate::model::ModelStatement;

/// Values for the parameter markers of a statement, each a literal or a call that makes one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parameters {
    /// For `?`, in the order of the text.
    pub positional: Vec<Expression>,
    /// For `:name`.
    pub named: std::collections::BTreeMap<String, Expression>,
}

/// A parsed statement. Names are as written, split into their parts and without backticks.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    Query(Relation),
    CreateTempView {
        name: Vec<String>,
        replace: bool,
        global: bool,
        if_not_exists: bool,
        columns: Vec<String>,
        query: Relation,
    },
    CreateTable(CreateTable),
    InsertInto {
        name: Vec<String>,
        columns: Vec<String>,
        overwrite: bool,
        query: Relation,
    },
    DropView {
        name: Vec<String>,
        if_exists: bool,
    },
    DropTable {
        name: Vec<String>,
        if_exists: bool,
        purge: bool,
    },
    CreateDatabase {
        name: Vec<String>,
        if_not_exists: bool,
    },
    DropDatabase {
        name: Vec<String>,
        if_exists: bool,
        /// With the tables in it.
        cascade: bool,
    },
    DropFunction {
        name: Vec<String>,
        if_exists: bool,
    },
    ShowTables {
        namespace: Vec<String>,
        pattern: Option<String>,
    },
    ShowViews {
        namespace: Vec<String>,
        pattern: Option<String>,
    },
    ShowColumns {
        name: Vec<String>,
    },
    ShowDatabases {
        pattern: Option<String>,
    },
    ShowFunctions {
        scope: FunctionScope,
        pattern: Option<String>,
    },
    ShowCatalogs {
        pattern: Option<String>,
    },
    DescribeTable {
        name: Vec<String>,
        extended: bool,
    },
    DescribeFunction {
        name: Vec<String>,
        extended: bool,
    },
    DescribeQuery {
        query: Relation,
    },
    /// `SET`, `SET key` and `SET key = value`.
    Set {
        key: Option<String>,
        value: Option<String>,
    },
    Reset {
        key: Option<String>,
    },
    Use {
        namespace: Vec<String>,
    },
    CacheTable {
        name: Vec<String>,
        lazy: bool,
        query: Option<Relation>,
    },
    UncacheTable {
        name: Vec<String>,
        if_exists: bool,
    },
    ClearCache,
    RefreshTable {
        name: Vec<String>,
    },
    Explain {
        mode: ExplainMode,
        query: Relation,
    },
    /// A statement about models.
    Model(Box<ModelStatement>),
}

/// `CREATE TABLE`, with a query or without.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CreateTable {
    pub name: Vec<String>,
    pub if_not_exists: bool,
    pub replace: bool,
    /// The column list as DDL text, empty where there is none.
    pub schema: String,
    /// After USING.
    pub provider: Option<String>,
    pub options: Vec<(String, String)>,
    pub properties: Vec<(String, String)>,
    pub partitioned_by: Vec<String>,
    pub location: Option<String>,
    pub comment: Option<String>,
    /// After AS.
    pub query: Option<Relation>,
}

/// Which functions SHOW FUNCTIONS lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionScope {
    All,
    System,
    User,
}

/// How much EXPLAIN tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExplainMode {
    Simple,
    Extended,
    Codegen,
    Cost,
    Formatted,
}
