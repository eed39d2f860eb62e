"""The life of one worker: runs the tasks that come over the socket on file descriptor 0, one after the other."""

import gc
import os
import signal
import socket
import sys


def main() -> None:
    # the folder that the server was started in is nobody's library
    sys.path[:] = [folder for folder in sys.path if folder]
    connection = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    # a function that starts processes must be able to wait for them, and an interrupt is for the server to handle
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from pyspark import worker

    reader = os.fdopen(os.dup(connection.fileno()), "rb", 1 << 16)
    writer = os.fdopen(os.dup(connection.fileno()), "wb", 1 << 16)
    connection.close()
    writer.write(b"\0\0\0\0")
    writer.flush()
    # what nearly every function needs, loaded while nobody waits
    import pandas  # noqa: F401
    import pyarrow  # noqa: F401
    import pyspark.sql.pandas.serializers  # noqa: F401

    while reader.peek(1):
        worker.main(reader, writer)
        writer.flush()
        sys.stdout.flush()
        sys.stderr.flush()
        gc.collect()


main()
