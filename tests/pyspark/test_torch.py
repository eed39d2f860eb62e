"""TorchDistributor of the stock client: its processes are the tasks of a barrier stage."""

from __future__ import annotations

import os
import pathlib

import pyspark
import pytest
from pyspark.errors import PythonException
from pyspark.ml.linalg import Vectors
from pyspark.ml.torch.distributor import TorchDistributor
from pyspark.sql import SparkSession

from server import Server

# what the client pickles calls pyspark's own code at the server, which must be of the same version
pytestmark = pytest.mark.skipif(not pyspark.__version__.startswith("4.3"), reason="the server's Python has pyspark 4.3")

def interpreter() -> str:
    """A Python with whole pyspark and torch, for the server's workers."""
    cache = pathlib.Path(os.environ.get("PHALANX_CACHE", pathlib.Path.home() / ".cache" / "phalanx"))
    return str(cache / "spark-4.3" / "bin" / "python")


@pytest.fixture(scope="module")
def spark():
    server = Server(python=interpreter(), slots=2, warm_workers=0)
    session = SparkSession.builder.remote(server.remote).getOrCreate()
    yield session
    session.stop()
    server.stop()


def digits_trainer():
    # by value, as a function of a notebook is: the server cannot import this module
    def train(num_epochs: int, seed: int = 0) -> dict:
        import torch
        import torch.distributed
        from sklearn.datasets import load_digits
        from torch.nn.parallel import DistributedDataParallel

        torch.distributed.init_process_group("gloo")
        rank, world_size = torch.distributed.get_rank(), torch.distributed.get_world_size()
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        digits = load_digits()
        order = torch.randperm(len(digits.target), generator=torch.Generator().manual_seed(5))
        x = torch.tensor(digits.data / 16, dtype=torch.float32)[order]
        y = torch.tensor(digits.target)[order]
        mine = torch.arange(rank, 1400, world_size)
        module = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
        module = DistributedDataParallel(module)
        optimizer = torch.optim.Adam(module.parameters(), lr=0.01)
        for epoch in range(num_epochs):
            for batch in mine.split(64):
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(module(x[batch]), y[batch])
                loss.backward()
                optimizer.step()
            print(f"rank {rank} has finished epoch {epoch}", flush=True)
        with torch.no_grad():
            accuracy = (module(x[1400:]).argmax(1) == y[1400:]).float().mean().item()
        weights = torch.cat([parameter.flatten() for parameter in module.parameters()])
        gathered = [torch.empty_like(weights) for _ in range(world_size)]
        torch.distributed.all_gather(gathered, weights.detach())
        return {
            "accuracy": accuracy,
            "world_size": world_size,
            "is_same": all(torch.equal(weights, other) for other in gathered),
        }

    return train


def test_a_function_trains_on_digits_and_its_log_streams(spark, capfd):
    distributor = TorchDistributor(num_processes=2, local_mode=False, use_gpu=False)
    result = distributor.run(digits_trainer(), 8, seed=1)
    assert result["world_size"] == 2 and result["is_same"]
    assert result["accuracy"] > 0.95
    captured = capfd.readouterr()
    for rank in range(2):
        assert f"rank {rank} has finished epoch 7" in captured.out + captured.err


def test_a_file_runs_with_its_arguments(spark, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import os, sys\n"
        "import torch.distributed as distributed\n"
        "distributed.init_process_group('gloo')\n"
        "rank = distributed.get_rank()\n"
        "open(sys.argv[1] + str(rank), 'w').write(' '.join(sys.argv[2:]))\n"
    )
    TorchDistributor(num_processes=2, local_mode=False, use_gpu=False).run(str(script), str(tmp_path / "rank-"), 7, "x")
    assert [(tmp_path / f"rank-{rank}").read_text() for rank in range(2)] == ["7 x", "7 x"]


def test_an_exception_comes_back_and_the_slots_are_free(spark, capfd):
    def fails():
        raise ValueError("this training was never going to work")

    distributor = TorchDistributor(num_processes=2, local_mode=False, use_gpu=False)
    with pytest.raises(PythonException, match="TorchDistributor failed during training"):
        distributor.run(fails)
    # the training's own processes say why, in the log that the client is sent
    captured = capfd.readouterr()
    assert "ValueError: this training was never going to work" in captured.out + captured.err
    assert spark.range(0, 4, 1, 2).mapInArrow((lambda: lambda batches: batches)(), "id long", barrier=True).count() == 4


def test_partitions_of_a_dataframe_are_loaded(spark):
    def sums():
        import torch
        import torch.distributed as distributed
        from pyspark.ml.torch.distributor import _get_spark_partition_data_loader

        distributed.init_process_group("gloo")
        loader = _get_spark_partition_data_loader(num_samples=4, batch_size=2)
        total = torch.zeros(3, dtype=torch.float64)
        for features, label in loader:
            total += torch.cat([features.to(torch.float64).sum(0), label.to(torch.float64).sum().reshape(1)])
        distributed.all_reduce(total)
        return total.tolist()

    rows = [(Vectors.dense(float(i), 2.0 * i) if i % 2 else Vectors.sparse(2, {0: float(i)}), float(i)) for i in range(8)]
    df = spark.createDataFrame(rows, ["features", "label"]).repartition(2)
    total = TorchDistributor(num_processes=2, local_mode=False, use_gpu=False)._train_on_dataframe(sums, df)
    assert total == [28.0, 2.0 * (1 + 3 + 5 + 7), 28.0]


def test_more_processes_than_slots_are_refused_at_once(spark):
    with pytest.raises(Exception, match="3.*2"):
        TorchDistributor(num_processes=3, local_mode=False, use_gpu=False).run(digits_trainer(), 1)
