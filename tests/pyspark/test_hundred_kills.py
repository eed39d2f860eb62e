"""A hundred times, a random rank of a fit is killed at a random moment: every fit ends with the weights of one that nobody
disturbed, and nothing is left behind."""

from __future__ import annotations

import os
import random
import signal
import time

import psutil
import pytest

from server import Server
from test_faults import Background
from test_restarts import ESTIMATORS, Killer, bits, checkpoints, rows

KILLS = 100
KILLS_OF_A_FIT = 6
TIME_S_MAX = 240
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV)


@pytest.fixture(scope="module")
def server():
    server = Server(slots=3, warm_workers=0)
    yield server
    server.stop()


def listening(server) -> set[int]:
    """The ports that the server and its ranks listen on."""
    processes = [psutil.Process(server.process.pid), *server.ranks()]
    connections = [connection for process in processes for connection in process.net_connections("tcp")]
    return {connection.laddr.port for connection in connections if connection.status == psutil.CONN_LISTEN}


def test_a_hundred_kills_change_no_weight_and_leave_nothing_behind(server):
    session = server.new_session()
    session.conf.set("spark.phalanx.checkpoint.interval", "3")
    session.conf.set("spark.phalanx.maxRestarts", "1000")
    frame = rows(session, 30_000)
    names = list(ESTIMATORS)
    undisturbed = {}
    for name in names:
        for workers in (2, 3):
            session.conf.set("spark.phalanx.workers", str(workers))
            undisturbed[name, workers] = bits(ESTIMATORS[name]().fit(frame))
    server.wait_for_ranks(0)
    ports, shared, files = listening(server), set(os.listdir("/dev/shm")), server.open_files()

    chance = random.Random(2026)
    killer = Killer(server, seed=7, signals=SIGNALS)
    fits = 0
    started = time.monotonic()
    while killer.kills < KILLS:
        assert time.monotonic() - started < TIME_S_MAX, f"{killer.kills} kills in {TIME_S_MAX} s"
        name, workers = chance.choice(names), chance.choice((2, 3))
        session.conf.set("spark.phalanx.workers", str(workers))
        fit = Background(lambda: ESTIMATORS[name]().fit(frame))
        killer.kill_while(fit, KILLS_OF_A_FIT, (0.02, 0.5))
        assert fit.wait(90) is None, fit.error
        assert bits(fit.result) == undisturbed[name, workers], f"{name} on {workers} ranks"
        fits += 1
    print(f"{killer.kills} kills over {fits} fits in {time.monotonic() - started:.0f} s")

    server.wait_for_ranks(0)
    assert listening(server) == ports
    assert set(os.listdir("/dev/shm")) <= shared
    assert server.open_files() <= files + 4
    assert checkpoints(server.data_dir) == []
    session.stop()
