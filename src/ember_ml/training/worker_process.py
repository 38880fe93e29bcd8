"""What a worker of a data loader runs: it gets tasks, makes batches of them and sends these back.

A worker imports what it needs to unpickle the data, the transform and the collate function, and no tensor library
besides.
"""

from __future__ import annotations

import os
import pickle
import signal
import traceback
from multiprocessing.connection import Connection
from typing import NamedTuple

from ember_ml.backend.built_in import HOST
from ember_ml.backend.selection import VARIABLE, is_started, set_backend
from ember_ml.training.shared_messages import Message, Receiver, Sender, receive_shared

__all__ = ["Failure", "run_worker"]


class Failure(NamedTuple):
    """An exception that a worker sends in place of a batch."""

    pickled: bytes | None
    """The exception itself, where it can travel."""
    summary: str
    text: str
    """Its traceback."""


def run_worker(tasks: Connection, batches: Connection, ahead: int) -> None:
    """Make batches until the other end of ``tasks`` closes; a failure is sent in place of a batch."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the program, which then closes the connection
    os.environ[VARIABLE] = HOST  # for the first op, if there ever is one
    failure = maker = None
    try:
        maker = receive_shared(tasks)
        if is_started():  # by a module that was imported for the data
            set_backend(HOST)
    except Exception as error:
        error.add_note(
            "while a worker read data, transform and collate function: their classes and functions must be in a file "
            "that can be imported, not in a notebook or an interactive session"
        )
        failure = _describe(error)
    receiver, sender = Receiver(tasks, ahead), Sender(batches, ahead)
    try:
        while True:
            task = receiver.receive()
            try:
                message = Message(failure if maker is None else maker.make(task))
            except Exception as error:
                message = Message(_describe(error))
            sender.send(message)
    except (EOFError, OSError):  # the program has closed the connection, or is gone
        pass


def _describe(error: Exception) -> Failure:
    text = "".join(traceback.format_exception(error))
    try:
        pickled = pickle.dumps(error.with_traceback(None))
        pickle.loads(pickled)
    except Exception:  # whatever a class of errors of the user does
        pickled = None
    return Failure(pickled, f"{type(error).__name__}: {error}", text)
