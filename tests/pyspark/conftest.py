"""A server for the whole run, and a session of it for each test."""

from __future__ import annotations

import pytest

from server import Server

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
    session = server.new_session()
    session.conf.set("spark.phalanx.workers", "2")
    yield session
    session.stop()
