"""What a server keeps of its jobs."""

from __future__ import annotations

import json
import pathlib
import time


class JobRecords:
    """The records of jobs in a folder, such as the one that `spark.phalanx.jobs.dir` tells."""

    def __init__(self, folder: str):
        self.folder = pathlib.Path(folder)

    def all(self) -> list[dict]:
        """Oldest first."""
        found = [json.loads(path.read_text()) for path in self.folder.glob("*/record.json")]
        return sorted(found, key=lambda record: record["submitted_at"])

    def last(self) -> dict:
        return self.all()[-1]

    def path(self, name: str) -> pathlib.Path:
        """A file of the last job."""
        return self.folder / self.last()["job_id"] / name

    def wait_for(self, state: str, timeout_s: float = 20) -> dict:
        """The last job's record, once it is in a state."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            records = self.all()
            if records and records[-1]["state"] == state:
                return records[-1]
            time.sleep(0.05)
        raise TimeoutError(f"expected a job that is {state}, found {self.last()}")
