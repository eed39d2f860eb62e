"""Starts and stops a `phalanx serve` of its own port and data directory."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time

import psutil
from pyspark.sql import SparkSession
from pyspark.sql.connect.session import SparkSession as ConnectSession

READY_TIMEOUT_S = 30
ADDRESS = re.compile(r"ready.*address=(?:\x1b\[[0-9;]*m)*([0-9.]+:[0-9]+)")
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


class Server:
    """A running server. `port` is kept over a restart, so that a client finds it again. Settings are numbers."""

    def __init__(self, binary: str | None = None, data_dir: str | None = None, **settings: object):
        self.binary = binary or os.environ["PHALANX"]
        self.data_dir = data_dir or tempfile.mkdtemp(prefix="phalanx-")
        self.config = os.path.join(self.data_dir, "phalanx.toml")
        with open(self.config, "w") as file:
            file.write("".join(f"{key} = {value}\n" for key, value in settings.items()))
        self.port = 0
        self.process: subprocess.Popen[str] | None = None
        self.log: list[str] = []
        self.sessions: list[SparkSession] = []
        self.start()

    @property
    def remote(self) -> str:
        return f"sc://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [self.binary, "serve", "--port", str(self.port), "--data-dir", self.data_dir, "--config", self.config]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        ready = threading.Event()
        threading.Thread(target=self._read_log, args=(self.process, ready), daemon=True).start()
        if not ready.wait(READY_TIMEOUT_S) or not self.port:
            self.stop()
            raise RuntimeError("the server did not start:\n" + "\n".join(self.log))

    def _read_log(self, process: subprocess.Popen[str], ready: threading.Event) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            line = ESCAPES.sub("", line.rstrip())
            self.log.append(line)
            if (found := ADDRESS.search(line)) is not None:
                self.port = int(found.group(1).rsplit(":", 1)[1])
                ready.set()
        ready.set()

    def new_session(self) -> SparkSession:
        """A session that is the thread's active one, which models ask for when they fetch."""
        ConnectSession._active_session.session = None
        session = SparkSession.builder.remote(self.remote).create()
        self.sessions.append(session)
        return session

    def stop(self, with_signal: int = signal.SIGTERM) -> None:
        # a client with an open session asks for minutes that a server that is gone may clean up
        for session in self.sessions:
            if not session.is_stopped:
                session.stop()
        self._end(with_signal)

    def _end(self, with_signal: int) -> None:
        if self.process is not None:
            self.process.send_signal(with_signal)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def restart(self) -> None:
        self._end(signal.SIGTERM)
        self.start()

    def ranks(self) -> list[psutil.Process]:
        """The worker processes that run now."""
        assert self.process is not None
        children = psutil.Process(self.process.pid).children(recursive=True)
        return [child for child in children if runs(child)]

    def wait_for_ranks(self, count: int, timeout_s: float = 10) -> list[psutil.Process]:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            ranks = self.ranks()
            if len(ranks) == count:
                return ranks
            time.sleep(0.02)
        raise TimeoutError(f"expected {count} ranks, found {len(self.ranks())}")

    def open_files(self) -> int:
        assert self.process is not None
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def runs(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def spark_data(name: str) -> str:
    """A file of the sample data that comes with whole Spark."""
    cache = pathlib.Path(os.environ.get("PHALANX_CACHE", pathlib.Path.home() / ".cache" / "phalanx"))
    found = sorted(cache.glob(f"spark-4.3/lib/python*/site-packages/pyspark/data/mllib/{name}"))
    if not found:
        raise FileNotFoundError(f"{name}: run `.ci/setup test` first")
    return str(found[0])
