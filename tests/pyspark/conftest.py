"""A server for the whole run, and a session of it for each test."""

from __future__ import annotations

import pathlib
import sys

import pytest
from pyspark.sql import SparkSession

from server import Server

# the client package, which is no part of a stock client
sys.path.append(str(pathlib.Path(__file__).parents[2] / "connect-client" / "python"))

SLOTS = 4


@pytest.fixture(scope="session")
def server():
    # without idle ranks, every process of the server's is one of a gang
    server = Server(slots=SLOTS, warm_workers=0)
    yield server
    server.stop()


@pytest.fixture
def spark(server):
    # the ranks of the test before may still be on their way out
    server.wait_for_ranks(0)
    session = SparkSession.builder.remote(server.remote).create()
    session.conf.set("spark.phalanx.workers", "2")
    yield session
    session.stop()
