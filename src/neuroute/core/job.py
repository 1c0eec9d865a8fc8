"""A job of the workflow: `python -m neuroute.core.job train scaling/bq` is `neuroute train scaling/bq`.

Where a warm process listens (`cli/warm.py`), the job is handed to it, which saves loading all libraries; otherwise, on
a cluster's nodes say, it runs here.  Imports little, as it runs for each job.
"""

import json
import os
import runpy
import socket
import sys

SOCKET_ENV = "NEUROUTE_WARM"  # where the warm process of this machine listens


def hand_over(path: str, arguments: list[str]) -> int | None:
    """Let a warm process run a command with this one's output, folder and environment; its exit status.

    None when nobody listens.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(path)
        except OSError:
            return None
        request = {"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}
        data = json.dumps(request).encode()
        socket.send_fds(connection, [len(data).to_bytes(4)], [1, 2])
        connection.sendall(data)
        status = connection.recv(1)
    if not status:
        print("error: the warm process that ran this job has ended; run the same command again", file=sys.stderr)
    return status[0] if status else 1


def main() -> None:
    path = os.environ.get(SOCKET_ENV)
    status = hand_over(path, sys.argv[1:]) if path else None
    if status is None:
        runpy.run_module("neuroute", run_name="__main__", alter_sys=True)
    else:
        sys.exit(status)


if __name__ == "__main__":
    main()
