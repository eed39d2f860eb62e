"""A server for the whole run, and a session of it for each test."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from server import Server

SLOTS = 4


@pytest.fixture(scope="session")
def server():
    server = Server(None, "--slots", str(SLOTS))
    yield server
    server.stop()


@pytest.fixture
def spark(server):
    session = SparkSession.builder.remote(server.remote).create()
    session.conf.set("spark.phalanx.workers", "2")
    yield session
    session.stop()
