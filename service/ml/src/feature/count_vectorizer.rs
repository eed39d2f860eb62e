//! `CountVectorizer`: how often each word of a vocabulary occurs, which the documents themselves give.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, StringArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use serde::{Deserialize, Serialize};
use serde_json::Map;
use train::batch::{Problem, agree};
use train::{RankContext, RankProgram};
use udt::VectorBuilder;

use super::columns::check_new;
use super::words;
use crate::ml_attr::{self, AttributeGroup};
use crate::persist::Saved;
use crate::{
    Argument, Attribute, Check, Error, Estimator, FitPlan, Kind, Model, Operator, Param, ParamType, Params, Result,
    TransformStep, Value,
};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.feature.CountVectorizer",
    model_class: Some("org.apache.spark.ml.feature.CountVectorizerModel"),
    params,
    kind: Kind::Estimator(&CountVectorizer),
};

pub static PROGRAM: RankProgram = RankProgram { name: "count_vectorizer", run };

fn params() -> Vec<Param> {
    vec![
        Param::boolean("binary", false),
        Param::unset("inputCol", ParamType::String),
        Param::double("maxDF", i64::MAX as f64, Check::AtLeast(0.0)),
        Param::double("minDF", 1.0, Check::AtLeast(0.0)),
        Param::double("minTF", 1.0, Check::AtLeast(0.0)),
        Param::output_col(),
        Param::int("vocabSize", 1 << 18, Check::Above(0.0)),
    ]
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Spec {
    min_documents: f64,
    max_documents: f64,
    vocabulary_size: usize,
}

/// What one rank's documents have: for each word, how often it occurs, and in how many documents.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Part {
    num_documents: u64,
    counts: BTreeMap<String, (u64, u64)>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Fitted {
    vocabulary: Vec<String>,
}

fn run(spec: &[u8], ctx: &mut RankContext<'_>) -> train::Result<Vec<u8>> {
    let program = PROGRAM.name;
    let spec: Spec = serde_json::from_slice(spec).map_err(|source| train::Error::Spec { program, source })?;
    let (mut part, mut local) = (Part::default(), Ok(()));
    for record_batch in &mut *ctx.partition.record_batches {
        if let Err(error) = words::each(record_batch?.column(0), |words| count(&mut part, words)) {
            local = Err(Problem::data(error.to_string()));
            break;
        }
    }
    agree(ctx.group, local)?;
    let mut total = Part::default();
    for part in super::gather(program, ctx, &part)? {
        total.num_documents += part.num_documents;
        for (word, (occurrences, documents)) in part.counts {
            let sum = total.counts.entry(word).or_default();
            *sum = (sum.0 + occurrences, sum.1 + documents);
        }
    }
    let vocabulary = vocabulary(&spec, total);
    if vocabulary.is_empty() {
        let text = "requirement failed: The vocabulary size should be > 0. Lower minDF as necessary.";
        return Err(Problem::data(text.into()).into_error());
    }
    super::on_rank_0(program, ctx, &Fitted { vocabulary })
}

/// Adds a document.
fn count(part: &mut Part, words: Option<Vec<&str>>) -> Result<()> {
    let words = words.ok_or_else(|| Error::InvalidRow { message: "a document is null".into() })?;
    let mut occurrences: HashMap<&str, u64> = HashMap::new();
    words.into_iter().for_each(|word| *occurrences.entry(word).or_default() += 1);
    part.num_documents += 1;
    for (word, occurrences) in occurrences {
        match part.counts.get_mut(word) {
            Some(sum) => *sum = (sum.0 + occurrences, sum.1 + 1),
            None => {
                part.counts.insert(word.to_string(), (occurrences, 1));
            }
        }
    }
    Ok(())
}

/// The most frequent words within the bounds, ties by alphabet. Bounds below 1 are shares of the documents.
fn vocabulary(spec: &Spec, total: Part) -> Vec<String> {
    let bound = |bound: f64| if bound >= 1.0 { bound } else { bound * total.num_documents as f64 };
    let (least, most) = (bound(spec.min_documents), bound(spec.max_documents));
    let is_within = |(_, (_, documents)): &(String, (u64, u64))| (least..=most).contains(&(*documents as f64));
    let mut words: Vec<(String, (u64, u64))> = total.counts.into_iter().filter(is_within).collect();
    words.sort_by_key(|(_, (occurrences, _))| std::cmp::Reverse(*occurrences));
    words.truncate(spec.vocabulary_size);
    words.into_iter().map(|(word, _)| word).collect()
}

struct CountVectorizer;

impl Estimator for CountVectorizer {
    fn plan_fit(&self, params: &Params, schema: &Schema) -> Result<FitPlan> {
        let input = params.string("inputCol")?;
        words::check_words(schema, input)?;
        check_new(schema, params.string("outputCol")?)?;
        let spec = Spec {
            min_documents: params.double("minDF")?,
            max_documents: params.double("maxDF")?,
            vocabulary_size: params.int("vocabSize")? as usize,
        };
        let spec = serde_json::to_vec(&spec).map_err(|source| train::Error::Spec { program: PROGRAM.name, source })?;
        Ok(FitPlan { columns: vec![input.into()], program: PROGRAM.name, spec })
    }

    fn model(&self, operator: &'static Operator, params: &Params, _: &Schema, fitted: &[u8]) -> Result<Arc<dyn Model>> {
        let Fitted { vocabulary } = super::from_rank_0(PROGRAM.name, fitted)?;
        Ok(Arc::new(CountVectorizerModel { operator, params: params.clone(), vocabulary }))
    }

    fn load(&self, operator: &'static Operator, params: &Params, saved: &Saved) -> Result<Arc<dyn Model>> {
        let corrupted = || Error::Corrupted { path: "data".into(), detail: "vocabulary is no list of words".into() };
        let lists = saved.table("data")?.column_by_name("vocabulary").and_then(|column| column.as_list_opt::<i32>());
        let list = lists.filter(|lists| lists.len() == 1 && lists.is_valid(0)).map(|lists| lists.value(0));
        let words = cast(&list.ok_or_else(corrupted)?, &DataType::Utf8)?;
        let words: Option<Vec<String>> = words.as_string::<i32>().iter().map(|word| word.map(String::from)).collect();
        let vocabulary = words.ok_or_else(corrupted)?;
        Ok(Arc::new(CountVectorizerModel { operator, params: params.clone(), vocabulary }))
    }
}

/// A model of a given vocabulary, without a fit.
///
/// # Errors
/// None today; params of a model without a fit are checked when they are set.
pub fn model_from_vocabulary(uid: &str, vocabulary: Vec<String>) -> Result<Arc<dyn Model>> {
    let params = Params::new(&OPERATOR, uid, BTreeMap::new())?;
    Ok(Arc::new(CountVectorizerModel { operator: &OPERATOR, params, vocabulary }))
}

struct CountVectorizerModel {
    operator: &'static Operator,
    params: Params,
    vocabulary: Vec<String>,
}

impl Model for CountVectorizerModel {
    fn operator(&self) -> &'static Operator {
        self.operator
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let (input, output) = (params.string("inputCol")?, params.string("outputCol")?);
        words::check_words(schema, input)?;
        check_new(schema, output)?;
        let (least, is_binary) = (params.double("minTF")?, params.boolean("binary")?);
        let places = self.vocabulary.iter().enumerate().map(|(i, word)| (word.clone(), i as i32)).collect();
        let group = AttributeGroup::Attributes(vec![ml_attr::Attribute::numeric(); self.vocabulary.len()]);
        Ok(vec![TransformStep::Append {
            output: Arc::new(group.mark(udt::field::vector_field(output))),
            inputs: vec![input.into()],
            function: Arc::new(move |columns, _| counted(&columns[0], &places, least, is_binary)),
        }])
    }

    fn attribute(&self, name: &str, _: &[Argument]) -> Result<Attribute> {
        match name {
            "vocabulary" => Ok(Attribute::Value(Value::strings(&self.vocabulary))),
            _ => Err(Error::AttributeNotAllowed { class: self.class().into(), method: name.into() }),
        }
    }

    fn describe(&self) -> String {
        format!("CountVectorizerModel: uid={}, vocabularySize={}", self.params.uid, self.vocabulary.len())
    }

    fn size_bytes(&self) -> usize {
        256 + self.vocabulary.iter().map(|word| word.len() + 24).sum::<usize>()
    }

    fn save(&self) -> Result<Saved> {
        let element = Arc::new(Field::new("element", DataType::Utf8, true));
        let words: StringArray = self.vocabulary.iter().map(Some).collect();
        let list = ListArray::new(Arc::clone(&element), OffsetBuffer::from_lengths([words.len()]), Arc::new(words), None);
        let schema = Schema::new(vec![Field::new("vocabulary", DataType::List(element), true)]);
        let rows = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(list)])?;
        Ok(Saved { metadata: Map::new(), tables: vec![("data".into(), rows)] })
    }
}

/// `least` is how often a word must occur in a document to count there; below 1, the share of the document's words.
fn counted(column: &ArrayRef, places: &HashMap<String, i32>, least: f64, is_binary: bool) -> Result<ArrayRef> {
    let mut builder = VectorBuilder::default();
    words::each(column, |words| {
        let Some(words) = words else {
            builder.append_null();
            return Ok(());
        };
        let least = if least >= 1.0 { least } else { least * words.len() as f64 };
        let mut counts: BTreeMap<i32, f64> = BTreeMap::new();
        for place in words.iter().filter_map(|word| places.get(*word)) {
            *counts.entry(*place).or_insert(0.0) += 1.0;
        }
        counts.retain(|_, count| *count >= least);
        let (indices, mut counts): (Vec<i32>, Vec<f64>) = counts.into_iter().unzip();
        if is_binary {
            counts.fill(1.0);
        }
        builder.append_sparse(places.len(), &indices, &counts);
        Ok(())
    })?;
    Ok(builder.finish())
}
