"""PyTorch modules as Spark ML estimators.

    from phalanx.torch import TorchEstimator

    estimator = TorchEstimator(
        module=torch.nn.Sequential(torch.nn.Linear(28, 256), torch.nn.ReLU(), torch.nn.Linear(256, 2)),
        loss="crossEntropy", optimizer="adamW", learningRate=1e-3, batchSize=1024, epochs=5, numWorkers=2,
    )
    model = estimator.fit(df)                  # trained by the server's ranks, which run no Python
    model.transform(test).select("prediction")
    model.trainedModule()                      # a torch.jit.ScriptModule

The module travels as TorchScript, and comes back as TorchScript. Its `forward` gets one tensor for each of `inputCols`:

* a vector or an array of floating numbers: float32, `[rows, width]`
* an array of integers: int64, `[rows, width]`
* a floating number: float32, `[rows]`; an integer or a boolean: int64, `[rows]`

Labels of `crossEntropy` and `nll` are classes (int64), of `bce`, `mse`, `l1` and `huber` numbers (float32), and of a loss
of your own what the column is. `bce` takes logits. A loss of your own is a module whose `forward(output, label)` returns the
mean over the rows, or one value a row.
"""

import base64
import io
from typing import Any, List, Optional

from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.util import JavaMLReadable, JavaMLWritable
from pyspark.ml.wrapper import JavaEstimator, JavaModel

__all__ = ["TorchEstimator", "TorchModel"]


def to_script(module: Any) -> str:
    """TorchScript in base64: of a module, of the bytes that `torch.jit.save` writes, or as it is.

    A module that `torch.jit.script` cannot compile is traced by the caller, who passes what `torch.jit.trace` gives.
    """
    if isinstance(module, str):
        return module
    if isinstance(module, (bytes, bytearray)):
        return base64.b64encode(bytes(module)).decode("ascii")
    import torch

    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"expected a torch.nn.Module or TorchScript bytes, found {type(module).__name__}")
    script = module if isinstance(module, torch.jit.ScriptModule) else torch.jit.script(module)
    buffer = io.BytesIO()
    torch.jit.save(script, buffer)
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def _param(name: str, doc: str, converter: Any) -> Any:
    return Param(Params._dummy(), name, doc, typeConverter=converter)


class _TorchParams(Params):
    """What both the estimator and its model have."""

    inputCols = _param("inputCols", "columns, one an argument of forward", TypeConverters.toListString)
    labelCol = _param("labelCol", "column of labels", TypeConverters.toString)
    predictionCol = _param("predictionCol", "column that gets the class or the number", TypeConverters.toString)
    rawPredictionCol = _param("rawPredictionCol", "of a classifier, gets the scores", TypeConverters.toString)
    probabilityCol = _param("probabilityCol", "of a classifier, gets the probabilities", TypeConverters.toString)
    loss = _param("loss", "crossEntropy, nll, bce, mse, l1, huber or script", TypeConverters.toString)
    huberDelta = _param("huberDelta", "where huber turns from square to absolute", TypeConverters.toFloat)
    optimizer = _param("optimizer", "sgd, adam, adamW or lamb", TypeConverters.toString)
    learningRate = _param("learningRate", "the highest learning rate", TypeConverters.toFloat)
    momentum = _param("momentum", "of sgd", TypeConverters.toFloat)
    nesterov = _param("nesterov", "whether sgd's momentum looks ahead", TypeConverters.toBoolean)
    weightDecay = _param("weightDecay", "a term of the gradient; of adamW and lamb, of the step", TypeConverters.toFloat)
    beta1 = _param("beta1", "of adam and its kin", TypeConverters.toFloat)
    beta2 = _param("beta2", "of adam and its kin", TypeConverters.toFloat)
    epsilon = _param("epsilon", "of adam and its kin", TypeConverters.toFloat)
    schedule = _param("schedule", "constant, step, cosine or oneCycle", TypeConverters.toString)
    stepEpochs = _param("stepEpochs", "of step: epochs between changes", TypeConverters.toInt)
    stepGamma = _param("stepGamma", "of step: the factor", TypeConverters.toFloat)
    warmUp = _param("warmUp", "of cosine and oneCycle: the share of steps that rises", TypeConverters.toFloat)
    batchSize = _param("batchSize", "rows of a step, over all workers", TypeConverters.toInt)
    epochs = _param("epochs", "passes over the data", TypeConverters.toInt)
    accumulationSteps = _param("accumulationSteps", "backward passes a step", TypeConverters.toInt)
    maxGradNorm = _param("maxGradNorm", "longer gradients are scaled down to it", TypeConverters.toFloat)
    bucketBytes = _param("bucketBytes", "about how much is reduced at once", TypeConverters.toInt)
    wireFormat = _param("wireFormat", "float32, bfloat16 or float16, of gradients", TypeConverters.toString)
    precision = _param("precision", "float32, or bfloat16 for autocast", TypeConverters.toString)
    zeroStage = _param("zeroStage", "0, or 1 to shard the optimizer's state", TypeConverters.toInt)
    validationFraction = _param("validationFraction", "share of rows kept for early stopping", TypeConverters.toFloat)
    patience = _param("patience", "epochs without improvement before it ends", TypeConverters.toInt)
    minDelta = _param("minDelta", "what counts as improvement", TypeConverters.toFloat)
    seed = _param("seed", "of shuffles and of what is random in the module", TypeConverters.toInt)
    numWorkers = _param("numWorkers", "ranks; unset: as the session says", TypeConverters.toInt)
    inferenceBatchSize = _param("inferenceBatchSize", "rows of a forward pass in transform", TypeConverters.toInt)

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(
            inputCols=["features"], labelCol="label", predictionCol="prediction",
            rawPredictionCol="rawPrediction", probabilityCol="probability",
            loss="crossEntropy", huberDelta=1.0, optimizer="adam", learningRate=1e-3, momentum=0.0, nesterov=False,
            weightDecay=0.0, beta1=0.9, beta2=0.999, epsilon=1e-8, schedule="constant", stepEpochs=1, stepGamma=0.1,
            warmUp=0.0, batchSize=64, epochs=1, accumulationSteps=1, bucketBytes=1 << 20, wireFormat="float32",
            precision="float32", zeroStage=0, validationFraction=0.0, patience=5, minDelta=0.0, seed=0,
            inferenceBatchSize=1024,
        )  # fmt: skip

    def setParams(self, **params: Any) -> Any:
        """Sets params by name. `None` leaves one as it is."""
        unknown = [name for name in params if not self.hasParam(name)]
        if unknown:
            raise TypeError(f"{type(self).__name__} has no params {', '.join(sorted(unknown))}")
        return self._set(**params)


class TorchEstimator(JavaEstimator, _TorchParams, JavaMLWritable, JavaMLReadable):
    """Trains a module. Params are given by name; those of `TorchEstimator.params`, `module` first.

    `loss` is a name, or a module of your own.
    """

    module = _param("module", "TorchScript in base64, made of a module", to_script)
    lossModule = _param("lossModule", "TorchScript in base64 of a loss of your own", to_script)

    def __init__(self, module: Any = None, **params: Any) -> None:
        super().__init__()
        self._java_obj = self._new_java_obj("phalanx.torch.TorchEstimator", self.uid)
        self.setParams(module=module, **params)

    def setParams(self, **params: Any) -> "TorchEstimator":
        """Sets params by name. `None` leaves one as it is."""
        loss = params.get("loss")
        if loss is not None and not isinstance(loss, str):
            params.update(loss="script", lossModule=loss)
        return super().setParams(**params)

    def _create_model(self, java_model: Any) -> "TorchModel":
        return TorchModel(java_model)


class TorchModel(JavaModel, _TorchParams, JavaMLWritable, JavaMLReadable):
    """A trained module.

    `transform` appends what it gives: of the losses `crossEntropy`, `nll` and `bce`, scores, probabilities and the class;
    of others, a number, or a vector where the module gives several values a row.
    """

    # methods, since `hasParam` looks at attributes by the names of the estimator's params
    def moduleBytes(self) -> bytes:
        """The trained module as TorchScript."""
        return base64.b64decode(self._call_java("module"))

    def trainedModule(self) -> Any:
        """The trained module, a `torch.jit.ScriptModule`."""
        import torch

        return torch.jit.load(io.BytesIO(self.moduleBytes()))

    @property
    def lossHistory(self) -> List[float]:
        """The mean loss of every epoch, each step's as of that step."""
        return list(self._call_java("lossHistory"))

    @property
    def validationLossHistory(self) -> List[float]:
        """The loss on validation rows after every epoch; empty without early stopping."""
        return list(self._call_java("validationLossHistory"))

    @property
    def bestEpoch(self) -> Optional[int]:
        """The epoch, from 0, whose weights these are; `None` without early stopping."""
        return self._call_java("bestEpoch")

    @property
    def numSteps(self) -> int:
        """Updates made."""
        return self._call_java("numSteps")

    @property
    def numRows(self) -> int:
        """Rows of the training data, those kept for validation included."""
        return self._call_java("numRows")
