//! The params of the estimator, and what they say of a training.

use train::network::{EarlyStopping, LossKind, Moments, Optimizer, Options, Precision, Schedule, Sharding, Wire};

use crate::{Check, Error, Param, ParamType, Params, Result, Value};

const LOSSES: &[&str] = &["crossEntropy", "nll", "bce", "mse", "l1", "huber", "script"];

pub fn params() -> Vec<Param> {
    let features = Value::strings(&[String::from("features")]);
    vec![
        Param::int("accumulationSteps", 1, Check::AtLeast(1.0)),
        Param::int("batchSize", 64, Check::AtLeast(1.0)),
        Param::double("beta1", 0.9, Check::Within(0.0, 1.0)),
        Param::double("beta2", 0.999, Check::Within(0.0, 1.0)),
        Param::int("bucketBytes", 1 << 20, Check::AtLeast(1.0)),
        Param::int("epochs", 1, Check::AtLeast(1.0)),
        Param::double("epsilon", 1e-8, Check::Above(0.0)),
        Param::double("huberDelta", 1.0, Check::Above(0.0)),
        Param::int("inferenceBatchSize", 1024, Check::AtLeast(1.0)),
        Param::new("inputCols", ParamType::StringArray, Some(features), Check::Any),
        Param::string("labelCol", "label"),
        Param::double("learningRate", 1e-3, Check::Above(0.0)),
        Param::one_of("loss", "crossEntropy", LOSSES),
        Param::unset("lossModule", ParamType::String),
        Param::new("maxGradNorm", ParamType::Double, None, Check::Above(0.0)),
        Param::double("minDelta", 0.0, Check::AtLeast(0.0)),
        Param::unset("module", ParamType::String),
        Param::double("momentum", 0.0, Check::Within(0.0, 1.0)),
        Param::boolean("nesterov", false),
        Param::new("numWorkers", ParamType::Int, None, Check::AtLeast(1.0)),
        Param::one_of("optimizer", "adam", &["sgd", "adam", "adamW", "lamb"]),
        Param::int("patience", 5, Check::AtLeast(1.0)),
        Param::one_of("precision", "float32", &["float32", "bfloat16"]),
        Param::string("predictionCol", "prediction"),
        Param::string("probabilityCol", "probability"),
        Param::string("rawPredictionCol", "rawPrediction"),
        Param::one_of("schedule", "constant", &["constant", "step", "cosine", "oneCycle"]),
        Param::new("seed", ParamType::Long, Some(Value::Long(0)), Check::Any),
        Param::int("stepEpochs", 1, Check::AtLeast(1.0)),
        Param::double("stepGamma", 0.1, Check::Above(0.0)),
        Param::double("validationFraction", 0.0, Check::Within(0.0, 0.9)),
        Param::double("warmUp", 0.0, Check::Within(0.0, 1.0)),
        Param::double("weightDecay", 0.0, Check::AtLeast(0.0)),
        Param::one_of("wireFormat", "float32", &["float32", "bfloat16", "float16"]),
        Param::int("zeroStage", 0, Check::Within(0.0, 3.0)),
    ]
}

/// What is trained for.
pub fn loss(params: &Params) -> Result<LossKind> {
    Ok(match choice(params, "loss")?.as_str() {
        "nll" => LossKind::NegativeLogLikelihood,
        "bce" => LossKind::BinaryCrossEntropy,
        "mse" => LossKind::MeanSquared,
        "l1" => LossKind::MeanAbsolute,
        "huber" => LossKind::Huber { delta: params.double("huberDelta")? },
        "script" => LossKind::Scripted,
        _ => LossKind::CrossEntropy,
    })
}

/// # Errors
/// [`Error::Unsupported`]: stages 2 and 3 of ZeRO, and LAMB with a sharded state.
pub fn options(params: &Params) -> Result<Options> {
    let optimizer = optimizer(params)?;
    let sharding = match params.int("zeroStage")? {
        0 => Sharding::None,
        1 => Sharding::OptimizerState,
        stage => return Err(Error::Unsupported { feature: format!("stage {stage} of ZeRO (zeroStage)") }),
    };
    if sharding != Sharding::None && matches!(optimizer, Optimizer::Lamb(_)) {
        let feature = "the optimizer lamb with a sharded state (zeroStage)".into();
        return Err(Error::Unsupported { feature });
    }
    let early_stopping = match params.double("validationFraction")? {
        0.0 => None,
        validation_fraction => Some(EarlyStopping {
            validation_fraction,
            patience: params.int("patience")? as usize,
            min_delta: params.double("minDelta")?,
        }),
    };
    Ok(Options {
        loss: loss(params)?,
        optimizer,
        learning_rate: params.double("learningRate")?,
        schedule: schedule(params)?,
        batch_rows: params.int("batchSize")? as usize,
        epochs: params.int("epochs")? as usize,
        accumulation: params.int("accumulationSteps")? as usize,
        gradient_norm_max: params.double("maxGradNorm").ok(),
        bucket_bytes: params.int("bucketBytes")? as usize,
        wire: match choice(params, "wireFormat")?.as_str() {
            "bfloat16" => Wire::Bf16,
            "float16" => Wire::F16,
            _ => Wire::F32,
        },
        precision: if choice(params, "precision")? == "bfloat16" { Precision::Bf16 } else { Precision::F32 },
        sharding,
        seed: params.long("seed")?,
        early_stopping,
    })
}

fn optimizer(params: &Params) -> Result<Optimizer> {
    let weight_decay = params.double("weightDecay")?;
    let moments = Moments {
        beta1: params.double("beta1")?,
        beta2: params.double("beta2")?,
        epsilon: params.double("epsilon")?,
        weight_decay,
    };
    let (momentum, is_nesterov) = (params.double("momentum")?, params.boolean("nesterov")?);
    let chosen = choice(params, "optimizer")?;
    if chosen != "sgd" && (momentum != 0.0 || is_nesterov) {
        return Err(contradiction(params, "momentum", "is for the optimizer sgd only"));
    }
    if is_nesterov && momentum == 0.0 {
        return Err(contradiction(params, "nesterov", "needs a momentum above 0"));
    }
    Ok(match chosen.as_str() {
        "sgd" => Optimizer::Sgd { momentum, is_nesterov, weight_decay },
        "adamw" => Optimizer::AdamW(moments),
        "lamb" => Optimizer::Lamb(moments),
        _ => Optimizer::Adam(moments),
    })
}

fn schedule(params: &Params) -> Result<Schedule> {
    let warm_up = params.double("warmUp")?;
    let chosen = choice(params, "schedule")?;
    if warm_up != 0.0 && !matches!(chosen.as_str(), "cosine" | "onecycle") {
        return Err(contradiction(params, "warmUp", "is for the schedules cosine and oneCycle only"));
    }
    Ok(match chosen.as_str() {
        "step" => Schedule::Step { epochs: params.int("stepEpochs")? as usize, gamma: params.double("stepGamma")? },
        "cosine" => Schedule::Cosine { warm_up },
        "onecycle" => Schedule::OneCycle { warm_up: if params.is_set("warmUp") { warm_up } else { ONE_CYCLE_WARM_UP } },
        _ => Schedule::Constant,
    })
}

/// PyTorch's share of steps that the one-cycle policy rises in.
const ONE_CYCLE_WARM_UP: f64 = 0.3;

/// A param of some words, in lower case: they were checked without regard to it.
fn choice(params: &Params, name: &str) -> Result<String> {
    Ok(params.string(name)?.to_ascii_lowercase())
}

fn contradiction(params: &Params, param: &str, detail: &str) -> Error {
    Error::InvalidParam {
        operator: params.uid.clone(),
        param: param.into(),
        value: params.get(param).map(ToString::to_string).unwrap_or_default(),
        detail: format!(", which {detail}"),
    }
}
